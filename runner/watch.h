/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The page that PID 1 and its worker share: signs of life and deadlines. The worker writes, PID 1
 * reads; neither ever waits for the other. A step that answers for ever is ended by its deadline,
 * one that no longer answers by its silence.
 */
#ifndef RECOUNT_RUNNER_WATCH_H
#define RECOUNT_RUNNER_WATCH_H

#include <stdatomic.h>
#include <stdint.h>

#include "runner/spawn.h"

/* A worker that has not answered for this long is stuck … */
#define WATCH_SILENCE_MS 120000
/* … and gets this long before the machine is rebooted over its head. */
#define WATCH_GRACE_MS 30000
/* While it waits for a build or a load, the worker answers this often. PID 1 looks as often, and
 * wakes its watchdog's thread: these are all of ours that a timed region sees. */
#define WATCH_SLICE_MS 30000
/* How long a boot may take until it has read its plan, which then says boot_timeout_ms. */
#define WATCH_BOOT_MS 600000
/* Writing back a machine's memory to a slow disk, or emptying its swap, takes minutes. */
#define WATCH_WRITEBACK_MS 900000

struct watch {
	_Atomic int64_t answered_ns; /* CLOCK_MONOTONIC of the worker's last sign of life */
	_Atomic int64_t deadline_ns; /* the running step must have ended by then */
	_Atomic int drivers_loaded;  /* what has not appeared by now will not appear */
};

/* A sign of life; fit for spawn_wait()'s callback. */
static inline void watch_answer(void *watch)
{
	struct watch *w = watch;

	atomic_store(&w->answered_ns, spawn_now_ns());
}

/* A sign of life; what begins now must have ended in @ms, however often it answers. */
static inline void watch_step(struct watch *w, int64_t ms)
{
	watch_answer(w);
	atomic_store(&w->deadline_ns, spawn_now_ns() + ms * INT64_C(1000000));
}

/* The next step may block in the kernel, without an answer, for up to @ms. */
static inline void watch_busy(struct watch *w, int64_t ms)
{
	atomic_store(&w->answered_ns, spawn_now_ns() + ms * INT64_C(1000000));
}

#endif
