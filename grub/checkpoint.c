/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Freezing and thawing a file system, so that its journal is empty. */
#include "grub/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A backup's snapshot is made in less. */
#define BUSY_TRIES    50
#define BUSY_PAUSE_MS 100

/*
 * A machine whose root stays frozen is lost. The keeper thaws it when the other end of its pipe,
 * *@lifeline, is gone, which means that this process is. It inherits that all signals are blocked.
 */
static pid_t start_keeper(int fd, int *lifeline)
{
	int pipe_fds[2];
	char nothing;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0) {
		pid = -errno;
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		return pid;
	}
	if (pid > 0) {
		close(pipe_fds[0]);
		*lifeline = pipe_fds[1];
		return pid;
	}
	setsid();
	close(pipe_fds[1]);
	if (read(pipe_fds[0], &nothing, 1) == 0)
		(void)ioctl(fd, FITHAW, 0);
	_exit(0);
}

static int freeze(int fd)
{
	struct timespec pause = {0, BUSY_PAUSE_MS * 1000000L};
	int tries;

	for (tries = 0; ioctl(fd, FIFREEZE, 0); tries++) {
		if (errno != EBUSY || tries == BUSY_TRIES)
			return -errno;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Nothing may be done between the two that could write to the file system. */
static int freeze_and_thaw(int fd)
{
	int r = freeze(fd);

	if (r == -EOPNOTSUPP)
		return 0;
	/* EINVAL: somebody else thawed it. */
	if (r == 0 && ioctl(fd, FITHAW, 0) && errno != EINVAL)
		r = -errno;
	return r;
}

int checkpoint_make(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC), lifeline = -1;
	int r;
	sigset_t all, before;
	pid_t keeper;

	if (fd < 0 || syncfs(fd))
		return -errno;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	keeper = start_keeper(fd, &lifeline);
	r = keeper < 0 ? (int)keeper : freeze_and_thaw(fd);
	if (keeper > 0) {
		kill(keeper, SIGKILL);
		waitpid(keeper, NULL, 0);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}
