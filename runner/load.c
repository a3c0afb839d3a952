/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Starts, watches, reads and stops the processes of a load. */
#include "runner/load.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "results/log.h"
#include "runner/counters.h"

#define POLL_MS 50
#define STOP_MS 5000

struct load {
	const struct plan_load *plan;
	const struct load_kind *kind;
	struct load_counter *counters; /* shared with the workers */
	size_t counters_bytes;
	pid_t *pids; /* 0: ended and reaped */
	int *fds;
	size_t n_fds;
	int died; /* a worker ended by itself */
};

static const struct load_kind *const kinds[] = {&load_mem, &load_io, &load_process};

const struct load_kind *load_find_kind(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i]->name, name))
			return kinds[i];
	return NULL;
}

int load_is_known(const char *name)
{
	return !strcmp(name, "none") || load_find_kind(name);
}

static _Noreturn void worker(const struct load *l, unsigned index, const struct load_place *place)
{
	struct load_worker w = {
		.load = l->plan,
		.index = index,
		.counter = &l->counters[index],
		.counters = l->counters,
		.fds = l->fds,
	};
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (place->chroot_dir && chroot(place->chroot_dir))
		_exit(1);
	if (chdir("/") || spawn_become(place->user) < 0)
		_exit(1);
	l->kind->run(&w);
	_exit(1);
}

/* Collects workers that ended by themselves. */
static void collect(struct load *l)
{
	for (unsigned i = 0; i < l->plan->workers; i++) {
		if (l->pids[i] && waitpid(l->pids[i], NULL, WNOHANG) == l->pids[i]) {
			l->pids[i] = 0;
			l->died = 1;
		}
	}
}

static int all_ready(const struct load *l)
{
	for (unsigned i = 0; i < l->plan->workers; i++)
		if (!atomic_load(&l->counters[i].ready))
			return 0;
	return 1;
}

static void sleep_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

static int wait_steady(struct load *l, int64_t timeout_ms, void (*alive)(void *), void *arg)
{
	int64_t deadline = spawn_now_ns() + timeout_ms * INT64_C(1000000), steady = 0;

	for (;;) {
		collect(l);
		if (l->died)
			return -ECHILD;
		if (!steady && all_ready(l))
			steady = spawn_now_ns() + l->plan->steady_ms * INT64_C(1000000);
		if (steady && spawn_now_ns() >= steady)
			return 0;
		if (spawn_now_ns() >= deadline)
			return -ETIMEDOUT;
		alive(arg);
		sleep_ms(POLL_MS);
	}
}

static void load_free(struct load *l)
{
	for (size_t i = 0; i < l->n_fds; i++)
		close(l->fds[i]);
	if (l->counters)
		munmap(l->counters, l->counters_bytes);
	free(l->fds);
	free(l->pids);
	free(l);
}

static int load_alloc(const struct plan_load *plan, struct load **out)
{
	struct load *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->plan = plan;
	l->kind = load_find_kind(plan->kind);
	l->pids = calloc(plan->workers, sizeof(*l->pids));
	l->fds = calloc(2 * (size_t)plan->workers, sizeof(*l->fds));
	l->counters_bytes = plan->workers * sizeof(*l->counters);
	l->counters = mmap(NULL, l->counters_bytes, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->counters == MAP_FAILED)
		l->counters = NULL;
	if (!l->kind || !l->pids || !l->fds || !l->counters) {
		load_free(l);
		return l->kind ? -ENOMEM : -EINVAL;
	}
	*out = l;
	return 0;
}

int load_start(const struct plan_load *plan, const struct load_place *place, int64_t timeout_ms,
	       void (*alive)(void *), void *arg, struct load **out)
{
	struct load *l;
	int r;

	if (plan->workers < 1 || plan->workers > LOAD_WORKERS_MAX)
		return -EINVAL;
	r = load_alloc(plan, &l);
	if (r < 0)
		return r;
	if (l->kind->open)
		r = l->kind->open(plan, place->arena_dir, l->fds, &l->n_fds);
	for (unsigned i = 0; r == 0 && i < plan->workers; i++) {
		l->pids[i] = fork();
		if (l->pids[i] == 0)
			worker(l, i, place);
		if (l->pids[i] < 0) {
			r = -errno;
			l->pids[i] = 0;
		}
	}
	if (r == 0)
		r = wait_steady(l, timeout_ms, alive, arg);
	if (r < 0) {
		/* That workers died on the way is a part of why. */
		(void)!load_stop(l);
		return r;
	}
	*out = l;
	return 0;
}

void load_snapshot(const struct load *l, struct load_snapshot *out)
{
	int64_t user_ns, sys_ns;

	*out = (struct load_snapshot){.at_ns = spawn_now_ns()};
	for (unsigned i = 0; i < l->plan->workers; i++)
		out->work += atomic_load_explicit(&l->counters[i].work, memory_order_relaxed);
	for (unsigned i = 0; i < l->plan->workers; i++) {
		if (process_times(l->pids[i], &user_ns, &sys_ns) < 0) {
			out->user_ns = out->sys_ns = ABSENT;
			return;
		}
		out->user_ns += user_ns;
		out->sys_ns += sys_ns;
	}
}

void load_result(const struct load *l, const struct load_snapshot *from,
		 const struct load_snapshot *to, struct record_load *out)
{
	int absent = from->user_ns == ABSENT || to->user_ns == ABSENT;

	*out = (struct record_load){
		.work = to->work - from->work,
		.elapsed_ns = to->at_ns - from->at_ns,
		.user_ns = absent ? ABSENT : to->user_ns - from->user_ns,
		.sys_ns = absent ? ABSENT : to->sys_ns - from->sys_ns,
	};
	snprintf(out->unit, sizeof(out->unit), "%s", l->kind->unit);
}

static void signal_all(const struct load *l, int sig)
{
	for (unsigned i = 0; i < l->plan->workers; i++)
		if (l->pids[i])
			kill(l->pids[i], sig);
}

static unsigned reap_stopped(struct load *l, int flags)
{
	unsigned left = 0;

	for (unsigned i = 0; i < l->plan->workers; i++) {
		if (l->pids[i] && waitpid(l->pids[i], NULL, flags) != 0)
			l->pids[i] = 0;
		left += l->pids[i] != 0;
	}
	return left;
}

int load_stop(struct load *l)
{
	int64_t deadline = spawn_now_ns() + STOP_MS * INT64_C(1000000);
	int died;

	collect(l);
	died = l->died;
	signal_all(l, SIGHUP);
	while (reap_stopped(l, WNOHANG) && spawn_now_ns() < deadline)
		sleep_ms(10);
	signal_all(l, SIGKILL);
	reap_stopped(l, 0);
	load_free(l);
	return died ? -ECHILD : 0;
}
