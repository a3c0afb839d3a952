/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Switches of the running kernel: files of /proc and /sys that take one word. Logs failures, but
 * for a switch that this kernel does not have.
 */
#ifndef RECOUNT_RUNNER_PROC_H
#define RECOUNT_RUNNER_PROC_H

#include "results/macro.h"

/* Writes @word into the existing file @path. -ENOENT: there is no such switch. */
int proc_write(const char *path, const char *word) _must_check_;

/* Sets the sysctl @name ("kernel.panic") to @value. A kernel without a detector has no switch for
 * it either: that is no error. */
void proc_sysctl(const char *name, const char *value);

#endif
