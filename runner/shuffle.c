/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random order from a seed. */
#include "runner/shuffle.h"

static uint64_t next(struct shuffle *s)
{
	uint64_t z = s->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Below @n; the remainder of 2^64 is thrown again, or small numbers would be likelier. */
static uint64_t below(struct shuffle *s, uint64_t n)
{
	uint64_t limit = UINT64_MAX - UINT64_MAX % n, value;

	do
		value = next(s);
	while (value >= limit);
	return value % n;
}

void shuffle_order(struct shuffle *s, size_t order[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	for (size_t i = n; i > 1; i--) {
		size_t j = below(s, i), swap = order[j];

		order[j] = order[i - 1];
		order[i - 1] = swap;
	}
}
