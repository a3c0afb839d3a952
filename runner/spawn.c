/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Children of the workload: unprivileged, with everything fixed that a build could notice. */
#include "runner/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "results/log.h"

/* PID 1's limits are the kernel's defaults and differ between kernels. */
static const struct {
	int resource;
	struct rlimit limit;
} limits[] = {
	{RLIMIT_CORE, {0, 0}},
	{RLIMIT_STACK, {8 << 20, RLIM_INFINITY}},
	{RLIMIT_NOFILE, {1024, 4096}},
	{RLIMIT_NPROC, {65536, 65536}},
	{RLIMIT_MEMLOCK, {64 << 10, 64 << 10}},
	{RLIMIT_SIGPENDING, {4096, 4096}},
	{RLIMIT_MSGQUEUE, {819200, 819200}},
};

/* The whole environment of a build: what could reach its product is fixed. */
static char *const environment[] = {
	"PATH=" SPAWN_PATH,
	"HOME=" SPAWN_HOME "/home",
	"TMPDIR=" SPAWN_HOME "/tmp",
	"LC_ALL=C",
	"TZ=UTC",
	"KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 1970",
	"KBUILD_BUILD_USER=recount",
	"KBUILD_BUILD_HOST=recount",
	"KBUILD_BUILD_VERSION=1",
	NULL,
};

int64_t spawn_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Touches nothing when the folder is there: this runs before every trial, on a clean arena. */
static int make_owned(const char *path, unsigned uid)
{
	struct stat st;

	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	if (lstat(path, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return st.st_uid == uid || lchown(path, uid, uid) == 0 ? 0 : -errno;
}

int spawn_make_home(const char *arena_dir, unsigned uid)
{
	static const char *const folders[] = {".recount", ".recount/home", ".recount/tmp"};
	char path[PATH_MAX];
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		snprintf(path, sizeof(path), "%s/%s", arena_dir, folders[i]);
		r = make_owned(path, uid);
		if (r < 0)
			return log_errno(r, "make %s", path);
	}
	return 0;
}

static int set_oom_score_adj(int value)
{
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", value);

	if (fd < 0 || write(fd, text, n) != n)
		return -errno;
	return 0;
}

/* 1 when an interface other than loopback is up, -errno when that cannot be told. */
static int is_connected(void)
{
	_cleanup_closedir_ DIR *dir = opendir("/sys/class/net");
	struct dirent *e;

	/* Kernels without any network have no such folder. */
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while ((e = readdir(dir))) {
		char path[PATH_MAX];
		_cleanup_fclose_ FILE *f = NULL;
		unsigned flags;

		snprintf(path, sizeof(path), "/sys/class/net/%s/flags", e->d_name);
		f = e->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (f && fscanf(f, "%x", &flags) == 1 && (flags & IFF_UP) &&
		    !(flags & IFF_LOOPBACK))
			return 1;
	}
	return 0;
}

static int leave_network(void)
{
	int r;

	if (unshare(CLONE_NEWNET) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* A kernel without network namespaces: recount-init has brought up nothing but loopback. */
	r = is_connected();
	return r > 0 ? -ENETUNREACH : r;
}

/* Other uids have none of their own accord, unless securebits or inherited ones say otherwise. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		return -errno;
	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

int spawn_become(const struct spawn_user *user)
{
	struct sched_param normal = {0};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (setrlimit(limits[i].resource, &limits[i].limit))
			return -errno;
	umask(user->umask);
	r = set_oom_score_adj(user->oom_score_adj);
	if (r < 0)
		return r;
	if (sched_setscheduler(0, SCHED_OTHER, &normal) || setpriority(PRIO_PROCESS, 0, user->nice))
		return -errno;
	r = leave_network();
	if (r < 0)
		return r;
	/* Keys of the session that this was started from could be used without being root; where a
	 * filter forbids the call, it forbids their use. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS &&
	    errno != EPERM)
		return -errno;
	if (setgroups(0, NULL) || setresgid(user->uid, user->uid, user->uid) ||
	    setresuid(user->uid, user->uid, user->uid) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return user->uid ? drop_capabilities() : 0;
}

/* A terminal of root's must not be there for a build to type into (TIOCSTI). The session stays:
 * a new one would change how the scheduler groups build and load. */
static void leave_terminal(void)
{
	int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (tty < 0)
		return;
	ioctl(tty, TIOCNOTTY);
	close(tty);
}

static int child_streams(int err_fd)
{
	int null = open("/dev/null", O_RDWR);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(err_fd < 0 ? null : err_fd, STDERR_FILENO) < 0)
		return -errno;
	if (null > STDERR_FILENO)
		close(null);
	return 0;
}

/* Everything else that is open stays behind, also what the caller's caller left open. */
static int close_at_exec(void)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;

	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		int fd = (int)strtol(e->d_name, NULL, 10);

		if (fd > STDERR_FILENO && fcntl(fd, F_SETFD, FD_CLOEXEC))
			return -errno;
	}
	return 0;
}

