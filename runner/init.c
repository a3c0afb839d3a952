/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * recount-init: PID 1 of a measuring boot. It only supervises: everything that can block is done by
 * a forked worker (worker.c). It never exits, never allocates after start, and its safe end is
 * always a reboot.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <time.h>

#include "initramfs/mounts.h"
#include "results/log.h"
#include "runner/watch.h"
#include "runner/watchdog.h"
#include "runner/worker.h"

#define REBOOT_MS	 30000
#define WATCHDOG_POLL_MS 2000

static void write_word(const char *path, const char *word)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, word, strlen(word)) < 0)
		log_errno(-errno, "write %s to %s", word, path);
}

/* Messages go to the kernel's log, which also prints them on every console. */
static void open_log(void)
{
	int fd;

	write_word("/proc/sys/kernel/printk_devkmsg", "on");
	fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		fd = open("/dev/console", O_WRONLY | O_NOCTTY | O_CLOEXEC);
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

static _Noreturn void reboot_now(void)
{
	/* What reached the store is durable; a sync that blocks must not stop the reboot. */
	pid_t pid = fork();
	struct timespec tick = {.tv_nsec = 100000000};

	if (pid == 0) {
		sync();
		_exit(0);
	}
	for (int i = 0; pid > 0 && i < 100 && waitpid(pid, NULL, WNOHANG) == 0; i++)
		nanosleep(&tick, NULL);
	log_info("rebooting");
	/* An orderly reboot may block behind a device that does not answer. */
	if (fork() == 0) {
		sleep(REBOOT_MS / 1000);
		write_word("/proc/sysrq-trigger", "b");
		_exit(0);
	}
	reboot(RB_AUTOBOOT);
	write_word("/proc/sysrq-trigger", "b");
	for (;;)
		pause();
}

/* Collects every ended child; 1 when the worker is among them. */
static int reap(pid_t worker)
{
	int status, ended = 0;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != worker)
			continue;
		ended = 1;
		if (WIFSIGNALED(status))
			log_warn("the worker was ended by signal %d", WTERMSIG(status));
		else if (WEXITSTATUS(status))
			log_warn("the worker gave up");
	}
	return ended;
}

/* Why the machine must not wait any longer for the worker, or NULL. */
static const char *overdue(const struct watch *watch)
{
	int64_t now = spawn_now_ns();
	int64_t deadline = atomic_load(&watch->deadline_ns);
	int64_t grace = WATCH_GRACE_MS * INT64_C(1000000);

	if (now - atomic_load(&watch->answered_ns) > WATCH_SILENCE_MS * INT64_C(1000000) + grace)
		return "the worker does not answer";
	if (deadline && now > deadline + grace)
		return "the boot's deadline has passed";
	return NULL;
}

static _Noreturn void supervise(struct watch *watch, pid_t worker)
{
	int watchdog = -1, timeout_s = 0, tick_ms = WATCHDOG_POLL_MS;
	struct timespec wait;
	const char *why;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	for (;;) {
		if (watchdog < 0) {
			watchdog = watchdog_open(&timeout_s);
			if (watchdog >= 0)
				log_info("watchdog armed, %d s", timeout_s);
		} else {
			watchdog_pet(watchdog);
		}
		/* Until the drivers are loaded the watchdog is looked for more often. */
		if (watchdog >= 0 || atomic_load(&watch->drivers_loaded))
			tick_ms = WATCH_SLICE_MS;
		if (watchdog >= 0 && timeout_s * 1000 / 3 < tick_ms)
			tick_ms = timeout_s * 1000 / 3;
		wait.tv_sec = tick_ms / 1000;
		wait.tv_nsec = tick_ms % 1000 * 1000000L;
		sigtimedwait(&chld, NULL, &wait);
		if (reap(worker))
			reboot_now();
		why = overdue(watch);
		if (why) {
			log_warn("%s: rebooting over its head", why);
			reboot_now();
		}
	}
}

int main(int argc, char **argv)
{
	struct watch *watch;
	sigset_t all;
	pid_t worker;

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
	watch = mmap(NULL, sizeof(*watch), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (watch == MAP_FAILED) {
		log_errno(-errno, "map the watch page");
		reboot_now();
	}
	watch_answer(watch);
	worker = fork();
	if (worker < 0) {
		log_errno(-errno, "start the worker");
		reboot_now();
	}
	if (worker == 0)
		_exit(worker_run(watch) < 0 ? 1 : 0);
	harden();
	supervise(watch, worker);
}
