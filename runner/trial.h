/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One trial: leftovers killed, make clean, a cold machine that is checked to be cold, the load
 * steady, then T0, build, T1, syncfs, T2. Runs in the worker of recount-init. Fills a record;
 * writes nothing to the store.
 */
#ifndef RECOUNT_RUNNER_TRIAL_H
#define RECOUNT_RUNNER_TRIAL_H

#include <sys/types.h>

#include "results/plan.h"
#include "results/record.h"
#include "runner/spawn.h"

#define TRIAL_STDERR_BYTES (64 << 10) /* of a build's errors, the first are kept */

/* What the trials of one boot share. */
struct trial_place {
	const struct plan *plan;
	const char *root_dir;	  /* where the root is mounted: the builds' chroot */
	const char *arena_dir;	  /* the arena's mount point, from outside the chroot */
	const char *arena_device; /* /dev/… */
	const char *tmp_dir;	  /* /tmp of the chroot, bound to the arena */
	dev_t arena_dev;
	const char *swap_device;   /* NULL: none */
	const char *arena_restore; /* the record's word: "clean" or "checked" */
	struct spawn_user user;
	void (*alive)(void *); /* sign of life, called at most once per 30 s while timing */
	void (*busy)(void *, int64_t ms);     /* the next step may block for so long */
	void (*deadline)(void *, int64_t ns); /* CLOCK_MONOTONIC by when this must have ended */
	void *arg;
	/* Limits of the cold check, learnt from the boot's first flush; 0 until then. */
	int64_t cached_max_bytes, slab_max_bytes, dentries_max;
	/* Bytes that the canary read for the workload at hand; ABSENT when it has no record. */
	int64_t canary_read_bytes;
};

/* Mounts the arena and binds its temporary folder over tmp_dir; unmounts both. Logs failures. */
int trial_mount_arena(const struct trial_place *p) _must_check_;
int trial_unmount_arena(const struct trial_place *p) _must_check_;

/*
 * Runs @trial of @boot. What can go wrong with a trial goes wrong inside its record: status and
 * void causes. @errors gets what the build wrote to standard error, NUL-terminated. The arena is
 * mounted before and after. A negative errno only when the boot itself cannot go on (the arena
 * cannot be mounted any more).
 */
int trial_run(struct trial_place *p, const struct plan_boot *boot, const struct plan_trial *trial,
	      unsigned attempt, char errors[TRIAL_STDERR_BYTES],
	      struct trial_record *out) _must_check_;

/* Kills every process but PID 1 and the caller, and reaps them. Only recount-init may call it. */
void trial_kill_leftovers(void);

#endif
