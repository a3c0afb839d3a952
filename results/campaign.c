/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plan minus store: what was tried, what is finished, what comes next. */
#include "results/campaign.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define NOT_STOPPED "bmc-not-stopped"

/* The order of arming: entries that hang come last, then rounds, then the plan's own order. */
struct rank {
	int last;
	unsigned round, boot;
};

static const struct plan_trial *find_trial(const struct campaign *c, unsigned boot, unsigned trial)
{
	if (boot >= c->plan->n_boots || trial < 1 || trial > c->plan->boots[boot].n_trials)
		return NULL;
	return &c->plan->boots[boot].trials[trial - 1];
}

static int is_open(const struct attempt_state *a)
{
	return a->exists && !a->done && !a->failed;
}

/* Reasons that say nothing about the kernel: a person held the boot, the machine's own system has
 * to run once before it can be measured (after a power cut, or hibernated), or a timer of ours
 * would have reset it. */
static int is_nobodys_fault(const struct attempt_state *a)
{
	static const char *const reasons[] = {"held", "root-dirty", "hibernated", NOT_STOPPED};
	size_t i;

	for (i = 0; a->failed && i < ARRAY_SIZE(reasons); i++)
		if (!strcmp(a->failure.reason, reasons[i]))
			return 1;
	return 0;
}

/* The attempts that count against the plan's retries; boots_max counts all. */
static unsigned used_attempts(const struct boot_state *b)
{
	unsigned i, spared = 0;

	for (i = 0; i < b->n_attempts; i++)
		spared += is_nobodys_fault(&b->attempts[i]);
	/* A number that no file can have is never armed. */
	return b->n_attempts < RECORD_ATTEMPT_MAX ? b->n_attempts - spared : b->n_attempts;
}

unsigned campaign_attempts_left(const struct campaign *c, unsigned boot)
{
	unsigned used = used_attempts(&c->boots[boot]);

	return used < c->plan->retries ? c->plan->retries - used : 0;
}

static int has_open(const struct boot_state *b)
{
	unsigned i;

	for (i = 0; i < b->n_attempts; i++)
		if (is_open(&b->attempts[i]))
			return 1;
	return 0;
}

const struct trial_record *campaign_cell_record(const struct campaign *c, unsigned boot,
						unsigned trial)
{
	size_t i;

	if (!find_trial(c, boot, trial))
		return NULL;
	for (i = 0; i < c->boots[boot].n_records; i++) {
		const struct trial_record *r = &c->boots[boot].records[i];

		if (r->trial == trial && (r->status == TRIAL_OK || r->status == TRIAL_DISCARDED))
			return r;
	}
	return NULL;
}

int campaign_cell_finished(const struct campaign *c, unsigned boot, unsigned trial)
{
	if (!find_trial(c, boot, trial))
		return 0;
	if (campaign_cell_record(c, boot, trial))
		return 1;
	return !campaign_attempts_left(c, boot) && !has_open(&c->boots[boot]);
}

/* Something to do and an attempt left to do it in. */
static int is_wanted(const struct campaign *c, unsigned boot)
{
	unsigned trial;

	if (!campaign_attempts_left(c, boot))
		return 0;
	for (trial = 1; trial <= c->plan->boots[boot].n_trials; trial++)
		if (!campaign_cell_record(c, boot, trial))
			return 1;
	return 0;
}

int campaign_canary_passed(const struct campaign *c)
{
	const struct plan_boot *plan = &c->plan->boots[0];
	const struct boot_state *b = &c->boots[0];
	const struct trial_record *r;
	unsigned i;
	int done = 0;

	for (i = 0; i < b->n_attempts; i++)
		done |= b->attempts[i].done;
	for (i = 0; i < plan->n_trials; i++) {
		if (strcmp(plan->trials[i].load, c->plan->loads[0].name) != 0)
			continue;
		r = campaign_cell_record(c, 0, plan->trials[i].trial);
		if (!r || r->status != TRIAL_DISCARDED)
			return 0;
	}
	return done;
}

static int entry_hangs(const struct campaign *c, const char *label)
{
	unsigned boot, i, count = 0;

	for (boot = 0; boot < c->plan->n_boots; boot++) {
		if (strcmp(c->plan->boots[boot].entry, label) != 0)
			continue;
		for (i = 0; i < c->boots[boot].n_attempts; i++)
			if (c->boots[boot].attempts[i].failed &&
			    strcmp(c->boots[boot].attempts[i].failure.reason, "not-reached") == 0)
				count++;
	}
	return count >= c->plan->retries;
}

static struct rank rank_of(const struct campaign *c, unsigned boot)
{
	const struct plan_boot *b = &c->plan->boots[boot];

	return (struct rank){
		.last = boot > 0 && entry_hangs(c, b->entry),
		.round = b->round,
		.boot = boot,
	};
}

