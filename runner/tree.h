/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Trees of source: their names in the arena, and how they come there. */
#ifndef RECOUNT_RUNNER_TREE_H
#define RECOUNT_RUNNER_TREE_H

#include "results/macro.h"

/* The name that the tree at @source, a folder or an archive, gets in the arena: its last component
 * without .tar.*; NULL: no name is left, or no memory. Owned by caller, free(). Pure but for the
 * folder ".". */
char *tree_name(const char *source);

/*
 * Makes the tree that --tree @source names stand in the mounted arena @arena_dir: a relative path
 * that is a folder there is used in place; a folder or archive elsewhere is copied or unpacked to
 * its name, owned by @uid, whole or not at all, but only when that name is not there yet. What is
 * done is said. The path in the arena into *dir, owned by caller, free(). 1: it was brought now; 0:
 * it was there. Refusals are printed, with @device as the arena's name: -EINVAL; -ENOSPC: no room.
 * Needs root.
 */
int tree_bring(const char *source, const char *arena_dir, const char *device, unsigned uid,
	       char **dir) _must_check_;

#endif
