/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Judges the open attempt of a campaign and finds the next step. */
#include "runner/referee.h"

#include <errno.h>
#include <string.h>
#include <time.h>

int referee_utc(const char *text, int64_t *seconds)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);

	if (!end || *end)
		return -EBADMSG;
	*seconds = timegm(&tm);
	return 0;
}

static const struct attempt_state *attempt_of(const struct campaign *c, unsigned boot,
					      unsigned attempt)
{
	return &c->boots[boot].attempts[attempt - 1];
}

/* The attempt that carries @token, open or not. */
static const struct attempt_state *find_token(const struct campaign *c, const char *token,
					      unsigned *boot, unsigned *attempt)
{
	size_t b;
	unsigned a;

	for (b = 0; b < c->plan->n_boots; b++) {
		for (a = 1; a <= c->boots[b].n_attempts; a++) {
			const struct attempt_state *s = attempt_of(c, b, a);

			if (!s->exists || strcmp(s->armed.token, token) != 0)
				continue;
			*boot = b;
			*attempt = a;
			return s;
		}
	}
	return NULL;
}

/* Has any boot but the canary been armed? */
static int has_begun(const struct campaign *c)
{
	size_t b;

	for (b = 1; b < c->plan->n_boots; b++)
		if (c->boots[b].n_attempts)
			return 1;
	return 0;
}

static struct referee_finding judge_recount_boot(const struct campaign *c, const char *token)
{
	struct referee_finding f = {.verdict = REFEREE_STAY};
	const struct attempt_state *s = find_token(c, token, &f.boot, &f.attempt);

	if (s && !s->done && !s->failed) {
		f.verdict = REFEREE_GO_HOME;
		f.reason = "init-not-reached";
	} else if (s && f.boot == 0 && s->done && !has_begun(c)) {
		/* The boot after the canary had to be the default: the one-shot sticks. */
		f.verdict = REFEREE_STUCK;
	} else {
		/* Never a reboot for what is booked already: that could go on for ever. */
		f.boot = f.attempt = 0;
	}
	return f;
}

/* A record of a trial can have survived where reached-N.json has not. */
static int worker_was_reached(const struct campaign *c, const struct attempt_state *s,
			      unsigned boot, unsigned attempt)
{
	size_t i;

	if (s->reached)
		return 1;
	for (i = 0; i < c->boots[boot].n_records; i++)
		if (c->boots[boot].records[i].attempt == attempt)
			return 1;
	return 0;
}

struct referee_finding referee_judge(const struct campaign *c, const struct oneshot_state *state,
				     const char *token, int panic_text)
{
	struct referee_finding f = {.verdict = REFEREE_NONE};
	const struct attempt_state *s;
	int reached;

	if (token[0])
		return judge_recount_boot(c, token);
	if (!campaign_open_attempt(c, &f.boot, &f.attempt))
		return f;
	s = attempt_of(c, f.boot, f.attempt);
	f.verdict = REFEREE_BOOK;
	if (!s->armed.token[0]) {
		/* Its file is damaged: without a token nobody can say whether GRUB took it. */
		f.reason = "damaged";
		return f;
	}
	reached = worker_was_reached(c, s, f.boot, f.attempt);
	if (!reached && strcmp(state->taken, s->armed.token) != 0)
		f.verdict = REFEREE_REARM;
	else if (panic_text)
		f.reason = "panic";
	else
		f.reason = reached ? "no-answer" : "not-reached";
	return f;
}

int referee_last_armed(const struct campaign *c, unsigned *boot, unsigned *attempt,
		       int64_t *armed_s)
{
	const struct attempt_state *last = NULL;
	size_t b;
	unsigned a;

	for (b = 0; b < c->plan->n_boots; b++) {
		for (a = 1; a <= c->boots[b].n_attempts; a++) {
			const struct attempt_state *s = attempt_of(c, b, a);

			/* What was booked without a boot was never armed. */
			if (!s->exists || !s->armed.token[0] ||
			    (s->failed && !strcmp(s->failure.reason, "changed")) ||
			    (last && s->armed.sequence < last->armed.sequence))
				continue;
			last = s;
			*boot = b;
			*attempt = a;
		}
	}
	if (last && referee_utc(last->armed.armed_utc, armed_s) < 0)
		*armed_s = 0;
	return last != NULL;
}

static int was_held(const struct campaign *c)
{
	const struct attempt_state *s;
	unsigned boot, attempt;
	int64_t armed_s;

	if (!referee_last_armed(c, &boot, &attempt, &armed_s))
		return 0;
	s = attempt_of(c, boot, attempt);
	return s->failed && !strcmp(s->failure.reason, "held");
}

/*
 * Nothing but a person brings a machine back long after a boot that was never reached had to be
 * over. Clocks that cannot be believed say nothing: one from before the plan was made, or one that
 * has gone back since the boot was armed.
 */
