/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the kernel counts by itself: cumulative figures read just before T0 and just after T2, and
 * the gauges of the cold check. Nothing samples in between. A figure that this kernel does not have
 * is ABSENT.
 */
#ifndef RECOUNT_RUNNER_COUNTERS_H
#define RECOUNT_RUNNER_COUNTERS_H

#include <stdint.h>
#include <sys/types.h>

#include "results/record.h"

struct counters {
	int64_t swap_in_bytes, swap_out_bytes; /* /proc/vmstat pswpin, pswpout */
	int64_t oom_kills;		       /* /proc/vmstat oom_kill, since 4.13 */
	int64_t read_bytes, write_bytes;       /* of one device, /proc/diskstats */
	int64_t steal_ns;		       /* /proc/stat, all CPUs */
	struct record_psi psi;		       /* /proc/pressure totals */
};

/* @device is the major:minor pair of the arena's partition. */
void counters_read(dev_t device, struct counters *out);

/* @after − @before for each figure; ABSENT when either is. */
void counters_delta(const struct counters *before, const struct counters *after,
		    struct counters *out);

struct memory_gauges { /* /proc/meminfo, /proc/sys/fs/dentry-state */
	int64_t total_bytes, cached_bytes, slab_reclaimable_bytes, dirty_bytes, writeback_bytes;
	int64_t dentries;
};
void memory_gauges_read(struct memory_gauges *out);

/* User and system time of one process in ns (/proc/PID/stat, in clock ticks); 0 or -errno. */
int process_times(pid_t pid, int64_t *user_ns, int64_t *sys_ns) _must_check_;

#endif
