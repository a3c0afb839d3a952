/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Talk for people: one line to standard error, or in recount-init to /dev/kmsg and the console.
 * Pure code (codecs, statistics) never logs; a failure is logged once, where the object's name
 * is known.
 */
#ifndef RECOUNT_RESULTS_LOG_H
#define RECOUNT_RESULTS_LOG_H

#include "results/macro.h"

/* Sends all later lines to @fd, a descriptor of /dev/kmsg or a console (borrowed, stays open);
 * each line then starts with "recount: ". */
void log_to(int fd);

/* Prints a line; a newline is added. */
void log_info(const char *fmt, ...) _printf_(1, 2);
void log_warn(const char *fmt, ...) _printf_(1, 2);

/* Prints "cannot <text>: <reason>" and returns @err unchanged (a negative errno), so that
 * `return log_errno(-errno, "open %s", path);` logs and passes the failure up. */
int log_errno(int err, const char *fmt, ...) _printf_(2, 3);

#endif
