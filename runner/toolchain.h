/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The programs that a build runs, as recount-init will find them: by SPAWN_PATH, in the machine's
 * root file system, which is all that it mounts.
 */
#ifndef RECOUNT_RUNNER_TOOLCHAIN_H
#define RECOUNT_RUNNER_TOOLCHAIN_H

#include <limits.h>

#include "results/plan.h"
#include "runner/machine.h"

/* The real path (no links, without the root) of program @name into @path. -ENOENT. */
int toolchain_find(const struct machine *m, const char *name, char path[PATH_MAX]) _must_check_;

/* The mount point of another file system that @path (as of toolchain_find()) lies on; NULL: it is
 * on the root's own. Borrowed. */
const char *toolchain_elsewhere(const struct machine *m, const char *path);

/* The first program of those that every build needs which is missing; NULL: none. Static. */
const char *toolchain_missing(const struct machine *m);

/*
 * Path and SHA-256 of every program: make, shell, compiler with its passes, assembler, linker and
 * what else kernel builds use of what is installed. Runs the compiler to ask for its passes, so
 * only for the running machine. Failures are logged. Owned by caller, plan_pairs_free().
 */
int toolchain_read(const struct machine *m, struct plan_pair **pairs, size_t *n) _must_check_;

#endif
