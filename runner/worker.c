/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The numbered steps of one boot; design and order are in recount(8), BOOT SEQUENCE. */
#include "runner/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include "initramfs/devices.h"
#include "initramfs/modules.h"
#include "initramfs/mounts.h"
#include "results/log.h"
#include "runner/trial.h"
#include "runner/visit.h"

#define ROOT_DIR	"/run/recount/root"
#define DEVICE_WAIT_MS	60000
#define DEVICE_POLL_MS	100
#define MODULE_POLL_MS	2000
#define FSCK_TIMEOUT_MS 900000

struct work {
	struct watch *watch;
	struct visit visit;
	char root_device[288], arena_device[288], swap_device[288];
	dev_t arena_dev;
	const char *arena_restore;
	const char *trouble; /* the reason to book when the boot ends without a result */
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

static void set_deadline(void *arg, int64_t ns)
{
	struct work *w = arg;

	watch_answer(w->watch);
	atomic_store(&w->watch->deadline_ns, ns);
}

static void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

static int load_modules(struct work *w, const char *prefix, enum modules_pass pass)
{
	struct modules_result result;
	struct utsname uts;
	char dir[512];
	int r;

	uname(&uts);
	snprintf(dir, sizeof(dir), "%s/lib/modules/%s", prefix, uts.release);
	/* A host adapter may take its time to find its disks. */
	be_busy(w, WATCH_WRITEBACK_MS);
	r = modules_load(dir, "/sys", pass, &result);
	answer(w);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return log_errno(r, "load modules from %s", dir);
	log_info("modules from %s: %u loaded, %u failed%s", dir, result.loaded, result.failed,
		 result.text_index ? " (no .bin index; modules.dep was read)" : "");
	return 0;
}

static void load_filesystem(const char *name)
{
	struct utsname uts;
	char dir[512];

	uname(&uts);
	snprintf(dir, sizeof(dir), "/lib/modules/%s", uts.release);
	/* Built in, or no module: the mount will tell. */
	if (modules_load_name(dir, name) < 0)
		return;
}

/* Waits, bounded, until exactly one device carries @uuid. A disk that comes late, as on USB, may
 * ask for modules of its own. */
static int find_device(struct work *w, const char *what, const char *uuid, char path[288],
		       dev_t *dev)
{
	int64_t deadline = spawn_now_ns() + DEVICE_WAIT_MS * INT64_C(1000000);
	int64_t modules = spawn_now_ns() + MODULE_POLL_MS * INT64_C(1000000);
	const struct device *d;
	int r;

	for (;;) {
		struct device_list list = {0};

		answer(w);
		if (spawn_now_ns() > modules) {
			if (load_modules(w, "", MODULES_HARDWARE) < 0)
				log_warn("going on with the modules there are");
			modules = spawn_now_ns() + MODULE_POLL_MS * INT64_C(1000000);
		}
		r = devices_scan("", &list);
		if (r == 0)
			r = devices_by_uuid(&list, uuid, &d);
		if (r == 0) {
			snprintf(path, 288, "%s", d->path);
			if (dev)
				*dev = makedev(d->maj, d->min);
			device_list_free(&list);
			return 0;
		}
		device_list_free(&list);
		if (r == -ENOTUNIQ || spawn_now_ns() > deadline)
			return log_errno(r, "find the %s (file system %s)", what, uuid);
		pause_ms(DEVICE_POLL_MS);
	}
}

/* Nothing of the machine but what the plan names may be written to, not even by a journal. */
static int protect_devices(const char *const *writable, size_t n)
{
	struct device_list list = {0};
	int r = devices_scan("", &list);

	for (size_t i = 0; r == 0 && i < list.n; i++) {
		int keep = 0;

		for (size_t k = 0; k < n; k++)
			keep |= !strcmp(list.devices[i].path, writable[k]);
		/* A whole disk's flag would cover its partitions. */
		if (!list.devices[i].partition && !*list.devices[i].type)
			continue;
		if (device_set_read_only(list.devices[i].path, !keep) < 0 && !keep)
			log_warn("cannot set %s read-only", list.devices[i].path);
	}
	device_list_free(&list);
	return r;
}

static int find_and_protect(struct work *w)
{
	const struct plan *plan = w->visit.plan;
	const char *writable[3] = {w->visit.store_device, w->arena_device};
	size_t n = 2;
	int r = find_device(w, "arena", plan->arena_uuid, w->arena_device, &w->arena_dev);

	if (r < 0)
		return trouble(w, r, "arena-missing");
	r = find_device(w, "root", plan->root_uuid, w->root_device, NULL);
	if (r < 0)
		return trouble(w, r, "root-missing");
	if (plan->swap_uuid) {
		r = find_device(w, "swap", plan->swap_uuid, w->swap_device, NULL);
		if (r < 0)
			return trouble(w, r, "swap-missing");
		writable[n++] = w->swap_device;
	}
	return protect_devices(writable, n);
}

static void set_sysctl(const char *name, const char *value)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	for (char *c = path + strlen("/proc/sys/"); *c; c++)
		if (*c == '.')
			*c = '/';
	fd = open(path, O_WRONLY | O_CLOEXEC);
	/* A kernel without a detector has no switch for it either. */
	if (fd < 0)
		return;
	if (write(fd, value, strlen(value)) < 0)
		log_errno(-errno, "set %s to %s", name, value);
	close(fd);
}

static void bring_up_loopback(void)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr))
		log_errno(-errno, "bring up the loopback");
}

