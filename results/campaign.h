/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where a campaign stands: plan minus store. Both recount-init (after a boot) and the referee
 * (on a normal boot) ask the same function what comes next. Reads the store, writes nothing.
 */
#ifndef RECOUNT_RESULTS_CAMPAIGN_H
#define RECOUNT_RESULTS_CAMPAIGN_H

#include "results/plan.h"
#include "results/record.h"
#include "results/store.h"

/* What the store says of one attempt at a boot. */
struct attempt_state {
	struct attempt_record armed;  /* all zero when its file is damaged or missing */
	int exists;		      /* attempt-N.json is there, valid or not: it counts as used */
	int reached, done;	      /* the file is there and valid */
	int failed;		      /* failed-N.json is there … */
	struct failed_record failure; /* … and says this */
};

struct boot_state {
	struct attempt_state *attempts; /* attempts[0] is attempt 1; gaps have exists = 0 */
	unsigned n_attempts;
	struct trial_record *records; /* every valid trial record, in order of attempt and trial */
	size_t n_records;
};

struct campaign {
	const struct plan *plan;  /* borrowed */
	struct boot_state *boots; /* plan->n_boots of them */
	unsigned damaged;	  /* files that could not be read: named in the log, counted here */
};

/* Reads everything under campaigns/ID. Damaged files, and files whose content disagrees with their
 * name, the plan or the attempt's token, are skipped, counted and named to @on_damage (may be
 * NULL). Owned by caller, campaign_free(). */
int campaign_load(struct store *s, const struct plan *plan,
		  void (*on_damage)(const char *path, int err), struct campaign **out) _must_check_;
void campaign_free(struct campaign *c);
static inline void cleanup_campaign(struct campaign **c)
{
	campaign_free(*c);
}

/* The attempt that was armed and has neither done nor failed; *boot and *attempt say which.
 * 1 when there is one, 0 when not. If several (cannot happen unless files were lost) the one of
 * the latest arming order: highest attempt of the boot that campaign_next() would reach last. */
int campaign_open_attempt(const struct campaign *c, unsigned *boot, unsigned *attempt);

/* Cell state: 1 finished (an ok or discarded record, or the boot's attempts used up and none of
 * them open), 0 not. @boot and @trial as numbered in the plan; 0 for one that is not planned. */
int campaign_cell_finished(const struct campaign *c, unsigned boot, unsigned trial);

/* How many attempts a boot has left of the plan's `retries`. An open one is used; one that was
 * nobody's fault (see campaign_next()) is not. */
unsigned campaign_attempts_left(const struct campaign *c, unsigned boot);

/* The first ok/discarded record of a cell, borrowed, or NULL. */
const struct trial_record *campaign_cell_record(const struct campaign *c, unsigned boot,
						unsigned trial);

/* 1: boot 0 is done and its trials with the plan's first load were as they should be. */
int campaign_canary_passed(const struct campaign *c);

enum campaign_next {
	CAMPAIGN_BOOT,	     /* arm *boot, *attempt */
	CAMPAIGN_COMPLETE,   /* nothing is left */
	CAMPAIGN_LIMIT,	     /* attempts in all reached boots_max: disarm everything */
	CAMPAIGN_CANARY_BAD, /* boot 0 used up its attempts without a pass */
};

/*
 * What to arm next: first boot of the lowest round with unfinished cells and attempts left; boots
 * of an entry with `retries` or more attempts failed as "not-reached" come after all others, so
 * that one hanging kernel does not cost the night. A boot with an open attempt is not finished by
 * it, but an open attempt counts as used: settle it first (campaign_open_attempt), else the answer
 * may come too early. Boot 0 comes first, and nothing else comes before it has passed: done, and a
 * discarded record in each cell with the first load of the plan. An attempt that ended as "held",
 * "root-dirty", "hibernated" or "bmc-not-stopped" is nobody's fault and not one of the `retries`.
 * *boot and *attempt are written for CAMPAIGN_BOOT only.
 */
enum campaign_next campaign_next(const struct campaign *c, unsigned *boot, unsigned *attempt);

/*
 * 1: after @boot the machine comes home before @next is armed, to its own default and the referee.
 * So after the canary, and where @next begins a round after a whole multiple of the plan's
 * home_every_rounds. Never within a round, for boots that were put off to the end of the campaign
 * either. Pure.
 */
int campaign_comes_home(const struct plan *plan, unsigned boot, unsigned next);

/*
 * For how many seconds the BMC's watchdog is to be armed before @boot: what the plan says of its
 * entry, but 0 once an attempt at any boot of that entry ended as "bmc-not-stopped". Pure.
 */
unsigned campaign_bmc_s(const struct campaign *c, unsigned boot);

/* Counts for progress lines, the canary apart but in @attempts. */
struct campaign_counts {
	unsigned boots_planned;
	unsigned boots_finished; /* every cell finished */
	unsigned boots_failed;	 /* attempts used up and not one of them done */
	unsigned attempts;	 /* attempt files of all boots, the canary's too */
	unsigned trials_planned;
	unsigned trials_finished; /* ok, or given up */
	unsigned trials_ok;
	unsigned records_void, records_failed; /* failed counts timeouts too */
};
void campaign_count(const struct campaign *c, struct campaign_counts *out);

#endif
