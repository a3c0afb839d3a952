/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Are the machine's kernels, initrds and compilers still those of the plan? Figures of two of them
 * under one name would be worse than none. The referee asks before each arming, `resume` and
 * `status` as well. Reads and hashes files below @root, writes nothing. What is found is logged
 * with the file's name.
 */
#ifndef RECOUNT_RUNNER_UNCHANGED_H
#define RECOUNT_RUNNER_UNCHANGED_H

#include "results/plan.h"

/*
 * Kernel and initrd of @e: 0 both as planned, 1 one of them was changed or removed. One that cannot
 * be read, or is missing together with all of the plan's files in its folder (a /boot that is not
 * mounted), is no sign of a change: -errno.
 */
int unchanged_entry(const char *root, const struct plan *plan,
		    const struct plan_entry *e) _must_check_;

/*
 * The whole toolchain: 0 as planned, 1 with the first that was changed or removed in *@which
 * (borrowed from @plan), -errno when one cannot be read.
 */
int unchanged_toolchain(const char *root, const struct plan *plan, const char **which) _must_check_;

#endif
