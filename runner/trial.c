/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The fixed cold order, the timed region, the counters and the void rules of one trial. */
#include "runner/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "results/digest.h"
#include "results/log.h"
#include "runner/arena.h"
#include "runner/cold.h"
#include "runner/counters.h"
#include "runner/load.h"
#include "runner/watch.h"

#define ERRORS_MAX_BYTES (64 << 20)
#define CLEAN_TIMEOUT_MS 600000
#define FLUSH_TIMEOUT_MS (2 * WATCH_WRITEBACK_MS)

struct run { /* one trial under way */
	struct place *place;
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
	struct place *p = run->place;
	struct spawn s = {
		.chroot_dir = p->root_dir,
		.dir = run->dir,
		.argv = run->workload->clean,
		.user = &p->user,
		.err_fd = run->errors_fd,
	};
	int status, r;

	p->step(p->arg, 2 * CLEAN_TIMEOUT_MS);
	r = spawn_watched(&s, CLEAN_TIMEOUT_MS, WATCH_SLICE_MS, p->alive, p->arg, &status);
	/* Also what it left in the background: that would keep the arena busy. */
	arena_kill_leftovers();
	if (r < 0)
		return r;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
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
	struct place *p = run->place;
	int64_t deadline;
	struct load_snapshot load0, load1;
	struct counters before, after;
	struct memory_gauges at_exit;
	struct rusage usage;
	struct spawn s = *prepared;
	int64_t t0, t1, t2;
	int status, r;

	p->step(p->arg, p->plan->trial_timeout_ms);
	deadline = spawn_now_ns() + p->plan->trial_timeout_ms * INT64_C(1000000);
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
	p->step(p->arg, FLUSH_TIMEOUT_MS);
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
	const struct place *p = run->place;
	struct load_place place = {
		.chroot_dir = p->root_dir, .arena_dir = p->arena_dir, .user = &p->user};
	int r;

	if (!strcmp(run->load_plan->kind, "none"))
		return 0;
	p->step(p->arg, p->plan->load_start_timeout_ms + run->load_plan->steady_ms);
	r = load_start(run->load_plan, &place, p->plan->load_start_timeout_ms, p->alive, p->arg,
		       &run->load);
	p->step(p->arg, FLUSH_TIMEOUT_MS);
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
	arena_kill_leftovers();
	if (out->status != TRIAL_FAILED && out->status != TRIAL_TIMEOUT) {
		product_check(run, out);
		cold_verdict(run->place, out);
		if (!strcmp(run->load_plan->kind, "mem") && out->swap_out_bytes <= 0)
			trial_record_void(out, "load-did-not-swap");
	}
}

static void identify(const struct place *p, const struct plan_boot *boot,
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
	struct place *p = run->place;
	int r = build_argv(run, trial->jobs);

	if (r < 0)
		return r;
	arena_kill_leftovers();
	p->step(p->arg, FLUSH_TIMEOUT_MS);
	p->busy(p->arg, WATCH_WRITEBACK_MS);
	cold_swap(p, out);
	r = make_clean(run);
	if (r < 0) {
		log_errno(r, "run make clean in %s", run->dir);
		out->status = r == -ETIMEDOUT ? TRIAL_TIMEOUT : TRIAL_FAILED;
		return 0;
	}
	p->step(p->arg, FLUSH_TIMEOUT_MS);
	r = cold_flush(p, out);
	if (r < 0 || out->status != TRIAL_OK)
		return r;
	cold_check(p, out);
	run->arena_fd = open(p->arena_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (run->arena_fd < 0)
		return log_errno(-errno, "open %s", p->arena_dir);
	loaded_build(run, out);
	close(run->arena_fd);
	return 0;
}

int trial_run(struct place *p, const struct plan_boot *boot, const struct plan_trial *trial,
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
