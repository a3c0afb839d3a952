/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Disarming whatever it takes: the key in the store's block, or, where the store cannot be written,
 * recount's block in custom.cfg, without which GRUB never looks at the key. The referee does it
 * before it waits and whenever it gives up.
 */
#ifndef RECOUNT_RUNNER_DISARM_H
#define RECOUNT_RUNNER_DISARM_H

#include "results/macro.h"

/*
 * *Durable.* The machine's next boot is its default: 0 when the key was or is clear in the store
 * mounted at @store_dir (a damaged block has none), 1 when the block had to be removed below @root
 * instead, -errno when neither could be done. What is done is logged, and so are failures.
 */
int disarm(const char *root, const char *store_dir) _must_check_;

/* 1: the file system at @dir is read-only or full: what cannot be written there is nobody's fault
 * but its own. */
int disarm_is_unwritable(const char *dir);

#endif
