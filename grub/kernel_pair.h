/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A kernel image and its initrd: a step of kernels_find(). */
#ifndef RECOUNT_GRUB_KERNEL_PAIR_H
#define RECOUNT_GRUB_KERNEL_PAIR_H

#include "grub/kernels.h"

/*
 * Finds the initrd of @k (image and version are set) by the names that Debian, Fedora, Arch, Gentoo
 * and GRUB's 10_linux use, and judges both. Sets initrd, initrd_bytes and, when the pair cannot be
 * booted, skip.
 */
int kernel_pair(const char *root, struct kernel *k) _must_check_;

#endif
