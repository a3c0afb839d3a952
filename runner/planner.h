/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Draws the plan of a campaign from options, machine and what was prepared: entries, loads, a
 * seeded random order of entries in each round, an order of loads that is permuted between rounds
 * but equal for all entries of a round. A round boots every entry once; boot 0 is the canary, the
 * kernel that runs now. Pure but for the clock, the seed when none was given, and reading kernels
 * to hash them.
 */
#ifndef RECOUNT_RUNNER_PLANNER_H
#define RECOUNT_RUNNER_PLANNER_H

#include <stdio.h>

#include "results/prepared.h"
#include "runner/machine.h"

#define PLANNER_LOADS "none, mem, io, process"

/*
 * Refusals (unknown kernel, baseline) are printed to standard error, and also what is left out: the
 * mem load without swap, kernels that cannot be booted. 0, -EINVAL (refused, was printed) or
 * -errno. @id is the new campaign's id. Owned by caller, plan_free().
 */
int planner_draw(const struct options *o, const struct machine *m, const struct prepared *prepared,
		 const char *id, struct plan **out) _must_check_;

/* Expected length of the whole campaign in ns, from the cold build time measured at prepare. Pure.
 */
int64_t planner_estimate_ns(const struct plan *plan);

/* The whole plan for people: entries with command lines, loads, boots in order, the estimate. */
void planner_print(FILE *out, const struct plan *plan);

/*
 * The loads that @o asks for, sized for @m. mem is left out where it cannot run, and *why_no_mem
 * (static) says why; else that is NULL. -EINVAL: nothing is left. Owned by caller,
 * planner_loads_free().
 */
int planner_loads(const struct options *o, const struct machine *m, struct plan_load **loads,
		  size_t *n, const char **why_no_mem) _must_check_;
void planner_loads_free(struct plan_load *loads, size_t n);

/* How many boots a plan of @n_entries may make in all. Pure. */
unsigned planner_boots_max(unsigned rounds, size_t n_entries);

/* 1 when @kernel is one that @patterns (GLOB,…; NULL: all) choose, by label, version or image.
 * Pure.
 */
int planner_chooses(const char *patterns, const struct kernel *kernel);

#endif
