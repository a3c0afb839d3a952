/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The load "io": several processes write and read 1 KiB at random offsets in one file that was
 * written in full before (irman's I/O load). The file has no name, so that nothing is left of it
 * whatever happens. Worker 0 writes it; the milestone is that it is there. Counts operations.
 */
#include "runner/load.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#define OP_BYTES    1024
#define WRITE_BYTES (1 << 20)

static int open_file(const struct plan_load *load, const char *dir, int *fds, size_t *n_fds)
{
	(void)load;
	fds[0] = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fds[0] < 0)
		return -errno;
	*n_fds = 1;
	return 0;
}

static int write_file(int fd, uint64_t bytes)
{
	_cleanup_free_ char *chunk = malloc(WRITE_BYTES);
	uint64_t state = 1;

	for (uint64_t at = 0; chunk && at < bytes; at += WRITE_BYTES) {
		load_fill(chunk, WRITE_BYTES, &state);
		if (pwrite(fd, chunk, WRITE_BYTES, at) != WRITE_BYTES)
			return -1;
	}
	return chunk ? 0 : -1;
}

static int run(struct load_worker *w)
{
	uint64_t blocks = w->load->bytes / WRITE_BYTES * (WRITE_BYTES / OP_BYTES);
	uint64_t state = UINT64_C(0x9e3779b97f4a7c15) + w->index;
	uint64_t block[OP_BYTES / sizeof(uint64_t)];
	struct timespec pause = {.tv_nsec = 10000000};

	if (!blocks)
		return -1;
	if (w->index == 0 && write_file(w->fds[0], w->load->bytes / WRITE_BYTES * WRITE_BYTES) < 0)
		return -1;
	if (w->index == 0)
		atomic_store(&w->counter->ready, 1);
	while (!atomic_load(&w->counters[0].ready))
		nanosleep(&pause, NULL);
	atomic_store(&w->counter->ready, 1);
	for (uint64_t i = 0;; i++) {
		off_t at = load_random(&state) % blocks * OP_BYTES;
		ssize_t n;

		if (i % 2 == 0) {
			load_fill(block, sizeof(block), &state);
			n = pwrite(w->fds[0], block, sizeof(block), at);
		} else {
			n = pread(w->fds[0], block, sizeof(block), at);
		}
		if (n != (ssize_t)sizeof(block))
			return -1;
		load_count(w->counter);
	}
}

const struct load_kind load_io = {.name = "io", .unit = "ops", .open = open_file, .run = run};
