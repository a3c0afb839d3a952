/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What recount-init knows of the boot it serves, and everything it reads from and writes to the
 * store. The store is mounted inside these functions only, never while something is timed.
 */
#ifndef RECOUNT_RUNNER_VISIT_H
#define RECOUNT_RUNNER_VISIT_H

#include "results/campaign.h"
#include "runner/trial.h"

struct visit {
	/* from /proc/cmdline */
	char cmdline[RECORD_TEXT];
	char token[RECORD_TOKEN];
	char store_uuid[64];
	char plan_sha256[PLAN_SHA256];
	/* from the store */
	char store_device[288]; /* /dev/… */
	struct plan *plan;
	const struct plan_entry *entry;
	const struct plan_boot *boot;
	unsigned attempt;
	unsigned bmc_s; /* of the armed attempt: the BMC's watchdog may be counting; 0: not */
	char *todo;	/* one flag per trial of the boot: 1 when it is to be run */
	int64_t *canary_read_bytes; /* per workload of the plan; ABSENT without a record */
};

/* Reads /proc/cmdline. -ENOENT when a recount.* word is missing. Logs failures. */
int visit_read_cmdline(struct visit *v) _must_check_;

/*
 * Opens the store and finds the plan, the armed attempt and its unfinished cells. -EPERM when
 * this boot is not the one that was armed (plan's hash or token differ): nothing may run then.
 * Logs failures.
 */
int visit_identify(struct visit *v) _must_check_;

/* For a process that goes on where another died: unmounts the store if that had it mounted. */
int visit_take_over(void) _must_check_;

/* reached-N.json. -EPERM when it is written, but kernel or command line are not the entry's.
 * *Durable.* */
int visit_reached(struct visit *v) _must_check_;

/* The others of a boot's files; each *durable* when it returns 0. */
int visit_put_environment(const struct visit *v) _must_check_;
int visit_put_trial(const struct visit *v, const struct trial_record *r,
		    const char *errors) _must_check_;

/* Ends the boot without a result: failed-N.json with @reason, dmesg-N.txt, and the one-shot key
 * cleared. 0 when the first is *durable*. */
int visit_fail(const struct visit *v, const char *reason) _must_check_;

/*
 * Ends the boot: done-N.json, dmesg-N.txt, then the next boot is armed, *@bmc_s as by arm_boot().
 * After the canary, where the BMC's watchdog is wanted and out of reach, and when nothing is left,
 * the one-shot is cleared instead, the machine comes home, and *@bmc_s is 0.
 */
int visit_done(const struct visit *v, unsigned *bmc_s) _must_check_;

#endif
