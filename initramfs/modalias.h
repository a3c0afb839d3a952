/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The modaliases of a machine: by these words devices ask for their drivers
 * (scripts/mod/file2alias.c in the kernel tree). Read from SYS/devices; loads nothing,
 * logs nothing. Devices that a measurement does not need are left out with all that hangs on them:
 * PCI classes 02 (network), 03 (display), 04 (multimedia) and 0d (wireless).
 */
#ifndef RECOUNT_INITRAMFS_MODALIAS_H
#define RECOUNT_INITRAMFS_MODALIAS_H

#include <stddef.h>

#include "results/macro.h"

struct modalias_set;

/* The aliases met so far, none at first. NULL without memory. Owned by caller, modalias_free(). */
struct modalias_set *modalias_new(void) _must_check_;
void modalias_free(struct modalias_set *set);

static inline void cleanup_modalias(struct modalias_set **set)
{
	modalias_free(*set);
}

/*
 * Walks @sys/devices and gives in *fresh the *n aliases that are not in @set yet, each once; they
 * are in it from now on. Array and strings are borrowed, the array until the next call. The error
 * of opening @sys/devices, or -ENOMEM; devices that vanish meanwhile are passed over.
 */
int modalias_collect(struct modalias_set *set, const char *sys, const char *const **fresh,
		     size_t *n) _must_check_;

#endif
