/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Background loads: processes that run beside the build, count their work in shared memory, reach a
 * milestone before T0 and end on SIGHUP. trial.c starts, snapshots and stops them; each kind is one
 * file that fills a struct load_kind.
 */
#ifndef RECOUNT_RUNNER_LOAD_H
#define RECOUNT_RUNNER_LOAD_H

#include <stdatomic.h>
#include <stdint.h>

#include "results/plan.h"
#include "results/record.h"
#include "runner/spawn.h"

#define LOAD_WORKERS_MAX 4096

/* One worker's counters, alone on a cache line; written by the worker only. */
struct load_counter {
	_Atomic int64_t work;
	_Atomic int ready; /* the milestone is reached */
} __attribute__((aligned(64)));

/* What a worker process sees. */
struct load_worker {
	const struct plan_load *load;
	unsigned index;		       /* 0 … load->workers − 1 */
	struct load_counter *counter;  /* its own */
	struct load_counter *counters; /* all, for kinds whose workers wait for worker 0 */
	int *fds;		       /* from the kind's open(), inherited */
};

struct load_kind {
	const char *name;
	const char *unit; /* of the work counted */
	/* Opens what the workers share, as root, inside the arena folder @dir; at most
	 * 2 × workers descriptors into @fds. NULL: nothing to share. */
	int (*open)(const struct plan_load *load, const char *dir, int *fds, size_t *n_fds);
	/* A worker's life: sets counter->ready at its milestone, counts work, never returns by
	 * itself; a return is a failure. */
	int (*run)(struct load_worker *w);
};

extern const struct load_kind load_mem, load_io, load_process;

/* NULL for "none" and for unknown names; load_is_known() tells them apart. */
const struct load_kind *load_find_kind(const char *name);
int load_is_known(const char *name);

/* Tells of a load that runs, at one moment. */
struct load_snapshot {
	int64_t at_ns; /* CLOCK_MONOTONIC */
	int64_t work;
	int64_t user_ns, sys_ns; /* of all workers; ABSENT when one cannot be read */
};

struct load_place {
	const char *chroot_dir; /* the workers' root */
	const char *arena_dir;	/* the arena's mount point, from outside the chroot */
	const struct spawn_user *user;
};

struct load;

/*
 * Starts the load and waits until every worker has reached its milestone and steady_ms more have
 * passed, calling @alive(@arg) meanwhile. -ETIMEDOUT after @timeout_ms; -ECHILD when a worker died;
 * in both cases everything is stopped and nothing is left. Owned by caller, load_stop().
 */
int load_start(const struct plan_load *plan, const struct load_place *place, int64_t timeout_ms,
	       void (*alive)(void *), void *arg, struct load **out) _must_check_;

/* Makes no allocation and no write; two clock readings and, for the CPU times, one read of /proc
 * per worker. */
void load_snapshot(const struct load *l, struct load_snapshot *out);

/* Difference of two snapshots as the record's load_result. */
void load_result(const struct load *l, const struct load_snapshot *from,
		 const struct load_snapshot *to, struct record_load *out);

/* SIGHUP, 5 s, SIGKILL, and everything reaped. 0, or -ECHILD when a worker had ended by itself
 * before the call (the load died). Frees @l. */
int load_stop(struct load *l) _must_check_;

/* xorshift64*, the loads' source of incompressible data and offsets (Vigna, 2016). @state ≠ 0. */
static inline uint64_t load_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

/* Fills @len bytes (a multiple of 8). */
static inline void load_fill(void *buf, size_t len, uint64_t *state)
{
	uint64_t *words = buf;

	for (size_t i = 0; i < len / sizeof(*words); i++)
		words[i] = load_random(state);
}

static inline void load_count(struct load_counter *c)
{
	/* One writer: a plain add would do, but the reader is another process. */
	atomic_store_explicit(&c->work, atomic_load_explicit(&c->work, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

#endif