static int comes_before(const struct rank *a, const struct rank *b)
{
	if (a->last != b->last)
		return a->last < b->last;
	if (a->round != b->round)
		return a->round < b->round;
	return a->boot < b->boot;
}

int campaign_open_attempt(const struct campaign *c, unsigned *boot, unsigned *attempt)
{
	struct rank rank, latest = {0};
	unsigned b, i;
	int found = 0;

	for (b = 0; b < c->plan->n_boots; b++) {
		if (!has_open(&c->boots[b]))
			continue;
		rank = rank_of(c, b);
		if (found && comes_before(&rank, &latest))
			continue;
		found = 1;
		latest = rank;
		*boot = b;
		for (i = 0; i < c->boots[b].n_attempts; i++)
			if (is_open(&c->boots[b].attempts[i]))
				*attempt = i + 1;
	}
	return found;
}

static unsigned count_attempts(const struct campaign *c)
{
	unsigned b, i, n = 0;

	for (b = 0; b < c->plan->n_boots; b++)
		for (i = 0; i < c->boots[b].n_attempts; i++)
			n += c->boots[b].attempts[i].exists;
	return n;
}

/* The boot to arm, or -1. */
static int64_t choose(const struct campaign *c)
{
	struct rank rank, first = {0};
	int64_t chosen = -1;
	unsigned b;

	for (b = 1; b < c->plan->n_boots; b++) {
		if (!is_wanted(c, b))
			continue;
		rank = rank_of(c, b);
		if (chosen < 0 || comes_before(&rank, &first)) {
			first = rank;
			chosen = b;
		}
	}
	return chosen;
}

enum campaign_next campaign_next(const struct campaign *c, unsigned *boot, unsigned *attempt)
{
	int64_t chosen = 0;

	if (campaign_canary_passed(c))
		chosen = choose(c);
	else if (!campaign_attempts_left(c, 0))
		return CAMPAIGN_CANARY_BAD;
	if (chosen < 0)
		return CAMPAIGN_COMPLETE;
	if (count_attempts(c) >= c->plan->boots_max)
		return CAMPAIGN_LIMIT;
	*boot = chosen;
	*attempt = c->boots[chosen].n_attempts + 1;
	return CAMPAIGN_BOOT;
}

int campaign_comes_home(const struct plan *plan, unsigned boot, unsigned next)
{
	unsigned from = plan->boots[boot].round, to = plan->boots[next].round;
	unsigned every = plan->home_every_rounds;

	if (from == 0)
		return 1;
	return every && to > from && (to - 1) / every > (from - 1) / every;
}

unsigned campaign_bmc_s(const struct campaign *c, unsigned boot)
{
	const char *label = c->plan->boots[boot].entry;
	const struct plan_entry *entry = plan_find_entry(c->plan, label);
	unsigned b, i;

	for (b = 0; b < c->plan->n_boots; b++) {
		const struct boot_state *s = &c->boots[b];

		if (strcmp(c->plan->boots[b].entry, label) != 0)
			continue;
		for (i = 0; i < s->n_attempts; i++)
			if (s->attempts[i].failed &&
			    !strcmp(s->attempts[i].failure.reason, NOT_STOPPED))
				return 0;
	}
	return entry ? entry->bmc_s : 0;
}

static void count_boot(const struct campaign *c, unsigned boot, struct campaign_counts *n)
{
	const struct boot_state *b = &c->boots[boot];
	const struct trial_record *r;
	unsigned trial, finished = 0, i;
	int done = 0;

	for (trial = 1; trial <= c->plan->boots[boot].n_trials; trial++) {
		r = campaign_cell_record(c, boot, trial);
		n->trials_ok += r && r->status == TRIAL_OK;
		finished += campaign_cell_finished(c, boot, trial);
	}
	n->trials_planned += c->plan->boots[boot].n_trials;
	n->trials_finished += finished;
	n->boots_finished += finished == c->plan->boots[boot].n_trials;
	for (i = 0; i < b->n_attempts; i++)
		done |= b->attempts[i].done;
	n->boots_failed += !campaign_attempts_left(c, boot) && !has_open(b) && !done;
	for (i = 0; i < b->n_records; i++) {
		n->records_void += b->records[i].status == TRIAL_VOID;
		n->records_failed += b->records[i].status == TRIAL_FAILED ||
				     b->records[i].status == TRIAL_TIMEOUT;
	}
}

void campaign_count(const struct campaign *c, struct campaign_counts *out)
{
	struct campaign_counts n = {0};
	unsigned b;

	n.boots_planned = c->plan->n_boots - 1;
	n.attempts = count_attempts(c);
	for (b = 1; b < c->plan->n_boots; b++)
		count_boot(c, b, &n);
	*out = n;
}
