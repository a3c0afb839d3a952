/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes the machine cold, and measures whether it was. */
#include "runner/cold.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/swap.h>
#include <time.h>

#include "results/log.h"
#include "runner/arena.h"
#include "runner/counters.h"
#include "runner/proc.h"
#include "runner/watch.h"

#define SETTLE_MS 1000
/* A flush may leave this much more than the boot's first one did. */
#define COLD_SLACK_BYTES    (16 << 20)
#define COLD_SLACK_DENTRIES 4000
/* What is read must reach this part of the canary's, or something was cached … */
#define COLD_READ_FRACTION 0.9
/* … but for what kernels read of their own accord: ext4 fetches the bitmaps of every group of
 * 128 MiB after a mount since 5.13, and one window of read-ahead more or less is chance. */
#define COLD_GROUP_BYTES     (INT64_C(128) << 20)
#define COLD_GROUP_READ	     8192
#define COLD_READAHEAD_BYTES (128 << 10)

static int renew_swap(const char *device)
{
	if (swapoff(device) && errno != EINVAL)
		return log_errno(-errno, "swap off %s", device);
	if (swapon(device, 0))
		return log_errno(-errno, "swap on %s", device);
	return 0;
}

void cold_swap(const struct place *p, struct trial_record *out)
{
	if (p->swap_device && renew_swap(p->swap_device) < 0)
		trial_record_void(out, "swap-not-renewed");
}

/* Nothing else can be written to; sync(2) would wait for disks that are none of ours. */
static void sync_arena(const struct place *p)
{
	_cleanup_close_ int fd = open(p->arena_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || syncfs(fd))
		log_errno(-errno, "write the arena back");
}

int cold_flush(const struct place *p, struct trial_record *out)
{
	struct timespec settle = {SETTLE_MS / 1000, SETTLE_MS % 1000 * 1000000L};
	int r;

	p->busy(p->arg, WATCH_WRITEBACK_MS);
	sync_arena(p);
	r = arena_unmount(p);
	if (r == -EBUSY) {
		trial_record_void(out, "unmount-busy");
		/* The bind may be gone already; the arena itself is still there. */
		return arena_unmount(p) < 0 ? 0 : arena_mount(p);
	}
	if (r < 0)
		return r;
	r = arena_mount(p);
	if (r < 0)
		return r;
	for (int times = 0; times < 2; times++)
		if (proc_write("/proc/sys/vm/drop_caches", "3") < 0)
			trial_record_void(out, "not-cold");
	nanosleep(&settle, NULL);
	p->alive(p->arg);
	return 0;
}

void cold_check(struct place *p, struct trial_record *out)
{
	struct memory_gauges g;

	memory_gauges_read(&g);
	out->memtotal_bytes = g.total_bytes;
	out->cold.cached_bytes = g.cached_bytes;
	out->cold.slab_reclaimable_bytes = g.slab_reclaimable_bytes;
	out->cold.dentries = g.dentries;
	if (!p->cached_max_bytes) {
		p->cached_max_bytes = g.cached_bytes + COLD_SLACK_BYTES;
		p->slab_max_bytes = g.slab_reclaimable_bytes + COLD_SLACK_BYTES;
		p->dentries_max = g.dentries + COLD_SLACK_DENTRIES;
	}
	out->cold.ok = g.cached_bytes <= p->cached_max_bytes &&
		       g.slab_reclaimable_bytes <= p->slab_max_bytes &&
		       g.dentries <= p->dentries_max;
}

void cold_verdict(const struct place *p, struct trial_record *out)
{
	int64_t slack = (int64_t)(p->plan->arena_bytes / COLD_GROUP_BYTES) * COLD_GROUP_READ +
			COLD_READAHEAD_BYTES;

	out->cold.device_read_bytes = out->read_bytes;
	if (p->canary_read_bytes != ABSENT && out->read_bytes != ABSENT &&
	    out->read_bytes + slack < COLD_READ_FRACTION * p->canary_read_bytes)
		out->cold.ok = 0;
	if (!out->cold.ok)
		trial_record_void(out, "not-cold");
}
