/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lines for people: standard error, or the kernel log and the console. */
#include "results/log.h"

#include <stdarg.h>
#include <string.h>

static int log_fd = STDERR_FILENO;
static const char *log_prefix = "";

void log_to(int fd)
{
	log_fd = fd;
	log_prefix = "recount: ";
}

static void vlog(const char *lead, const char *fmt, va_list ap, const char *reason)
{
	char line[1024];
	int n, m;

	n = snprintf(line, sizeof(line), "%s%s", log_prefix, lead);
	m = vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	n += m < 0 ? 0 : m;
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	if (reason) {
		m = snprintf(line + n, sizeof(line) - n, ": %s", reason);
		n += m;
		if (n > (int)sizeof(line) - 2)
			n = sizeof(line) - 2;
	}
	line[n++] = '\n';
	/* Nothing can be done about a log that cannot be written. */
	if (write(log_fd, line, n) < 0)
		return;
}

void log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog("", fmt, ap, NULL);
	va_end(ap);
}

void log_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog("warning: ", fmt, ap, NULL);
	va_end(ap);
}

int log_errno(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog("cannot ", fmt, ap, strerror(-err));
	va_end(ap);
	return err;
}
