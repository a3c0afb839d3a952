/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sums squares. */
#include "tiny.h"

long sum_squares(int upto)
{
	long sum = 0;

	for (long i = 1; i <= upto; i++)
		sum += i * i;
	return sum;
}
