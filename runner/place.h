/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where the trials of one boot happen, and whom they tell that they are alive. Filled once by
 * worker.c, used by arena.c, cold.c and trial.c.
 */
#ifndef RECOUNT_RUNNER_PLACE_H
#define RECOUNT_RUNNER_PLACE_H

#include <stdint.h>
#include <sys/types.h>

#include "results/plan.h"
#include "runner/spawn.h"

struct place {
	const struct plan *plan;
	const char *root_dir;	  /* where the root is mounted: the builds' chroot */
	const char *arena_dir;	  /* the arena's mount point, from outside the chroot */
	const char *arena_device; /* /dev/… */
	const char *tmp_dir;	  /* /tmp of the chroot, bound to the arena */
	dev_t arena_dev;
	const char *swap_device;   /* NULL: none */
	const char *arena_restore; /* the record's word: "clean" or "checked" */
	struct spawn_user user;
	void (*alive)(void *);		  /* sign of life, at most once per 30 s while timing */
	void (*busy)(void *, int64_t ms); /* the next step may block, silent, for so long */
	void (*step)(void *, int64_t ms); /* what begins now must have ended in so long */
	void *arg;
	/* Limits of the cold check, learnt from the boot's first flush; 0 until then. */
	int64_t cached_max_bytes, slab_max_bytes, dentries_max;
	/* Bytes that the canary read for the workload at hand; ABSENT when it has no record. */
	int64_t canary_read_bytes;
};

#endif