static void default_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* @ready is closed when nothing but the exec is left to do. */
static void child(const struct spawn *s, int ready, int gate)
{
	int r;
	char byte;

	setpgid(0, 0);
	leave_terminal();
	r = child_streams(s->err_fd);
	if (r == 0)
		r = close_at_exec();
	default_signals();
	if (r == 0 && s->chroot_dir) {
		/* oom_score_adj needs a /proc, which the chroot has as well. */
		if (chroot(s->chroot_dir))
			r = -errno;
	}
	if (r == 0 && chdir(s->dir ? s->dir : "/"))
		r = -errno;
	if (r == 0)
		r = spawn_become(s->user);
	if (r == 0) {
		close(ready);
		while (read(gate, &byte, 1) < 0 && errno == EINTR)
			;
		environ = (char **)environment;
		execvp(s->argv[0], s->argv);
		r = -errno;
	}
	dprintf(STDERR_FILENO, "recount: cannot run %s in %s: %s\n", s->argv[0],
		s->dir ? s->dir : "/", strerror(-r));
	_exit(127);
}

int spawn_prepare(struct spawn *s)
{
	_cleanup_close_ int gate_read = -1, gate_write = -1, ready_read = -1, ready_write = -1;
	int gate[2], ready[2];
	char byte;

	if (pipe2(gate, O_CLOEXEC))
		return -errno;
	gate_read = gate[0];
	gate_write = gate[1];
	if (pipe2(ready, O_CLOEXEC))
		return -errno;
	ready_read = ready[0];
	ready_write = ready[1];
	s->pid = fork();
	if (s->pid < 0)
		return -errno;
	if (s->pid == 0) {
		close(gate_write);
		child(s, ready_write, gate_read);
	}
	close(TAKE_FD(ready_write));
	while (read(ready_read, &byte, 1) < 0 && errno == EINTR)
		;
	s->gate_fd = TAKE_FD(gate_write);
	return 0;
}

void spawn_go(struct spawn *s)
{
	close(s->gate_fd);
	s->gate_fd = -1;
}

/* Waits for the child, or for a signal of @wake that is not SIGCHLD: then 1, and *caught is it. */
static int wait_child(pid_t pid, int64_t deadline_ns, int slice_ms, void (*alive)(void *),
		      void *arg, const sigset_t *wake, int *caught, int *status,
		      struct rusage *usage)
{
	int64_t slice_ns = slice_ms * INT64_C(1000000), next_ns = spawn_now_ns() + slice_ns;
	int64_t now, until;
	struct timespec timeout;
	pid_t got;

	for (;;) {
		got = wait4(pid, status, WNOHANG, usage);
		if (got == pid)
			return 0;
		if (got < 0 && errno != EINTR)
			return -errno;
		now = spawn_now_ns();
		if (now >= deadline_ns)
			return -ETIMEDOUT;
		/* By the clock: orphans that end may wake us any number of times. */
		if (alive && now >= next_ns) {
			alive(arg);
			next_ns = now + slice_ns;
		}
		until = alive && next_ns < deadline_ns ? next_ns : deadline_ns;
		timeout.tv_sec = (until - now) / 1000000000;
		timeout.tv_nsec = (until - now) % 1000000000;
		*caught = sigtimedwait(wake, NULL, &timeout);
		if (*caught > 0 && *caught != SIGCHLD)
			return 1;
	}
}

int spawn_wait(pid_t pid, int64_t deadline_ns, int slice_ms, void (*alive)(void *), void *arg,
	       int *status, struct rusage *usage)
{
	sigset_t chld;
	int caught;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &chld, NULL))
		return -errno;
	return wait_child(pid, deadline_ns, slice_ms, alive, arg, &chld, &caught, status, usage);
}

int spawn_watched(struct spawn *s, int64_t timeout_ms, int slice_ms, void (*alive)(void *),
		  void *arg, int *status)
{
	int64_t deadline = spawn_now_ns() + timeout_ms * INT64_C(1000000);
	struct rusage usage;
	int r = spawn_prepare(s);

	if (r < 0)
		return r;
	spawn_go(s);
	return spawn_wait(s->pid, deadline, slice_ms, alive, arg, status, &usage);
}

int spawn_run(struct spawn *s, int64_t timeout_ms, int *status, struct rusage *usage)
{
	int64_t deadline = spawn_now_ns() + timeout_ms * INT64_C(1000000);
	sigset_t wake, old;
	int caught = 0, r;

	/* Blocked before the fork, so that whoever ends us takes the build along. */
	sigemptyset(&wake);
	sigaddset(&wake, SIGCHLD);
	sigaddset(&wake, SIGINT);
	sigaddset(&wake, SIGTERM);
	sigaddset(&wake, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &wake, &old))
		return -errno;
	r = spawn_prepare(s);
	if (r == 0) {
		spawn_go(s);
		r = wait_child(s->pid, deadline, 0, NULL, NULL, &wake, &caught, status, usage);
		kill(-s->pid, SIGKILL);
		if (r != 0)
			waitpid(s->pid, status, 0);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (r == 1) {
		raise(caught);
		return -EINTR;
	}
	if (r < 0)
		return r;
	return WIFEXITED(*status) && WEXITSTATUS(*status) == 0 ? 0 : -ECHILD;
}
