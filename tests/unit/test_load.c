/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each load's worker in a child of its own: the milestone, the counting, and nothing left. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "runner/load.h"

#define WAIT_MS 1500

static struct load_counter *shared_counters(unsigned n)
{
	void *p = mmap(NULL, n * sizeof(struct load_counter), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static pid_t start(const struct load_kind *kind, const struct plan_load *load, unsigned index,
		   struct load_counter *counters, int *fds)
{
	struct load_worker w = {load, index, &counters[index], counters, fds};
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		/* A test that fails must not leave a load running. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Under nohup it would be ignored; load_start() undoes that, too. */
		signal(SIGHUP, SIG_DFL);
		kind->run(&w);
		_exit(1);
	}
	return pid;
}

static int wait_for(const _Atomic int64_t *work, int64_t at_least)
{
	struct timespec tick = {.tv_nsec = 1000000};

	for (int ms = 0; ms < WAIT_MS; ms++) {
		if (atomic_load(work) >= at_least)
			return 1;
		nanosleep(&tick, NULL);
	}
	return 0;
}

static void stop(pid_t pid)
{
	int status;

	kill(pid, SIGHUP);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
}

/* Ready only after the first full pass: one page counted for each page, not one less. */
static void mem_is_ready_after_one_pass(void **state)
{
	int64_t page = sysconf(_SC_PAGESIZE);
	struct plan_load load = {.bytes = 20000 * page, .workers = 1};
	struct load_counter *c = shared_counters(1);
	pid_t pid;

	(void)state;
	pid = start(&load_mem, &load, 0, c, NULL);
	while (!atomic_load(&c->ready))
		;
	/* Read at once: a worker that is ready too early has touched next to nothing by now. */
	assert_true(atomic_load(&c->work) >= 20000);
	assert_true(wait_for(&c->work, 30000));
	stop(pid);
}

static void mem_without_memory_ends(void **state)
{
	struct plan_load load = {.bytes = 1, .workers = 1};
	struct load_counter *c = shared_counters(1);
	int status;
	pid_t pid;

	(void)state;
	pid = start(&load_mem, &load, 0, c, NULL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_int_equal(atomic_load(&c->ready), 0);
}

static void process_ring_goes_round(void **state)
{
	struct plan_load load = {.workers = 8};
	struct load_counter *c = shared_counters(8);
	int fds[16];
	size_t n_fds = 0;
	pid_t pids[8];

	(void)state;
	assert_int_equal(load_process.open(&load, "/", fds, &n_fds), 0);
	assert_int_equal(n_fds, 16);
	for (unsigned i = 0; i < 8; i++)
		pids[i] = start(&load_process, &load, i, c, fds);
	/* A chunk that had been lost anywhere would stop everybody. */
	for (unsigned i = 0; i < 8; i++) {
		assert_true(wait_for(&c[i].work, 100));
		assert_int_equal(atomic_load(&c[i].ready), 1);
	}
	for (unsigned i = 0; i < 8; i++)
		stop(pids[i]);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
}

static void io_writes_its_whole_file_first_and_leaves_no_name(void **state)
{
	struct plan_load load = {.bytes = 4 << 20, .workers = 2};
	struct load_counter *c = shared_counters(2);
	char dir[] = "/tmp/recount-load-XXXXXX";
	int fds[4];
	size_t n_fds = 0;
	struct stat st;
	pid_t pids[2];

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(load_io.open(&load, dir, fds, &n_fds), 0);
	assert_int_equal(n_fds, 1);
	for (unsigned i = 0; i < 2; i++)
		pids[i] = start(&load_io, &load, i, c, fds);
	assert_true(wait_for(&c[0].work, 20) && wait_for(&c[1].work, 20));
	assert_int_equal(fstat(fds[0], &st), 0);
	assert_int_equal(st.st_size, 4 << 20);
	assert_int_equal(st.st_nlink, 0);
	stop(pids[0]);
	stop(pids[1]);
	close(fds[0]);
	assert_int_equal(rmdir(dir), 0);
}

static void names_are_known(void **state)
{
	(void)state;
	assert_true(load_is_known("none"));
	assert_null(load_find_kind("none"));
	assert_ptr_equal(load_find_kind("mem"), &load_mem);
	assert_ptr_equal(load_find_kind("io"), &load_io);
	assert_ptr_equal(load_find_kind("process"), &load_process);
	assert_false(load_is_known("memory"));
	assert_false(load_is_known(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mem_is_ready_after_one_pass),
		cmocka_unit_test(mem_without_memory_ends),
		cmocka_unit_test(process_ring_goes_round),
		cmocka_unit_test(io_writes_its_whole_file_first_and_leaves_no_name),
		cmocka_unit_test(names_are_known),
	};

	return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
