/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Freezing and thawing, with the kernel's answers made up: a real freeze would stop the machine. */
#include "grub/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/unit/sample.h"

#define CALLS_MAX 8

static struct {
	unsigned long requests[CALLS_MAX];
	unsigned n;
	int busy, freeze_errno, thaw_errno;
	int dies;	/* between freezing and thawing */
	int witness_fd; /* where a thaw is told of */
} ioctls;

int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	(void)fd;
	if (ioctls.n < CALLS_MAX)
		ioctls.requests[ioctls.n++] = request;
	if (ioctls.witness_fd > 0 && request == FITHAW)
		assert_int_equal(write(ioctls.witness_fd, "t", 1), 1);
	errno = request == FITHAW ? ioctls.thaw_errno : ioctls.freeze_errno;
	if (request == FIFREEZE && ioctls.busy && ioctls.busy--)
		errno = EBUSY;
	if (request == FIFREEZE && ioctls.dies)
		raise(SIGKILL);
	return errno ? -1 : 0;
}

static int reset(void **state)
{
	(void)state;
	memset(&ioctls, 0, sizeof(ioctls));
	return 0;
}

static void frozen_and_thawed_at_once(void **state)
{
	(void)state;
	assert_int_equal(checkpoint_make("/dev/shm"), 0);
	assert_int_equal(ioctls.n, 2);
	assert_int_equal(ioctls.requests[0], FIFREEZE);
	assert_int_equal(ioctls.requests[1], FITHAW);
}

/* vfat */
static void what_cannot_be_frozen_is_synced(void **state)
{
	(void)state;
	ioctls.freeze_errno = EOPNOTSUPP;
	assert_int_equal(checkpoint_make("/dev/shm"), 0);
	assert_int_equal(ioctls.n, 1);
}

static void refusal_is_told(void **state)
{
	(void)state;
	ioctls.freeze_errno = EPERM;
	assert_int_equal(checkpoint_make("/dev/shm"), -EPERM);
	assert_int_equal(ioctls.n, 1);
	assert_int_equal(checkpoint_make("/nowhere/at/all"), -ENOENT);
}

static void another_ones_freeze_is_waited_for(void **state)
{
	(void)state;
	ioctls.busy = 2;
	assert_int_equal(checkpoint_make("/dev/shm"), 0);
	assert_int_equal(ioctls.n, 4);
	assert_int_equal(ioctls.requests[3], FITHAW);
}

static void failed_thaw_is_told(void **state)
{
	(void)state;
	ioctls.thaw_errno = EIO;
	assert_int_equal(checkpoint_make("/dev/shm"), -EIO);
	reset(state);
	ioctls.thaw_errno = EINVAL; /* thawed by somebody else */
	assert_int_equal(checkpoint_make("/dev/shm"), 0);
}

static void thawed_also_when_killed_in_between(void **state)
{
	int fds[2], status;
	char what;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		ioctls.dies = 1;
		ioctls.witness_fd = fds[1];
		_exit(checkpoint_make("/dev/shm") == 0);
	}
	close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(read(fds[0], &what, 1), 1);
	assert_int_equal(what, 't');
	close(fds[0]);
}

static void signals_are_as_before(void **state)
{
	sigset_t before, after;

	(void)state;
	sigprocmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(checkpoint_make("/dev/shm"), 0);
	sigprocmask(SIG_SETMASK, NULL, &after);
	for (int sig = 1; sig < NSIG; sig++)
		assert_int_equal(sigismember(&before, sig), sigismember(&after, sig));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(frozen_and_thawed_at_once, reset),
		cmocka_unit_test_setup(what_cannot_be_frozen_is_synced, reset),
		cmocka_unit_test_setup(refusal_is_told, reset),
		cmocka_unit_test_setup(another_ones_freeze_is_waited_for, reset),
		cmocka_unit_test_setup(failed_thaw_is_told, reset),
		cmocka_unit_test_setup(thawed_also_when_killed_in_between, reset),
		cmocka_unit_test_setup(signals_are_as_before, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
