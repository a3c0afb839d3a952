/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One trial: leftovers killed, make clean, a cold machine that is checked to be cold, the load
 * steady, then T0, build, T1, syncfs, T2. Runs in the worker of recount-init. Fills a record;
 * writes nothing to the store.
 */
#ifndef RECOUNT_RUNNER_TRIAL_H
#define RECOUNT_RUNNER_TRIAL_H

#include "results/record.h"
#include "runner/place.h"

#define TRIAL_STDERR_BYTES (64 << 10) /* of a build's errors, the first are kept */

/*
 * Runs @trial of @boot. What can go wrong with a trial goes wrong inside its record: status and
 * void causes. @errors gets what the build wrote to standard error, NUL-terminated. The arena is
 * mounted before and after. A negative errno only when the boot itself cannot go on (the arena
 * cannot be mounted any more).
 */
int trial_run(struct place *p, const struct plan_boot *boot, const struct plan_trial *trial,
	      unsigned attempt, char errors[TRIAL_STDERR_BYTES],
	      struct trial_record *out) _must_check_;

#endif
