/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The fixed cold order, the timed region, the counters and the void rules of one trial. */
#include "runner/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/memfd.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <time.h>

#include "initramfs/mounts.h"
#include "results/digest.h"
#include "results/log.h"
#include "runner/counters.h"
#include "runner/load.h"
#include "runner/watch.h"

#define ERRORS_MAX_BYTES (64 << 20)
#define SETTLE_MS	 1000
#define CLEAN_TIMEOUT_MS 600000
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

struct run { /* one trial under way */
	struct trial_place *place;
	const struct plan_workload *workload;
	const struct plan_load *load_plan;
	struct load *load;  /* NULL: none */
	char dir[PATH_MAX]; /* the tree, inside the chroot */
	char jobs[16];
	char *argv[PLAN_ARGS_MAX + 3]; /* and -jN, and NULL, and one to spare */
	int errors_fd;		       /* memfd: what the build writes to standard error */
	int arena_fd;
};

static int64_t raw_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void trial_kill_leftovers(void)
{
	/* As root, -1 means everybody but PID 1 and ourselves. */
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

int trial_mount_arena(const struct trial_place *p)
{
	char tmp[PATH_MAX];
	int r = mount_device(p->arena_device, p->plan->arena_fstype, "noatime,nosuid,nodev",
			     p->arena_dir);

	if (r < 0)
		return log_errno(r, "mount the arena %s", p->arena_device);
	r = spawn_make_home(p->arena_dir, p->user.uid);
	if (r < 0)
		return r;
	snprintf(tmp, sizeof(tmp), "%s/.recount/tmp", p->arena_dir);
	if (mount(tmp, p->tmp_dir, NULL, MS_BIND, NULL))
		return log_errno(-errno, "bind %s to %s", tmp, p->tmp_dir);
	return 0;
}

int trial_unmount_arena(const struct trial_place *p)
{
	int r = unmount_dir(p->tmp_dir);

	if (r == 0)
		r = unmount_dir(p->arena_dir);
	return r < 0 ? log_errno(r, "unmount the arena %s", p->arena_device) : 0;
}

static int write_word(const char *path, const char *word)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, word, strlen(word)) < 0)
		return log_errno(-errno, "write %s to %s", word, path);
	return 0;
}

/* Swap starts every trial empty, so that none inherits the pages of another. */
static int renew_swap(const char *device)
{
	if (!device)
		return 0;
	if (swapoff(device) && errno != EINVAL)
		return log_errno(-errno, "swap off %s", device);
	if (swapon(device, 0))
		return log_errno(-errno, "swap on %s", device);
	return 0;
}

static int open_errors(void)
{
	int fd = memfd_create("build-errors", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	/* Sealed at its size, so that a build which prints without end fails instead of filling
	 * memory; large enough for any that ends. */
	if (fd >= 0 && (ftruncate(fd, ERRORS_MAX_BYTES) ||
			fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK))) {
		close(fd);
		fd = -1;
	}
	return fd < 0 ? -errno : fd;
}

static void read_errors(int fd, char errors[TRIAL_STDERR_BYTES])
{
	ssize_t n = pread(fd, errors, TRIAL_STDERR_BYTES - 1, 0);

	errors[n < 0 ? 0 : n] = '\0';
}

