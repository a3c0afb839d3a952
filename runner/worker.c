/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The numbered steps of one boot; design and order are in recount(8), BOOT SEQUENCE. */
#include "runner/worker.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "initramfs/mounts.h"
#include "results/log.h"
#include "runner/arena.h"
#include "runner/bmc.h"
#include "runner/drivers.h"
#include "runner/key.h"
#include "runner/partitions.h"
#include "runner/proc.h"
#include "runner/trial.h"
#include "runner/visit.h"

#define ROOT_DIR "/run/recount/root"

struct work {
	struct watch *watch;
	struct visit visit;
	struct keys keys;
	char root_device[PARTITION_PATH], arena_device[PARTITION_PATH], swap_device[PARTITION_PATH];
	dev_t arena_dev;
	struct place place;
	const char *trouble; /* the reason to book when the boot ends without a result */
	int bmc_asked;	     /* to stop its watchdog */
};

/* Notes why the boot ends and passes the error on. */
static int trouble(struct work *w, int r, const char *reason)
{
	w->trouble = reason;
	return r;
}

static void answer(void *arg)
{
	watch_answer(((struct work *)arg)->watch);
}

static void be_busy(void *arg, int64_t ms)
{
	watch_busy(((struct work *)arg)->watch, ms);
}

static void begin_step(void *arg, int64_t ms)
{
	watch_step(((struct work *)arg)->watch, ms);
}

/* A person who wants the machine back gets it before anything else is begun. */
static int look_for_key(struct work *w)
{
	if (!key_held(&w->keys))
		return 0;
	log_info("h was pressed: the machine goes home and waits for recount resume");
	return trouble(w, -ECANCELED, "held");
}

static int find_and_protect(struct work *w)
{
	const struct plan *plan = w->visit.plan;
	const char *writable[3] = {w->visit.store_device, w->arena_device};
	size_t n = 2;
	dev_t dev;
	int r = partition_find(w->watch, "arena", plan->arena_uuid, w->arena_device, &w->arena_dev);

	if (r < 0)
		return trouble(w, r, "arena-missing");
	if (partitions_hibernated())
		return trouble(w, -EBUSY, "hibernated");
	r = partition_find(w->watch, "root", plan->root_uuid, w->root_device, &dev);
	if (r < 0)
		return trouble(w, r, "root-missing");
	if (plan->swap_uuid) {
		r = partition_find(w->watch, "swap", plan->swap_uuid, w->swap_device, &dev);
		if (r < 0)
			return trouble(w, r, "swap-missing");
		writable[n++] = w->swap_device;
	}
	return partitions_protect(writable, n);
}

static void bring_up_loopback(void)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr))
		log_errno(-errno, "bring up the loopback");
}

/*
 * Before anything is timed, the timer that cures early hangs has to stop: it knows nothing of
 * trials. A boot that cannot be sure of that must not begin them.
 */
static int stop_bmc(struct work *w)
{
	unsigned armed_s = w->visit.bmc_s;
	int r = -ENODEV, tries = armed_s ? BMC_STOP_TRIES : 1;

	if (!plan_uses_bmc(w->visit.plan))
		return 0;
	w->bmc_asked = 1;
	/* Also for the next boot, which is armed from here. */
	drivers_bmc(w->watch, ROOT_DIR);
	be_busy(w, WATCH_WRITEBACK_MS);
	/* A BMC that is busy with its own start may be silent for a while. */
	if (bmc_wait("", armed_s ? BMC_DEVICE_MS : 0))
		do
			r = bmc_stop("");
		while (r == -ETIMEDOUT && --tries);
	answer(w);
	if (r == 0 || !armed_s)
		return 0;
	return trouble(w, log_errno(r, "stop the BMC's watchdog, armed for %u s", armed_s),
		       "bmc-not-stopped");
}

static int open_root(struct work *w)
{
	static const char *const keep[] = {"recount-init", NULL};
	const struct plan *plan = w->visit.plan;
	int r;

	drivers_filesystem(plan->root_fstype);
	mkdir(ROOT_DIR, 0755);
	r = mount_root(w->root_device, plan->root_fstype, ROOT_DIR);
	if (r < 0)
		return trouble(w, log_errno(r, "mount the root %s read-only", w->root_device),
			       r == -EUCLEAN ? "root-dirty" : "root-not-mounted");
	r = mount_chroot(ROOT_DIR);
	if (r < 0)
		return r;
	/* The same memory for every entry: the unpacked initrd goes, and no helper is ever run. */
	if (rootfs_empty(keep) < 0)
		log_warn("the unpacked initrd stays in memory");
	proc_sysctl("kernel.modprobe", "\n");
	bring_up_loopback();
	if (drivers_load(w->watch, ROOT_DIR, MODULES_PLATFORM) < 0)
		log_warn("going on without the root's drivers for frequency, heat and watchdog");
	r = stop_bmc(w);
	if (r < 0)
		return r;
	drivers_evidence(ROOT_DIR, w->visit.cmdline);
	drivers_watchdog(ROOT_DIR);
	atomic_store(&w->watch->drivers_loaded, 1);
	return 0;
}

