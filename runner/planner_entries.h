/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The part of planner.c that chooses the entries of a plan. Nobody else calls it. */
#ifndef RECOUNT_RUNNER_PLANNER_ENTRIES_H
#define RECOUNT_RUNNER_PLANNER_ENTRIES_H

#include "results/plan.h"
#include "runner/machine.h"

/*
 * Fills entries and baseline of @plan, which must have none. The first *n_compared are compared;
 * one more is there for the canary when the running kernel is not among them. Refusals are printed:
 * -EINVAL. What was filled before a failure is freed with the plan.
 */
int planner_entries(const struct options *o, const struct machine *m, struct plan *plan,
		    size_t *n_compared) _must_check_;

#endif
