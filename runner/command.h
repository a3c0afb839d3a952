/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ordinary programs of the system (cp, tar, mke2fs), run for the person who typed. */
#ifndef RECOUNT_RUNNER_COMMAND_H
#define RECOUNT_RUNNER_COMMAND_H

#include "results/macro.h"

/* Runs @argv, looked up in PATH, and waits; its complaints go to standard error, its input is
 * empty. -EIO when it exits with other than 0; failures are logged. */
int command_run(char *const *argv) _must_check_;

/* The same, quietly: what it prints comes back in *@text (at most @max bytes, the rest is thrown
 * away), its complaints are thrown away, and failures are not logged. Owned by caller, free(). */
int command_read(char *const *argv, size_t max, char **text) _must_check_;

#endif
