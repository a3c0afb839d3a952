/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Order and names of a kernel list: the last step of kernels_find(). Pure. */
#ifndef RECOUNT_GRUB_KERNEL_LABEL_H
#define RECOUNT_GRUB_KERNEL_LABEL_H

#include "grub/kernels.h"

/*
 * Sorts the list and gives each kernel its label: version_short() at the shortest level at which
 * no other kernel that can be booted has the same, then the file name, then the path. Kernels that
 * share a label get longer ones together. A skipped one is called by its file name.
 */
int kernel_label(struct kernel_list *l) _must_check_;

#endif