static void set_the_place(struct work *w)
{
	const struct plan *plan = w->visit.plan;

	w->place = (struct place){
		.plan = plan,
		.root_dir = ROOT_DIR,
		.arena_dir = ROOT_DIR SPAWN_ARENA,
		.arena_device = w->arena_device,
		.tmp_dir = ROOT_DIR "/tmp",
		.arena_dev = w->arena_dev,
		.swap_device = plan->swap_uuid ? w->swap_device : NULL,
		.user = {plan->build_uid, plan->umask, plan->nice, plan->oom_score_adj},
		.alive = answer,
		.busy = be_busy,
		.step = begin_step,
		.arg = w,
	};
}

static int open_arena(struct work *w)
{
	int r;

	set_the_place(w);
	/* From now on orphans come to us, so that none is left when a trial begins: those of
	 * builds, but not who waits for a disk that does not answer. */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	r = arena_check(&w->place);
	if (r < 0)
		return trouble(w, r, "arena-damaged");
	r = arena_mount(&w->place);
	return r < 0 ? trouble(w, r, "arena-not-mounted") : 0;
}

static void close_arena(struct work *w)
{
	arena_kill_leftovers();
	be_busy(w, WATCH_WRITEBACK_MS);
	if (arena_unmount(&w->place) < 0)
		log_warn("the arena will have to be checked in the next boot");
	answer(w);
}

static void show(const struct plan_trial *trial, const struct trial_record *r)
{
	char time[32] = "-";

	if (r->wall_ns != ABSENT) {
		int64_t tenths = r->wall_ns / 100000000;

		snprintf(time, sizeof(time), "%d:%02d.%d", (int)(tenths / 600),
			 (int)(tenths / 10 % 60), (int)(tenths % 10));
	}
	log_info("  %-12s -j%-3u %10s   %s %s", trial->load, trial->jobs, time,
		 trial_status_name(r->status), r->n_voids ? r->voids[0] : "");
}

static int64_t canary_bytes(const struct visit *v, const char *workload)
{
	for (size_t i = 0; i < v->plan->n_workloads; i++)
		if (!strcmp(v->plan->workloads[i].name, workload))
			return v->canary_read_bytes[i];
	return ABSENT;
}

/* Beside a load that takes all memory and CPU, the worker must still see a build end at once; its
 * children inherit neither. */
static void stay_awake(void)
{
	struct sched_param param = {.sched_priority = 1};

	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT))
		log_errno(-errno, "lock the worker in memory");
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param))
		log_errno(-errno, "make the worker real-time");
	/* The loads and builds get the plan's own value. */
	if (proc_write("/proc/self/oom_score_adj", "-1000") < 0)
		log_warn("a machine out of memory may choose the worker");
}

static int run_trial(struct work *w, const struct plan_trial *trial)
{
	static char errors[TRIAL_STDERR_BYTES];
	struct visit *v = &w->visit;
	struct trial_record record;
	int r;

	/* Near the end of the kernel's log, so that a panic's text tells which attempt it was. */
	log_info("  %-12s -j%-3u begins   %s", trial->load, trial->jobs, v->token);
	w->place.canary_read_bytes = canary_bytes(v, trial->workload);
	r = trial_run(&w->place, v->boot, trial, v->attempt, errors, &record);
	if (r < 0)
		return trouble(w, r, "arena-not-mounted");
	begin_step(w, 2 * WATCH_WRITEBACK_MS);
	be_busy(w, WATCH_WRITEBACK_MS);
	log_info("  %-12s -j%-3u writes its record", trial->load, trial->jobs);
	r = visit_put_trial(v, &record, errors);
	if (r < 0)
		return trouble(w, r, "store-not-written");
	begin_step(w, v->plan->boot_timeout_ms);
	show(trial, &record);
	return 0;
}

static int run_trials(struct work *w)
{
	const struct visit *v = &w->visit;
	int r = look_for_key(w);

	stay_awake();
	for (size_t t = 0; r == 0 && t < v->boot->n_trials; t++) {
		if (!v->todo[t])
			continue;
		r = run_trial(w, &v->boot->trials[t]);
		if (r == 0)
			r = look_for_key(w);
	}
	return r;
}

