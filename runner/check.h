/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The pre-flight: every obstacle with its remedy, in one list; `check` prints it, `plan`, `start`
 * and `resume` refuse by it. Changes nothing.
 */
#ifndef RECOUNT_RUNNER_CHECK_H
#define RECOUNT_RUNNER_CHECK_H

#include "results/prepared.h"
#include "runner/findings.h"
#include "runner/machine.h"

/*
 * Adds what it finds to @f. @store is open, or NULL: there is none that is fit, which is an
 * obstacle, or it cannot be read below options.root, which is only said. @prepared may be NULL:
 * where @store is open, its absence is an obstacle. Who may not read the devices is told that,
 * and nothing of what they hold. Whether a campaign is active is check_active()'s question.
 */
void check_machine(struct findings *f, const struct options *o, const struct machine *m,
		   struct store *store, const struct prepared *prepared);

/* An obstacle when a campaign is active in @store. */
void check_active(struct findings *f, struct store *store);

/* The part of check_machine() that looks at GRUB's menu alone. */
void check_grub(struct findings *f, const struct machine *m);

/* The part of check_machine() that tells what can be done about a kernel that hangs. */
void check_watchdog(struct findings *f, const struct options *o, const struct machine *m);

/* The parts of check_machine() that look at the partitions alone: store, arena, swap; and whether
 * the store has @store_need_bytes and the arena @arena_need_bytes free. */
void check_partitions(struct findings *f, const struct options *o, const struct machine *m,
		      uint64_t store_need_bytes, uint64_t arena_need_bytes);

#endif
