/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Can a kernel reach the store and the root disk without the help of an initrd? Told from its
 * config (/boot/config-VERSION), its module lists and the running machine's /sys.
 */
#ifndef RECOUNT_GRUB_DRIVERS_H
#define RECOUNT_GRUB_DRIVERS_H

#include "results/macro.h"

/* The option @name (CONFIG_…) of kernel @version: 'y', 'm', 'n', or 0 when its config is not there
 * or does not mention the option. -errno when it cannot be read. */
int drivers_config(const char *root, const char *version, const char *name) _must_check_;

/*
 * 1 and the name of the first driver in *@driver (owned by caller) that kernel @version has only as
 * a module, of ext4 and those on the way to the disk of @root; 0 when there is none or nothing is
 * known about it.
 */
int drivers_missing(const char *root, const char *version, char **driver) _must_check_;

#endif
