/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs systemctl, modprobe and wall. */
#include "runner/service.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "results/log.h"

#define POLL_MS	    20
#define MODPROBE_MS 60000

extern char **environ;

/* @quiet: its talk is thrown away. What the caller blocks of signals stays blocked. */
static int start(const char *const argv[], int quiet, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r)
		return -r;
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!r && quiet)
		r = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY,
						     0);
	if (!r)
		r = posix_spawnp(pid, argv[0], &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* Exit status, or -errno when it could not be started or died; -ETIMEDOUT: it goes on, after
 * @limit_ms (0: there is no limit). */
static int run_limited(const char *const argv[], int quiet, int limit_ms)
{
	struct timespec poll = {.tv_nsec = POLL_MS * 1000000L};
	int waited_ms = 0, status, r;
	pid_t pid, ended;

	r = start(argv, quiet, &pid);
	if (r < 0)
		return r;
	while ((ended = waitpid(pid, &status, limit_ms ? WNOHANG : 0)) != pid) {
		if (ended < 0 && errno != EINTR)
			return -errno;
		if (ended < 0)
			continue;
		if (waited_ms >= limit_ms)
			return -ETIMEDOUT;
		nanosleep(&poll, NULL);
		waited_ms += POLL_MS;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}

static int run(const char *const argv[], int quiet)
{
	return run_limited(argv, quiet, 0);
}

int service_reboot(void)
{
	static const char *const argv[] = {"systemctl", "reboot", NULL};
	int r = run(argv, 0);

	if (r > 0) {
		log_warn("systemctl reboot was refused (exit status %d)", r);
		return -ECHILD;
	}
	return r < 0 ? log_errno(r, "run systemctl reboot") : 0;
}

int service_modprobe(const char *const modules[])
{
	const char *argv[8] = {"modprobe", "-a"};
	size_t n = 2;

	for (; *modules && n < ARRAY_SIZE(argv) - 1; modules++)
		argv[n++] = *modules;
	/* A driver whose device is dead may take its time, or not end at all. */
	return run_limited(argv, 1, MODPROBE_MS) == 0;
}

void service_stop_timers(void)
{
	static const char *const timers[] = {"apt-daily.timer", "apt-daily-upgrade.timer",
					     "fstrim.timer"};
	size_t i;

	/* One by one: systemctl stops none of them when one has no unit. */
	for (i = 0; i < ARRAY_SIZE(timers); i++) {
		const char *const argv[] = {"systemctl", "stop", timers[i], NULL};

		(void)run(argv, 1);
	}
}

void service_reload(void)
{
	static const char *const argv[] = {"systemctl", "daemon-reload", NULL};

	(void)run(argv, 1);
}

/* For those who are not there yet. What cannot be written here is no reason not to go on. */
static void put_notice(const char *path, const char *text)
{
	_cleanup_close_ int fd = -1;

	mkdir("/run/motd.d", 0755);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd >= 0)
		dprintf(fd, "%s\n", text);
}

void service_tell(const char *notice, const char *text)
{
	const char *const argv[] = {"wall", text, NULL};
	_cleanup_close_ int fd = -1;

	put_notice(notice, text);
	if (run(argv, 1) == 0)
		return;
	fd = open("/dev/console", O_WRONLY | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		dprintf(fd, "\r\n%s\r\n", text);
}

/* The moment at which what @notice says is over, on CLOCK_BOOTTIME: for programs. */
static void end_path(const char *notice, char path[64])
{
	snprintf(path, 64, "/run/recount/%s-until", strrchr(notice, '/') + 1);
}

static time_t uptime_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec;
}

static FILE *open_end(const char *notice, const char *mode)
{
	char path[64];

	end_path(notice, path);
	return fopen(path, mode);
}

void service_tell_until(const char *notice, const char *text, unsigned left_s)
{
	_cleanup_fclose_ FILE *f = NULL;

	mkdir("/run/recount", 0755);
	f = open_end(notice, "we");
	if (f)
		fprintf(f, "%lld\n", (long long)uptime_s() + left_s);
	service_tell(notice, text);
}

unsigned service_told_s(const char *notice)
{
	_cleanup_fclose_ FILE *f = open_end(notice, "re");
	long long end_s;

	if (!f || fscanf(f, "%lld", &end_s) != 1 || end_s <= uptime_s())
		return 0;
	return (unsigned)(end_s - uptime_s());
}

void service_untell(const char *notice)
{
	char path[64];

	end_path(notice, path);
	unlink(path);
	unlink(notice);
}
