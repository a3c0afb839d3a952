/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints and counts what a check found. */
#include "runner/findings.h"

#include <stdarg.h>

static void say(FILE *out, const char *weight, const char *area, const char *fmt, va_list ap)
	__attribute__((format(printf, 4, 0)));

static void say(FILE *out, const char *weight, const char *area, const char *fmt, va_list ap)
{
	if (!out)
		return;
	fprintf(out, "%-4s  %-9s ", weight, area);
	vfprintf(out, fmt, ap);
	fputc('\n', out);
}

void findings_ok(struct findings *f, const char *area, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(f->out, "ok", area, fmt, ap);
	va_end(ap);
}

void findings_warn(struct findings *f, const char *area, const char *fmt, ...)
{
	va_list ap;

	f->warnings++;
	va_start(ap, fmt);
	say(f->out, "warn", area, fmt, ap);
	va_end(ap);
}

void findings_no(struct findings *f, const char *area, const char *fmt, ...)
{
	va_list ap;

	f->obstacles++;
	va_start(ap, fmt);
	say(f->out ? f->out : stderr, "no", area, fmt, ap);
	va_end(ap);
}
