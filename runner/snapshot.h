/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The snapshot of one boot: what /proc and /sys say of kernel, CPU, memory and settings. */
#ifndef RECOUNT_RUNNER_SNAPSHOT_H
#define RECOUNT_RUNNER_SNAPSHOT_H

#include "results/macro.h"

/* JSON text as in environment-N.json; what this kernel does not have is left out. Owned by caller,
 * free(). */
int snapshot_take(char **json) _must_check_;

#endif