static int open_root(struct work *w)
{
	static const char *const keep[] = {"recount-init", NULL};
	const struct plan *plan = w->visit.plan;
	int r;

	load_filesystem(plan->root_fstype);
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
	set_sysctl("kernel.modprobe", "\n");
	bring_up_loopback();
	if (load_modules(w, ROOT_DIR, MODULES_PLATFORM) < 0)
		log_warn("going on without the root's drivers for frequency and heat");
	atomic_store(&w->watch->drivers_loaded, 1);
	return 0;
}

/* The root's own e2fsck; 0 clean or repaired, 1 repaired (e2fsck(8)). */
static int check_arena(struct work *w)
{
	struct spawn_user root = {.umask = 022};
	char *argv[] = {"e2fsck", "-p", w->arena_device, NULL};
	struct spawn s = {
		.chroot_dir = ROOT_DIR, .dir = "/", .argv = argv, .user = &root, .err_fd = -1};
	struct rusage usage;
	int status, r;

	log_info("the arena was not cleanly unmounted: checking it");
	r = spawn_prepare(&s);
	if (r < 0)
		return r;
	spawn_go(&s);
	r = spawn_wait(s.pid, spawn_now_ns() + FSCK_TIMEOUT_MS * INT64_C(1000000), WATCH_SLICE_MS,
		       answer, w, &status, &usage);
	if (r < 0)
		return r;
	return WIFEXITED(status) && WEXITSTATUS(status) <= 1 ? 0 : -EUCLEAN;
}

static int open_arena(struct work *w)
{
	struct ext4_facts facts;
	int r = device_ext4_facts(w->arena_device, &facts);

	w->arena_restore = "clean";
	if (r == 0 && (facts.needs_recovery || !facts.clean)) {
		r = check_arena(w);
		w->arena_restore = "checked";
	}
	if (r < 0)
		return trouble(w, log_errno(r, "use the arena %s", w->arena_device),
			       "arena-damaged");
	return 0;
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
}

static int run_trials(struct work *w)
{
	struct visit *v = &w->visit;
	static char errors[TRIAL_STDERR_BYTES];
	struct trial_place place = {
		.plan = v->plan,
		.root_dir = ROOT_DIR,
		.arena_dir = ROOT_DIR SPAWN_ARENA,
		.arena_device = w->arena_device,
		.tmp_dir = ROOT_DIR "/tmp",
		.arena_dev = w->arena_dev,
		.swap_device = v->plan->swap_uuid ? w->swap_device : NULL,
		.arena_restore = w->arena_restore,
		.user = {v->plan->build_uid, v->plan->umask, v->plan->nice, v->plan->oom_score_adj},
		.alive = answer,
		.busy = be_busy,
		.deadline = set_deadline,
		.arg = w,
	};
	int r = trial_mount_arena(&place);

	stay_awake();
	for (size_t t = 0; r == 0 && t < v->boot->n_trials; t++) {
		const struct plan_trial *trial = &v->boot->trials[t];
		struct trial_record record;

		if (!v->todo[t])
			continue;
		answer(w);
		log_info("  %-12s -j%-3u begins", trial->load, trial->jobs);
		place.canary_read_bytes = canary_bytes(v, trial->workload);
		r = trial_run(&place, v->boot, trial, v->attempt, errors, &record);
		be_busy(w, WATCH_WRITEBACK_MS);
		if (r == 0)
			r = visit_put_trial(v, &record, errors);
		answer(w);
		if (r == 0)
			show(trial, &record);
	}
	trial_kill_leftovers();
	be_busy(w, WATCH_WRITEBACK_MS);
	if (trial_unmount_arena(&place) < 0)
		log_warn("the arena will have to be checked in the next boot");
	answer(w);
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

static int prepare_boot(struct work *w)
{
	struct visit *v = &w->visit;
	const char *const only_store[] = {v->store_device};
	int r = visit_read_cmdline(v);

	if (r == 0)
		r = load_modules(w, "", MODULES_HARDWARE);
	if (r < 0)
		return r;
	load_filesystem("ext4");
	r = find_device(w, "store", v->store_uuid, v->store_device, NULL);
	if (r == 0)
		r = protect_devices(only_store, ARRAY_SIZE(only_store));
	be_busy(w, WATCH_WRITEBACK_MS);
	if (r == 0)
		r = visit_identify(v);
	if (r == 0)
		r = visit_reached(v);
	answer(w);
	return r;
}

static int serve(struct work *w)
{
	struct visit *v = &w->visit;
	int r;

	log_info("%s: boot %u of %zu, round %u, attempt %u: kernel %s", v->plan->id, v->boot->boot,
		 v->plan->n_boots - 1, v->boot->round, v->attempt, v->entry->label);
	for (size_t i = 0; i < v->plan->n_panic; i++)
		set_sysctl(v->plan->panic[i].name, v->plan->panic[i].value);
	r = find_and_protect(w);
	if (r == 0)
		r = open_root(w);
	if (r == 0)
		r = open_arena(w);
	if (r == 0 && visit_put_environment(v) < 0)
		log_warn("going on without a snapshot of the environment");
	if (r == 0)
		r = run_trials(w);
	show_supervisor();
	be_busy(w, WATCH_WRITEBACK_MS);
	if (r == 0)
		return visit_done(v);
	if (visit_fail(v, w->trouble ? w->trouble : "gave-up") < 0)
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
	/* Orphans of a build come to us, so that none is left when a trial begins. */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	mkdir("/run/recount", 0755);
	r = prepare_boot(&work);
	if (r == 0)
		r = serve(&work);
	if (r < 0)
		log_warn("this boot ends without a result; the machine goes home");
	return r;
}