static int make_clean(struct run *run)
{
	struct rusage usage;
	struct spawn s = {
		.chroot_dir = run->place->root_dir,
		.dir = run->dir,
		.argv = run->workload->clean,
		.user = &run->place->user,
		.err_fd = run->errors_fd,
	};
	int status, r;

	r = spawn_prepare(&s);
	if (r < 0)
		return r;
	spawn_go(&s);
	r = spawn_wait(s.pid, spawn_now_ns() + CLEAN_TIMEOUT_MS * INT64_C(1000000), WATCH_SLICE_MS,
		       run->place->alive, run->place->arg, &status, &usage);
	if (r < 0)
		return r;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

/* Clean, then everything out of the page cache: unmounting empties the tree's on every kernel. */
static int flush(struct run *run, struct trial_record *out)
{
	struct timespec settle = {SETTLE_MS / 1000, SETTLE_MS % 1000 * 1000000L};
	int r;

	run->place->busy(run->place->arg, WATCH_WRITEBACK_MS);
	sync();
	r = trial_unmount_arena(run->place);
	if (r == -EBUSY) {
		trial_record_void(out, "unmount-busy");
		/* The bind may be gone already; the arena itself is still there. */
		return trial_unmount_arena(run->place) < 0 ? 0 : trial_mount_arena(run->place);
	}
	if (r < 0)
		return r;
	r = trial_mount_arena(run->place);
	if (r < 0)
		return r;
	for (int times = 0; times < 2; times++)
		if (write_word("/proc/sys/vm/drop_caches", "3") < 0)
			trial_record_void(out, "not-cold");
	nanosleep(&settle, NULL);
	run->place->alive(run->place->arg);
	return 0;
}

/* Before the build only global counters are looked at: statting the tree would warm it. */
static void cold_check(struct trial_place *p, struct trial_record *out)
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

static void cold_verdict(const struct trial_place *p, struct trial_record *out)
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

static int build_argv(struct run *run, unsigned jobs)
{
	size_t n = 0;

	snprintf(run->jobs, sizeof(run->jobs), "-j%u", jobs);
	for (char **word = run->workload->build; *word; word++) {
		if (n + 3 > ARRAY_SIZE(run->argv))
			return -E2BIG;
		run->argv[n++] = *word;
		if (n == 1)
			run->argv[n++] = run->jobs;
	}
	run->argv[n] = NULL;
	return 0;
}

static void usage_figures(const struct rusage *u, struct trial_record *out)
{
	out->user_ns = u->ru_utime.tv_sec * INT64_C(1000000000) + u->ru_utime.tv_usec * 1000;
	out->sys_ns = u->ru_stime.tv_sec * INT64_C(1000000000) + u->ru_stime.tv_usec * 1000;
	out->major_faults = u->ru_majflt;
	out->minor_faults = u->ru_minflt;
	out->voluntary_switches = u->ru_nvcsw;
	out->involuntary_switches = u->ru_nivcsw;
	out->peak_rss_bytes = u->ru_maxrss * INT64_C(1024);
}

static void counter_figures(const struct counters *before, const struct counters *after,
			    struct trial_record *out)
{
	struct counters d;

	counters_delta(before, after, &d);
	out->read_bytes = d.read_bytes;
	out->write_bytes = d.write_bytes;
	out->swap_in_bytes = d.swap_in_bytes;
	out->swap_out_bytes = d.swap_out_bytes;
	out->steal_ns = d.steal_ns;
	out->psi = d.psi;
	if (d.oom_kills > 0)
		trial_record_void(out, "oom-kill");
}

/* T0 to T2. Between the two nothing is allocated or written by us, and the wait wakes up once per
 * slice; everything that needs memory happened in spawn_prepare(). */
static void timed(struct run *run, const struct spawn *prepared, struct trial_record *out)
{
	struct trial_place *p = run->place;
	int64_t deadline = spawn_now_ns() + p->plan->trial_timeout_ms * INT64_C(1000000);
	struct load_snapshot load0, load1;
	struct counters before, after;
	struct memory_gauges at_exit;
	struct rusage usage;
	struct spawn s = *prepared;
	int64_t t0, t1, t2;
	int status, r;

	p->deadline(p->arg, deadline);
	counters_read(p->arena_dev, &before);
	if (run->load)
		load_snapshot(run->load, &load0);
	t0 = raw_ns();
	spawn_go(&s);
	r = spawn_wait(s.pid, deadline, WATCH_SLICE_MS, p->alive, p->arg, &status, &usage);
	t1 = raw_ns();
	if (run->load)
		load_snapshot(run->load, &load1);
	memory_gauges_read(&at_exit);
	p->deadline(p->arg, 0);
	p->busy(p->arg, WATCH_WRITEBACK_MS);
	if (r == 0)
		syncfs(run->arena_fd);
	t2 = raw_ns();
	counters_read(p->arena_dev, &after);
	p->alive(p->arg);
	out->wall_ns = t1 - t0;
	counter_figures(&before, &after, out);
	if (run->load) {
		out->has_load_result = 1;
		load_result(run->load, &load0, &load1, &out->load_result);
	}
	if (r == -ETIMEDOUT) {
		out->status = TRIAL_TIMEOUT;
	} else if (r < 0 || !WIFEXITED(status) || WEXITSTATUS(status)) {
		out->status = TRIAL_FAILED;
	} else {
		out->sync_ns = t2 - t1;
		usage_figures(&usage, out);
		if (at_exit.dirty_bytes != ABSENT && at_exit.writeback_bytes != ABSENT)
			out->dirty_at_exit_bytes = at_exit.dirty_bytes + at_exit.writeback_bytes;
	}
}

static int start_load(struct run *run, struct trial_record *out)
{
	const struct trial_place *p = run->place;
	struct load_place place = {
		.chroot_dir = p->root_dir, .arena_dir = p->arena_dir, .user = &p->user};
	int r;

	if (!strcmp(run->load_plan->kind, "none"))
		return 0;
	p->deadline(p->arg,
		    spawn_now_ns() + (p->plan->load_start_timeout_ms + run->load_plan->steady_ms) *
					     INT64_C(1000000));
	r = load_start(run->load_plan, &place, p->plan->load_start_timeout_ms, p->alive, p->arg,
		       &run->load);
	p->deadline(p->arg, 0);
	if (r < 0) {
		log_errno(r, "start the load %s", run->load_plan->name);
		trial_record_void(out, "load-not-started");
	}
	return r;
}

static void build(struct run *run, struct trial_record *out)
{
	struct spawn s = {
		.chroot_dir = run->place->root_dir,
		.dir = run->dir,
		.argv = run->argv,
		.user = &run->place->user,
		.err_fd = run->errors_fd,
	};
	int r = spawn_prepare(&s);

	if (r < 0) {
		log_errno(r, "start the build");
		out->status = TRIAL_FAILED;
		return;
	}
	timed(run, &s, out);
}

static void product_check(const struct run *run, struct trial_record *out)
{
	char path[PATH_MAX * 2];
	int r;

	if (snprintf(path, sizeof(path), "%s%s", run->place->root_dir, run->dir) >=
	    (int)sizeof(path))
		return;
	run->place->busy(run->place->arg, WATCH_WRITEBACK_MS);
	r = digest_product(path, run->workload->product, out->product_sha256);
	run->place->alive(run->place->arg);
	if (r < 0)
		log_errno(r, "hash the product %s/%s", path, run->workload->product);
	if (r < 0 || strcmp(out->product_sha256, run->workload->product_sha256) != 0)
		trial_record_void(out, "product-differs");
}

static void loaded_build(struct run *run, struct trial_record *out)
{
	if (start_load(run, out) < 0)
		return;
	build(run, out);
	if (run->load && load_stop(run->load) < 0)
		trial_record_void(out, "load-died");
	run->load = NULL;
	/* Whatever a build left behind, or what a timeout left running. */
	trial_kill_leftovers();
	if (out->status != TRIAL_FAILED && out->status != TRIAL_TIMEOUT) {
		product_check(run, out);
		cold_verdict(run->place, out);
		if (!strcmp(run->load_plan->kind, "mem") && out->swap_out_bytes <= 0)
			trial_record_void(out, "load-did-not-swap");
	}
}

static void identify(const struct trial_place *p, const struct plan_boot *boot,
		     const struct plan_trial *trial, unsigned attempt, struct trial_record *out)
{
	trial_record_init(out);
	out->status = TRIAL_OK;
	out->boot = boot->boot;
	out->round = boot->round;
	out->attempt = attempt;
	out->trial = trial->trial;
	out->jobs = trial->jobs;
	snprintf(out->entry, sizeof(out->entry), "%s", boot->entry);
	snprintf(out->workload, sizeof(out->workload), "%s", trial->workload);
	snprintf(out->load, sizeof(out->load), "%s", trial->load);
	snprintf(out->arena_restore, sizeof(out->arena_restore), "%s", p->arena_restore);
	snprintf(out->arena_fstype, sizeof(out->arena_fstype), "%s", p->plan->arena_fstype);
}

static int run_steps(struct run *run, const struct plan_trial *trial, struct trial_record *out)
{
	int r = build_argv(run, trial->jobs);

	if (r < 0)
		return r;
	trial_kill_leftovers();
	run->place->busy(run->place->arg, WATCH_WRITEBACK_MS);
	if (renew_swap(run->place->swap_device) < 0)
		trial_record_void(out, "swap-not-renewed");
	r = make_clean(run);
	if (r < 0) {
		log_errno(r, "run make clean in %s", run->dir);
		trial_kill_leftovers();
		out->status = TRIAL_FAILED;
		return 0;
	}
	/* A process that clean left behind would keep the arena busy. */
	trial_kill_leftovers();
	r = flush(run, out);
	if (r < 0 || out->status != TRIAL_OK)
		return r;
	cold_check(run->place, out);
	run->arena_fd = open(run->place->arena_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (run->arena_fd < 0)
		return log_errno(-errno, "open %s", run->place->arena_dir);
	loaded_build(run, out);
	close(run->arena_fd);
	return 0;
}

int trial_run(struct trial_place *p, const struct plan_boot *boot, const struct plan_trial *trial,
	      unsigned attempt, char errors[TRIAL_STDERR_BYTES], struct trial_record *out)
{
	struct run run = {
		.place = p,
		.workload = plan_find_workload(p->plan, trial->workload),
		.load_plan = plan_find_load(p->plan, trial->load),
	};
	_cleanup_close_ int errors_fd = open_errors();
	int r;

	errors[0] = '\0';
	identify(p, boot, trial, attempt, out);
	if (!run.workload || !run.load_plan || errors_fd < 0) {
		out->status = TRIAL_FAILED;
		return 0;
	}
	run.errors_fd = errors_fd;
	snprintf(run.dir, sizeof(run.dir), "%s/%s", SPAWN_ARENA, run.workload->dir);
	r = run_steps(&run, trial, out);
	read_errors(errors_fd, errors);
	if (out->status == TRIAL_OK && boot->boot == 0)
		out->status = TRIAL_DISCARDED;
	return r;
}
