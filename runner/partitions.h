/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The partitions that a boot needs: found by UUID, all others made read-only. Called by the worker;
 * logs failures. */
#ifndef RECOUNT_RUNNER_PARTITIONS_H
#define RECOUNT_RUNNER_PARTITIONS_H

#include <sys/types.h>

#include "runner/watch.h"

#define PARTITION_PATH 288

/* Waits, for 60 s at most, until exactly one device carries @uuid; @what is its name in the log.
 * -ENOENT, -ENOTUNIQ. */
int partition_find(struct watch *w, const char *what, const char *uuid, char path[PARTITION_PATH],
		   dev_t *dev) _must_check_;

/* 1 when a swap partition holds a hibernated system, which still has its file systems open. */
int partitions_hibernated(void);

/* Nothing of the machine but the @n devices at @writable can be written to from now on, not even by
 * a journal. */
int partitions_protect(const char *const *writable, size_t n) _must_check_;

#endif
