/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * /tmp and /run as a build finds them under recount-init: /tmp on the arena, /run with nothing in
 * it but the arena. `prepare` puts them over the machine's own, for itself and its children alone:
 * programs that listen in those (the resolver, the message bus, the display) would do for a build
 * what it may not do itself.
 */
#ifndef RECOUNT_RUNNER_OWN_FOLDERS_H
#define RECOUNT_RUNNER_OWN_FOLDERS_H

#include "results/macro.h"

/* In a mount namespace of this process, with the arena mounted at SPAWN_ARENA and its folders made
 * (spawn_make_home()). Failures are logged, and undone. */
int own_folders_enter(void) _must_check_;

/* Takes them away again; -EBUSY while something uses the arena. */
int own_folders_leave(void) _must_check_;

#endif
