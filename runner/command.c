/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs a program and waits for it. */
#include "runner/command.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "results/log.h"

int command_run(char *const *argv)
{
	int status;
	pid_t pid;

	/* What is buffered here would be printed by the child as well. */
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return log_errno(-errno, "run %s", argv[0]);
	if (pid == 0) {
		int null = open("/dev/null", O_RDONLY);

		if (null >= 0)
			dup2(null, STDIN_FILENO);
		execvp(argv[0], argv);
		log_errno(-errno, "run %s", argv[0]);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return log_errno(-errno, "wait for %s", argv[0]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	log_info("%s failed", argv[0]);
	return -EIO;
}

/* The child of command_read(); never returns. */
static void run_into(char *const *argv, int out)
{
	int null = open("/dev/null", O_RDWR);

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDERR_FILENO);
	}
	dup2(out, STDOUT_FILENO);
	execvp(argv[0], argv);
	_exit(127);
}

static int read_to_end(int fd, size_t max, char **text)
{
	_cleanup_free_ char *buf = malloc(max + 1);
	char rest[512];
	size_t len = 0;
	ssize_t n;

	if (!buf)
		return -ENOMEM;
	do {
		n = len < max ? read(fd, buf + len, max - len) : read(fd, rest, sizeof(rest));
		if (n > 0 && len < max)
			len += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0)
		return -errno;
	buf[len] = '\0';
	*text = TAKE_PTR(buf);
	return 0;
}

int command_read(char *const *argv, size_t max, char **text)
{
	_cleanup_free_ char *out = NULL;
	int ends[2], status, r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	fflush(stdout);
	pid = fork();
	r = pid < 0 ? -errno : 0;
	if (pid == 0)
		run_into(argv, ends[1]);
	close(ends[1]);
	if (r == 0)
		r = read_to_end(ends[0], max, &out);
	close(ends[0]);
	if (pid < 0)
		return r;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (r == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		r = -EIO;
	if (r == 0)
		*text = TAKE_PTR(out);
	return r;
}
