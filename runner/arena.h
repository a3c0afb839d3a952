/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The arena in a measuring boot: checked when nobody had unmounted it, mounted, unmounted, and
 * freed of whatever still runs in it. Logs failures.
 */
#ifndef RECOUNT_RUNNER_ARENA_H
#define RECOUNT_RUNNER_ARENA_H

#include "runner/place.h"

/* Checks the arena with the root's own e2fsck when it was not cleanly unmounted, and sets
 * @p->arena_restore. -EUCLEAN when that did not help, -ETIMEDOUT when it did not end. */
int arena_check(struct place *p) _must_check_;

/* Mounts the arena and binds its temporary folder over tmp_dir; unmounts both, -EBUSY while
 * something is open there. */
int arena_mount(const struct place *p) _must_check_;
int arena_unmount(const struct place *p) _must_check_;

/* Kills every process but PID 1 and the caller, whatever its session, group or parent, and reaps
 * them. As long as one does not die, it does not return. Only recount-init may call it. */
void arena_kill_leftovers(void);

#endif
