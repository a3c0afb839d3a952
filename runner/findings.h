/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a check found: one line each, counted by weight. */
#ifndef RECOUNT_RUNNER_FINDINGS_H
#define RECOUNT_RUNNER_FINDINGS_H

#include <stdio.h>

#include "results/macro.h"

struct findings {
	FILE *out; /* all lines go here; NULL: obstacles only, to standard error */
	unsigned obstacles, warnings;
};

/* Each prints "ok", "warn" or "no", @area ("store") and the sentence; an obstacle or a warning
 * should end with what to do about it. */
void findings_ok(struct findings *f, const char *area, const char *fmt, ...) _printf_(3, 4);
void findings_warn(struct findings *f, const char *area, const char *fmt, ...) _printf_(3, 4);
void findings_no(struct findings *f, const char *area, const char *fmt, ...) _printf_(3, 4);

#endif