/* What the supervisor costs, for dmesg-N.txt. */
static void show_supervisor(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/1/smaps_rollup", "re");
	char line[256];
	long kib;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Rss: %ld", &kib) == 1)
			log_info("PID 1 has %ld KiB resident", kib);
}

/* Protects the others before the first mount. */
static int find_store(struct work *w)
{
	struct visit *v = &w->visit;
	const char *const only_store[] = {v->store_device};
	dev_t dev;
	int r = partition_find(w->watch, "store", v->store_uuid, v->store_device, &dev);

	if (r == 0)
		r = partitions_protect(only_store, ARRAY_SIZE(only_store));
	be_busy(w, WATCH_WRITEBACK_MS);
	if (r == 0)
		r = visit_identify(v);
	answer(w);
	return r;
}

static int prepare_boot(struct work *w)
{
	int r = visit_read_cmdline(&w->visit);

	if (r < 0)
		return r;
	/* Early and alone: what dies while modules are loaded shall be known by it. */
	log_info("token %s     h: hold", w->visit.token);
	r = drivers_load(w->watch, "", MODULES_HARDWARE);
	if (r < 0)
		return r;
	drivers_filesystem("ext4");
	drivers_evidence("", w->visit.cmdline);
	return find_store(w);
}

static int serve(struct work *w)
{
	struct visit *v = &w->visit;
	int r;

	begin_step(w, v->plan->boot_timeout_ms);
	log_info("%s: boot %u of %zu, round %u, attempt %u: kernel %s     h: hold", v->plan->id,
		 v->boot->boot, v->plan->n_boots - 1, v->boot->round, v->attempt, v->entry->label);
	for (size_t i = 0; i < v->plan->n_panic; i++)
		proc_sysctl(v->plan->panic[i].name, v->plan->panic[i].value);
	r = visit_reached(v);
	if (r < 0)
		return trouble(w, r, r == -EPERM ? "wrong-entry" : "store-not-written");
	r = look_for_key(w);
	if (r == 0)
		r = find_and_protect(w);
	if (r == 0)
		r = open_root(w);
	if (r == 0)
		r = open_arena(w);
	if (r < 0)
		return r;
	if (visit_put_environment(v) < 0)
		log_warn("going on without a snapshot of the environment");
	r = run_trials(w);
	close_arena(w);
	show_supervisor();
	return r;
}

/* The very last: from here to the reboot is only PID 1's way. */
static int end_well(struct work *w)
{
	unsigned bmc_s;
	int r = visit_done(&w->visit, &bmc_s);

	if (r == 0 && bmc_s && bmc_arm("", bmc_s) < 0)
		log_warn("the BMC's watchdog is not armed for the next boot");
	return r;
}

static int end(struct work *w, int r)
{
	begin_step(w, 2 * WATCH_WRITEBACK_MS);
	be_busy(w, WATCH_WRITEBACK_MS);
	if (r == 0)
		return end_well(w);
	/* The sooner the better. Most kernels have its drivers on the root alone; then the referee
	 * stops it. */
	if (!w->bmc_asked && plan_uses_bmc(w->visit.plan) && bmc_wait("", 0))
		(void)!bmc_stop("");
	if (visit_fail(&w->visit, w->trouble ? w->trouble : "gave-up") < 0)
		log_warn("the referee will have to guess why this boot ended");
	return r;
}

int worker_run(struct watch *watch)
{
	/* A ring of pipes on a machine of many CPUs takes more than the kernel's default. */
	struct rlimit files = {65536, 65536};
	static struct work work;
	int r;

	if (setrlimit(RLIMIT_NOFILE, &files))
		log_errno(-errno, "raise the limit of open files");

	work.watch = watch;
	mkdir("/run/recount", 0755);
	key_open("", &work.keys);
	r = prepare_boot(&work);
	if (r == 0)
		r = end(&work, serve(&work));
	key_close(&work.keys);
	if (r < 0)
		log_warn("this boot ends without a result; the machine goes home");
	return r;
}

int worker_bury(struct watch *watch, const char *reason)
{
	/* What was killed has to be gone before it lets go of the store. */
	struct timespec dying = {.tv_nsec = 200000000};
	static struct work work;
	int r;

	work.watch = watch;
	kill(-1, SIGKILL);
	nanosleep(&dying, NULL);
	r = visit_read_cmdline(&work.visit);
	if (r == 0)
		r = visit_take_over();
	if (r == 0)
		r = find_store(&work);
	return r < 0 ? r : visit_fail(&work.visit, reason);
}
