/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Amounts as people say them. */
#include "runner/amount.h"

#include <inttypes.h>
#include <stdio.h>

void amount_duration(char text[AMOUNT_BYTES], int64_t ns)
{
	int64_t s = ns < 0 ? 0 : (ns + 500000000) / 1000000000;

	if (s < 60)
		snprintf(text, AMOUNT_BYTES, "%" PRId64 " s", s);
	else if (s < 3600)
		snprintf(text, AMOUNT_BYTES, "%" PRId64 " min %02" PRId64 " s", s / 60, s % 60);
	else
		snprintf(text, AMOUNT_BYTES, "%" PRId64 " h %02" PRId64 " min", s / 3600,
			 s % 3600 / 60);
}

void amount_size(char text[AMOUNT_BYTES], uint64_t bytes)
{
	static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
	double value = (double)bytes;
	unsigned i = 0;

	/* What would be printed as 1000 is 1 of the next unit. */
	for (; value >= 999.5 && i < 6; i++)
		value /= 1000;
	snprintf(text, AMOUNT_BYTES, i > 1 && value < 9.95 ? "%.1f %s" : "%.0f %s", value,
		 units[i]);
}
