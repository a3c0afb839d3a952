/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Statistics: arrays in, struct out, nothing else. Pure. GSL is used here only. */
#ifndef RECOUNT_RESULTS_STAT_H
#define RECOUNT_RESULTS_STAT_H

#include <stddef.h>

#include "results/macro.h"

struct stat_summary {
	size_t n;
	double mean, median, min, max;
	double stddev; /* n − 1; NaN for n < 2 */
	double cv;     /* stddev / mean, a fraction; NaN for n < 2 or mean 0 */
};

/* -EINVAL for n = 0 or a value that is not finite, -ENOMEM. @x is not changed. */
int stat_summarise(const double *x, size_t n, struct stat_summary *out) _must_check_;

#endif
