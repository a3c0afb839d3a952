/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A command of the workload as a child: in the root's chroot, as the build user, with the plan's
 * umask, nice, fixed limits and a fixed environment, never with a way back to root or to the
 * network. recount-init and `prepare` start builds only through this, so that a build is the same
 * everywhere.
 */
#ifndef RECOUNT_RUNNER_SPAWN_H
#define RECOUNT_RUNNER_SPAWN_H

#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "results/macro.h"

#define SPAWN_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Where the arena is in every mode, and the folder on it that holds the children's HOME and TMPDIR
 * (made by spawn_make_home()). */
#define SPAWN_ARENA "/run/recount/arena"
#define SPAWN_HOME  SPAWN_ARENA "/.recount"

struct spawn_user { /* whom and how children run */
	unsigned uid;
	unsigned umask;
	int nice;
	int oom_score_adj;
};

struct spawn {
	const char *chroot_dir; /* NULL: none */
	const char *dir;	/* working directory, inside the chroot */
	char *const *argv;	/* argv[0] is looked up in SPAWN_PATH */
	const struct spawn_user *user;
	int err_fd;  /* standard error (borrowed); -1: /dev/null. Standard output: /dev/null */
	pid_t pid;   /* filled by spawn_prepare() */
	int gate_fd; /* the same: closing it lets the child exec */
};

/* Makes .recount/home and .recount/tmp on the arena mounted at @arena_dir, owned by @uid. */
int spawn_make_home(const char *arena_dir, unsigned uid) _must_check_;

/* Becomes the user in this process, for good: limits, umask, nice, oom_score_adj, a network
 * namespace of its own (-ENETUNREACH when the kernel has none and an interface is up), no keys of
 * the session, no groups, uid, no_new_privs, no capabilities (but as uid 0). For loads, which need
 * no exec. */
int spawn_become(const struct spawn_user *user) _must_check_;

/*
 * Forks the child up to the point of exec; it waits there until spawn_go(). Everything that
 * allocates is done here, so that the timed region holds nothing but close(2), exec and the build.
 * The child leads a process group of its own and inherits no descriptor but 0 to 2.
 */
int spawn_prepare(struct spawn *s) _must_check_;
void spawn_go(struct spawn *s);

/*
 * Waits until the child @pid ends, at most until CLOCK_MONOTONIC @deadline_ns; wakes up at most
 * once per @slice_ms to call @alive(@arg) (NULL: no slices). Status as of waitpid() into @status,
 * resources of the whole waited-for tree into @usage. -ETIMEDOUT: still running, nothing was
 * killed. Leaves SIGCHLD blocked.
 */
int spawn_wait(pid_t pid, int64_t deadline_ns, int slice_ms, void (*alive)(void *), void *arg,
	       int *status, struct rusage *usage) _must_check_;

/* Prepare, go and spawn_wait() for at most @timeout_ms. 0 with the *status it ended with, whatever
 * that is; -ETIMEDOUT: still running, nothing was killed. */
int spawn_watched(struct spawn *s, int64_t timeout_ms, int slice_ms, void (*alive)(void *),
		  void *arg, int *status) _must_check_;

/* Prepare, go and wait, then kill what is left of the child's process group. 0 when it exited with
 * 0; -ECHILD with *status otherwise; -ETIMEDOUT. SIGINT, SIGTERM and SIGHUP end the group first
 * and then act on the caller (-EINTR if it survives). */
int spawn_run(struct spawn *s, int64_t timeout_ms, int *status, struct rusage *usage) _must_check_;

/* CLOCK_MONOTONIC in ns. */
int64_t spawn_now_ns(void);

#endif
