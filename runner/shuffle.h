/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random order from a seed: the same on every machine and in every version. Pure. */
#ifndef RECOUNT_RUNNER_SHUFFLE_H
#define RECOUNT_RUNNER_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

/* splitmix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014). */
struct shuffle {
	uint64_t state;
};

/* Fills @order with 0 … @n−1 in random order (R. Durstenfeld, CACM 7, 1964: every order is equally
 * likely) and moves the generator on. */
void shuffle_order(struct shuffle *s, size_t order[], size_t n);

#endif
