/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * recount-init: PID 1 of a measuring boot. It only supervises: everything that can block is done by
 * a forked worker (worker.c) or one of its own two threads. It never exits, never allocates after
 * start, and its safe end is always a reboot.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <time.h>

#include "initramfs/mounts.h"
#include "results/log.h"
#include "runner/proc.h"
#include "runner/thread.h"
#include "runner/watch.h"
#include "runner/watchdog.h"
#include "runner/worker.h"

#define SYSRQ		 "/proc/sysrq-trigger"
#define BURY_MS		 30000
#define LAST_RESORT_S	 (BURY_MS / 1000 + 30)
#define WATCHDOG_POLL_MS 2000
#define POLL_MS		 100

struct supervisor {
	struct watch *watch;
	pid_t worker;
	struct watchdog watchdog;
	sem_t end;    /* posted when the machine is to be rebooted, whatever blocks */
	int sysrq_fd; /* opened while opening still works; -1: this kernel has none */
};

enum fate { FATE_LIVES, FATE_ENDED, FATE_DIED };

/* Messages go to the kernel's log, which also prints them on every console. */
static void open_log(void)
{
	int fd;

	proc_sysctl("kernel.printk_devkmsg", "on\n");
	fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		fd = open("/dev/console", O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		log_to(fd);
}

/* Locked in memory and real-time: a thrashing machine must not silence its supervisor. */
static void harden(void)
{
	struct sched_param param = {.sched_priority = 1};

	/* The program lies in the rootfs, whose pages never leave memory; only what is written to
	 * needs the lock. */
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT))
		log_errno(-errno, "lock PID 1 in memory");
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param))
		log_errno(-errno, "make PID 1 real-time");
}

/* An orderly reboot may block behind a device that does not answer, and a fork behind memory that
 * does not come: this thread needs neither. */
static void *last_resort(void *arg)
{
	struct supervisor *s = arg;
	struct timespec wait = {.tv_sec = LAST_RESORT_S};

	thread_wait(&s->end);
	while (nanosleep(&wait, &wait) && errno == EINTR)
		;
	for (;;) {
		if (write(s->sysrq_fd, "b", 1) < 0)
			reboot(RB_AUTOBOOT);
		wait.tv_sec = 1;
		nanosleep(&wait, NULL);
	}
	return NULL;
}

/* What is on the store is durable already: there is nothing to sync. */
static _Noreturn void reboot_now(struct supervisor *s)
{
	sem_post(&s->end);
	log_info("rebooting");
	reboot(RB_AUTOBOOT);
	if (write(s->sysrq_fd, "b", 1) < 0)
		log_errno(-errno, "reboot");
	for (;;)
		pause();
}

/* Collects every ended child. */
static enum fate reap(pid_t worker)
{
	enum fate fate = FATE_LIVES;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != worker)
			continue;
		fate = FATE_ENDED;
		if (WIFSIGNALED(status)) {
			fate = FATE_DIED;
			log_warn("the worker was ended by signal %d", WTERMSIG(status));
		} else if (WEXITSTATUS(status)) {
			log_warn("the worker gave up");
		}
	}
	return fate;
}

/* Why the machine must not wait any longer for the worker, as in failed-N.json; or NULL. */
static const char *overdue(const struct watch *watch)
{
	int64_t now = spawn_now_ns();
	int64_t grace = WATCH_GRACE_MS * INT64_C(1000000);

	if (now - atomic_load(&watch->answered_ns) > WATCH_SILENCE_MS * INT64_C(1000000) + grace) {
		log_warn("the worker does not answer: rebooting over its head");
		return "no-answer";
	}
	if (now > atomic_load(&watch->deadline_ns) + grace) {
		log_warn("the deadline has passed: rebooting over the worker's head");
		return "timeout";
	}
	return NULL;
}

/* The worker can no longer write down why this boot ends: a child of ours tries to, for as long as
 * a healthy machine needs. */
static _Noreturn void bury(struct supervisor *s, const char *reason)
{
	struct timespec tick = {.tv_nsec = POLL_MS * 1000000L};
	pid_t pid;

	/* From here on the reboot comes, even if this fork never returns. */
	sem_post(&s->end);
	pid = fork();
	if (pid == 0)
		_exit(worker_bury(s->watch, reason) < 0 ? 1 : 0);
	for (int i = 0; pid > 0 && i < BURY_MS / POLL_MS && waitpid(pid, NULL, WNOHANG) == 0; i++)
		nanosleep(&tick, NULL);
	reboot_now(s);
}

/* Until the drivers are loaded the watchdog is looked for more often. */
static int tick_of(struct supervisor *s)
{
	int timeout_ms = atomic_load(&s->watchdog.timeout_s) * 1000;
	int tick_ms = timeout_ms || atomic_load(&s->watch->drivers_loaded) ? WATCH_SLICE_MS
									   : WATCHDOG_POLL_MS;

	return timeout_ms && timeout_ms / 3 < tick_ms ? timeout_ms / 3 : tick_ms;
}

static _Noreturn void supervise(struct supervisor *s)
{
	struct timespec wait;
	const char *why;
	sigset_t chld;
	int tick_ms;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	for (;;) {
		why = overdue(s->watch);
		if (why)
			bury(s, why);
		watchdog_turn(&s->watchdog);
		tick_ms = tick_of(s);
		wait.tv_sec = tick_ms / 1000;
		wait.tv_nsec = tick_ms % 1000 * 1000000L;
		sigtimedwait(&chld, NULL, &wait);
		switch (reap(s->worker)) {
		case FATE_LIVES:
			break;
		case FATE_ENDED:
			reboot_now(s);
		case FATE_DIED:
			bury(s, "worker-died");
		}
	}
}

/* What every plan says as well; this is for what comes before the plan is read. */
static void never_stay_dead(void)
{
	proc_sysctl("kernel.panic", "10");
	proc_sysctl("kernel.panic_on_oops", "1");
}

static void start_worker(struct supervisor *s)
{
	s->worker = fork();
	if (s->worker < 0) {
		log_errno(-errno, "start the worker");
		reboot_now(s);
	}
	if (s->worker == 0)
		_exit(worker_run(s->watch) < 0 ? 1 : 0);
}

static void start_threads(struct supervisor *s)
{
	int r;

	s->sysrq_fd = open(SYSRQ, O_WRONLY | O_CLOEXEC);
	r = thread_start(last_resort, s);
	if (r < 0)
		log_errno(r, "start the thread that reboots when nothing else does");
	r = watchdog_start(&s->watchdog);
	if (r < 0)
		log_errno(r, "start the watchdog's thread");
}

int main(int argc, char **argv)
{
	struct supervisor s = {.sysrq_fd = -1};
	sigset_t all;

	if (getpid() != 1) {
		if (argc == 2 && !strcmp(argv[1], "--version")) {
			puts("recount-init " RECOUNT_VERSION);
			return 0;
		}
		fputs("recount-init is started by the kernel as PID 1 (rdinit=); see recount(8)\n",
		      stderr);
		return 2;
	}
	reboot(RB_DISABLE_CAD);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (mounts_early() < 0)
		log_warn("going on without all of /proc, /sys, /dev and /run");
	open_log();
	never_stay_dead();
	sem_init(&s.end, 0, 0);
	s.watch = mmap(NULL, sizeof(*s.watch), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (s.watch == MAP_FAILED) {
		log_errno(-errno, "map the watch page");
		reboot_now(&s);
	}
	watch_step(s.watch, WATCH_BOOT_MS);
	/* Before there are threads, which a child would not have. */
	start_worker(&s);
	start_threads(&s);
	harden();
	supervise(&s);
}