static int person_came(const struct campaign *c, const struct referee_now *now)
{
	const struct plan *p = c->plan;
	const struct attempt_state *s;
	unsigned boot, attempt;
	int64_t armed_s, made_s, limit_ms;

	if (!referee_last_armed(c, &boot, &attempt, &armed_s))
		return 0;
	s = attempt_of(c, boot, attempt);
	if (!s->failed || strcmp(s->failure.reason, "not-reached") != 0)
		return 0;
	if (now->rearmed_s)
		armed_s = now->rearmed_s;
	if (referee_utc(p->created_utc, &made_s) < 0 || armed_s < made_s)
		return 0;
	limit_ms = p->boot_timeout_ms + (int64_t)p->boots[boot].n_trials * p->trial_timeout_ms;
	/* The BMC has come before any person. */
	return now->now_s - armed_s > limit_ms / 1000 + s->armed.bmc_s + REFEREE_LATE_S;
}

/* The canary has to bring the machine home to the kernel it was started from; once another boot was
 * armed, it has. */
static int canary_came_home(const struct campaign *c, const char *uname)
{
	return has_begun(c) || !strcmp(uname, c->plan->default_uname);
}

enum referee_step referee_next(const struct campaign *c, const struct referee_finding *finding,
			       const struct referee_now *now, unsigned *boot, unsigned *attempt)
{
	unsigned b, a;

	if (finding->verdict == REFEREE_STUCK)
		return REFEREE_CANARY_BAD;
	if (finding->verdict == REFEREE_REARM) {
		*boot = finding->boot;
		*attempt = finding->attempt;
		return REFEREE_ARM;
	}
	switch (campaign_next(c, &b, &a)) {
	case CAMPAIGN_COMPLETE:
		return REFEREE_COMPLETE;
	case CAMPAIGN_LIMIT:
		return REFEREE_LIMIT;
	case CAMPAIGN_CANARY_BAD:
		return REFEREE_CANARY_BAD;
	case CAMPAIGN_BOOT:
		break;
	}
	if (b > 0 && !canary_came_home(c, now->uname))
		return REFEREE_CANARY_BAD;
	if (!now->asked && was_held(c))
		return REFEREE_HELD;
	if (!now->asked && person_came(c, now))
		return REFEREE_WAIT;
	*boot = b;
	*attempt = a;
	return REFEREE_ARM;
}

/* What went wrong with the trial of the canary that has to work; NULL: nothing. */
static const char *canary_trial(const struct campaign *c, char text[64])
{
	const struct boot_state *b = &c->boots[0];
	const struct plan_boot *plan = &c->plan->boots[0];
	const struct trial_record *last = NULL;
	size_t i;

	for (i = 0; i < b->n_records; i++)
		if (!strcmp(b->records[i].load, c->plan->loads[0].name))
			last = &b->records[i];
	if (!last)
		return "left no record of its trial that can be read";
	if (campaign_cell_record(c, 0, last->trial) || !plan->n_trials)
		return NULL;
	if (last->status == TRIAL_FAILED)
		return "its trial failed";
	if (last->status == TRIAL_TIMEOUT)
		return "its trial took too long";
	snprintf(text, 64, "its trial was %s%s%.32s%s", trial_status_name(last->status),
		 last->n_voids ? " (" : "", last->n_voids ? last->voids[0] : "",
		 last->n_voids ? ")" : "");
	return text;
}

static void print_canary(FILE *f, const struct campaign *c, const char *uname, int stuck)
{
	const struct boot_state *b = &c->boots[0];
	char text[64];
	unsigned a;

	if (stuck) {
		fputs("the boot after it carries its token again, so GRUB does not forget a "
		      "one-shot on this machine",
		      f);
		return;
	}
	if (campaign_canary_passed(c)) {
		fprintf(f, "it came home to %s, not to %s", uname, c->plan->default_uname);
		return;
	}
	for (a = 1; a <= b->n_attempts; a++) {
		const struct attempt_state *s = attempt_of(c, 0, a);
		const char *trial = s->done ? canary_trial(c, text) : NULL;

		fprintf(f, "%sattempt %u: %s", a > 1 ? "; " : "", a,
			s->failed ? s->failure.reason
			: trial	  ? trial
			: s->done ? "done"
				  : "open");
	}
}

int referee_explain(const struct campaign *c, enum referee_step step,
		    const struct referee_finding *finding, const char *uname, char **text)
{
	_cleanup_free_ char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);

	if (!f)
		return -ENOMEM;
	if (step == REFEREE_LIMIT)
		fprintf(f,
			"ended early: the campaign used up the %u boots it was allowed (boots_max)",
			c->plan->boots_max);
	if (step == REFEREE_CANARY_BAD) {
		fputs("ended early: the trial boot into the machine's own default kernel did not "
		      "go as it should: ",
		      f);
		print_canary(f, c, uname, finding->verdict == REFEREE_STUCK);
	}
	if (fclose(f))
		return -ENOMEM;
	*text = TAKE_PTR(out);
	return 0;
}

const char *referee_waits_for(enum referee_step step)
{
	if (step == REFEREE_HELD)
		return "a person pressed h in the last boot";
	if (step == REFEREE_WAIT)
		return "the last boot ended long ago, so a person must have come";
	return NULL;
}
