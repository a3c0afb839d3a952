/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The load "mem": touches more memory than the machine has, page after page in a fixed permutation
 * that no cache and no read-ahead follows (irman's and contest's memory load). One worker's first
 * full pass populates every page with incompressible data; that is its milestone. Counts pages.
 */
#include "runner/load.h"

#include <sys/mman.h>

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static int run(struct load_worker *w)
{
	uint64_t page = sysconf(_SC_PAGESIZE);
	uint64_t pages = w->load->bytes / w->load->workers / page;
	uint64_t step, at = 0, state = UINT64_C(0x9e3779b97f4a7c15) + w->index;
	char *memory;

	if (!pages)
		return -1;
	memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return -1;
	/* A step near the golden section of the range, coprime to it: every page once a pass, and
	 * neighbours in time far apart in space. */
	for (step = (uint64_t)(pages * 0.6180339887) | 1; gcd(step, pages) != 1; step += 2)
		;
	for (uint64_t i = 0; i < pages; i++, at = (at + step) % pages) {
		load_fill(memory + at * page, page, &state);
		load_count(w->counter);
	}
	atomic_store(&w->counter->ready, 1);
	for (;; at = (at + step) % pages) {
		*(volatile uint64_t *)(memory + at * page) = load_random(&state);
		load_count(w->counter);
	}
}

const struct load_kind load_mem = {.name = "mem", .unit = "pages", .run = run};
