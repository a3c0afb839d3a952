/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The load "process": N processes in a one-way ring of pipes, a quarter as many chunks of 1 KiB
 * going round (irman's process load). The milestone is that a worker runs. Counts hops.
 */
#include "runner/load.h"

#include <errno.h>
#include <fcntl.h>

#define CHUNK_BYTES 1024

/* fds[2 i] is what worker i reads from, fds[2 i + 1] the end that writes into the same pipe. */
static int open_ring(const struct plan_load *load, const char *dir, int *fds, size_t *n_fds)
{
	(void)dir;
	for (unsigned i = 0; i < load->workers; i++) {
		if (pipe2(fds + 2 * i, O_CLOEXEC))
			return -errno;
		*n_fds += 2;
	}
	return 0;
}

static int run(struct load_worker *w)
{
	unsigned next = (w->index + 1) % w->load->workers;
	int from = w->fds[2 * w->index], to = w->fds[2 * next + 1];
	uint64_t state = w->index + 1;
	char chunk[CHUNK_BYTES];

	if (w->index % 4 == 0) {
		load_fill(chunk, sizeof(chunk), &state);
		if (write(to, chunk, sizeof(chunk)) != (ssize_t)sizeof(chunk))
			return -1;
	}
	atomic_store(&w->counter->ready, 1);
	for (;;) {
		if (read(from, chunk, sizeof(chunk)) != (ssize_t)sizeof(chunk) ||
		    write(to, chunk, sizeof(chunk)) != (ssize_t)sizeof(chunk))
			return -1;
		load_count(w->counter);
	}
}

const struct load_kind load_process = {
	.name = "process", .unit = "hops", .open = open_ring, .run = run};
