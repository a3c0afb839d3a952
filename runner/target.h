/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What --target says, as the commands of a workload. Pure. */
#ifndef RECOUNT_RUNNER_TARGET_H
#define RECOUNT_RUNNER_TARGET_H

#include "results/plan.h"

/*
 * Fills clean, build and product of @w, which must be empty, from the words that stand after make:
 * "vmlinux", "init/" (its object files are the product), "-C lib/api" (a part with a Makefile of
 * its own: that folder's are), any other (the whole tree's are). @product NULL: as just said.
 * -EINVAL with *why (static, for people) for a product outside the tree, or words that are none;
 * -ENOMEM. What was filled is freed by plan_workload_clear(), also after a failure.
 */
int target_parse(const char *target, const char *product, struct plan_workload *w,
		 const char **why) _must_check_;

/* 1: @target is of the "-C DIR" form, whose tree needs no .config. */
int target_is_part(const char *target);

/* @argv with @word put in behind its first, as a new vector: free(); the words stay whose they
 * were. NULL: no memory. */
char **target_insert(char *const *argv, char *word) _must_check_;

/*
 * Lets the clean of @w run @jobs commands at a time ("make -j4 clean"): it is not timed, and that
 * of a whole kernel tree is some 2000 makes. For trees whose clean may run so: a Kbuild tree's,
 * which is run so by everybody. -ENOMEM.
 */
int target_clean_parallel(struct plan_workload *w, unsigned jobs) _must_check_;

/* 1: both workloads build the same and make the same product; a clean follows from its build. */
int target_equal(const struct plan_workload *a, const struct plan_workload *b);

#endif
