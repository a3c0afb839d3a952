/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Statistics on the GNU Scientific Library. */
#include "results/stat.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

int stat_summarise(const double *x, size_t n, struct stat_summary *out)
{
	_cleanup_free_ double *sorted = NULL;
	struct stat_summary s = {.n = n, .stddev = NAN, .cv = NAN};
	size_t i;

	if (n == 0)
		return -EINVAL;
	for (i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return -EINVAL;
	sorted = malloc(n * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, x, n * sizeof(*sorted));
	gsl_sort(sorted, 1, n);
	s.mean = gsl_stats_mean(x, 1, n);
	s.median = gsl_stats_median_from_sorted_data(sorted, 1, n);
	s.min = sorted[0];
	s.max = sorted[n - 1];
	if (n > 1) {
		s.stddev = gsl_stats_sd_m(x, 1, n, s.mean);
		if (s.mean != 0)
			s.cv = s.stddev / s.mean;
	}
	*out = s;
	return 0;
}
