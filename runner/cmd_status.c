/* SPDX-License-Identifier: GPL-3.0-or-later */
/* recount status: how far the campaign is, or which ones there are. */
#include <errno.h>
#include <string.h>

#include "grub/oneshot.h"
#include "results/log.h"
#include "runner/amount.h"
#include "runner/install.h"
#include "runner/machine.h"
#include "runner/planner.h"
#include "runner/settle.h"
#include "runner/unchanged.h"

#define EVENTS 5

struct event {
	unsigned sequence, boot, attempt;
};

/* The last EVENTS attempts in order of arming, oldest first. */
static size_t last_events(const struct campaign *c, struct event events[EVENTS])
{
	size_t n = 0, i;
	unsigned b, a;

	for (b = 0; b < c->plan->n_boots; b++) {
		for (a = 1; a <= c->boots[b].n_attempts; a++) {
			const struct attempt_state *s = &c->boots[b].attempts[a - 1];
			struct event e = {s->armed.sequence, b, a};

			if (!s->exists || !s->armed.token[0])
				continue;
			if (n == EVENTS && e.sequence < events[0].sequence)
				continue;
			if (n == EVENTS)
				memmove(events, events + 1, --n * sizeof(*events));
			for (i = n++; i > 0 && events[i - 1].sequence > e.sequence; i--)
				events[i] = events[i - 1];
			events[i] = e;
		}
	}
	return n;
}

static void print_event(const struct campaign *c, const struct event *e)
{
	const struct attempt_state *s = &c->boots[e->boot].attempts[e->attempt - 1];
	const struct plan_boot *boot = &c->plan->boots[e->boot];
	const char *outcome = s->done ? "done" : s->reached ? "reached" : "armed";

	printf("  %s  boot %u (%s, round %u), attempt %u: %s", s->armed.armed_utc, e->boot,
	       boot->entry, boot->round, e->attempt, s->failed ? s->failure.reason : outcome);
	if (s->failed && s->failure.evidence[0])
		printf(", boots/%04u/%s", e->boot, s->failure.evidence);
	putchar('\n');
}

static void print_end(const struct machine *m, const struct campaign *c, enum referee_step step)
{
	_cleanup_free_ char *why = NULL;
	struct referee_finding none = {0};

	if (referee_explain(c, step, &none, m->uname, &why) == 0)
		printf("next     nothing: %s\n", *why ? why : "every trial is done");
}

/* What keeps the referee from arming the next boot; nothing is printed when nothing does. */
static void print_wait(const struct machine *m, const struct plan *plan)
{
	const char *missing = install_missing(m->root, STORE_DIR), *which;

	if (missing)
		printf("waits    %s is missing; recount resume puts it back\n", missing);
	if (unchanged_toolchain(m->root, plan, &which) == 1)
		printf("waits    %s is not the one that was planned, so nothing can be compared; "
		       "put it "
		       "back, or recount stop\n",
		       which);
}

static void print_next(const struct machine *m, struct store *s, struct campaign *c)
{
	const struct settle settle = {.store = s, .plan = c->plan, .campaign = c};
	struct referee_finding none = {0};
	/* A rescue system's kernel is nobody's home. */
	const char *home = *m->root ? c->plan->default_uname : m->uname;
	unsigned boot, attempt;
	enum referee_step step = REFEREE_ARM;
	int open = campaign_open_attempt(c, &boot, &attempt);

	if (!open)
		step = settle_next(&settle, &none, home, 0, &boot, &attempt);
	if (referee_waits_for(step)) {
		printf("waits    %s; recount resume goes on\n", referee_waits_for(step));
		step = settle_next(&settle, &none, home, 1, &boot, &attempt);
	}
	if (step != REFEREE_ARM) {
		print_end(m, c, step);
		return;
	}
	printf("%s     boot %u (%s, round %u), attempt %u\n", open ? "open" : "next", boot,
	       c->plan->boots[boot].entry, c->plan->boots[boot].round, attempt);
	print_wait(m, c->plan);
}

static void print_armed(void)
{
	struct oneshot_state state;
	int r = oneshot_read(STORE_DIR "/grub/grubenv", &state);

	if (r == -ENOENT || (r == 0 && !state.next_entry[0]))
		printf("armed    nothing: the next reboot is the machine's default\n");
	else if (r < 0)
		printf("armed    nothing: grub/grubenv on the store is damaged\n");
	else
		printf("armed    %s, token %s\n", state.next_entry, state.token);
}

static void print_campaign(const struct machine *m, struct store *s, struct campaign *c)
{
	struct campaign_counts n;
	struct event events[EVENTS];
	size_t n_events = last_events(c, events), i;
	char left[AMOUNT_BYTES];

	campaign_count(c, &n);
	printf("campaign %s, active\n", c->plan->id);
	printf("boots    %u of %u finished, %u given up, %u attempts in all\n", n.boots_finished,
	       n.boots_planned, n.boots_failed, n.attempts);
	printf("trials   %u of %u finished: ok %u, records void %u, failed %u\n", n.trials_finished,
	       n.trials_planned, n.trials_ok, n.records_void, n.records_failed);
	print_next(m, s, c);
	print_armed();
	if (n.trials_planned > n.trials_finished) {
		amount_duration(left, planner_estimate_ns(c->plan) / n.trials_planned *
					      (n.trials_planned - n.trials_finished));
		printf("left     about %s\n", left);
	}
	if (n_events)
		printf("last attempts\n");
	for (i = 0; i < n_events; i++)
		print_event(c, &events[i]);
	if (c->damaged)
		printf("damaged  %u files could not be read\n", c->damaged);
}

static void name_damage(const char *path, int err)
{
	log_errno(err, "read %s on the store", path);
}

static int load(struct store *s, const char *id, struct plan **plan, struct campaign **c)
{
	const char *why = NULL;
	int r = store_plan(s, id, plan, NULL, &why);

	if (r < 0)
		return log_errno(r, "read campaigns/%s/plan.json%s%s%s", id,
				 why ? " (damaged or cut short, at " : "", why ? why : "",
				 why ? ")" : "");
	r = campaign_load(s, *plan, name_damage, c);
	return r < 0 ? log_errno(r, "read campaign %s", id) : 0;
}

static void print_line(struct store *s, const char *id)
{
	_cleanup_(cleanup_plan) struct plan *plan = NULL;
	_cleanup_(cleanup_campaign) struct campaign *c = NULL;
	struct campaign_counts n;
	unsigned boot, attempt;

	if (load(s, id, &plan, &c) < 0)
		return;
	campaign_count(c, &n);
	printf("  %-16s %u of %u trials finished%s\n", id, n.trials_finished, n.trials_planned,
	       campaign_next(c, &boot, &attempt) == CAMPAIGN_BOOT ? "; recount resume goes on"
								  : "");
}

static int list_campaigns(struct store *s)
{
	char **ids = NULL;
	size_t n = 0, i;
	int r = store_campaigns(s, &ids, &n);

	if (r < 0)
		return log_errno(r, "list the campaigns");
	printf("no active campaign%s\n", n ? "; on the store:" : " and none on the store");
	for (i = 0; i < n; i++)
		print_line(s, ids[i]);
	store_names_free(ids, n);
	return 0;
}

static int print_status(const struct machine *m, struct store *s)
{
	_cleanup_(cleanup_plan) struct plan *plan = NULL;
	_cleanup_(cleanup_campaign) struct campaign *c = NULL;
	char id[STORE_ID];
	int r = store_active(s, id);

	if (r == -ENOENT) {
		r = list_campaigns(s);
		if (install_outside_present(m->root))
			printf("something is still installed outside the store: recount stop "
			       "removes it\n");
		return r;
	}
	if (r < 0)
		return log_errno(r, "read which campaign is active; recount stop ends it");
	r = load(s, id, &plan, &c);
	if (r < 0 || !c)
		return r;
	print_campaign(m, s, c);
	if (!install_outside_present(m->root))
		printf("nothing is installed outside the store, so no boot follows: recount "
		       "resume, "
		       "or recount stop\n");
	return 0;
}

int verb_status(const struct options *o)
{
	_cleanup_(cleanup_machine) struct machine *m = NULL;
	struct store *s;
	int r;

	if (geteuid() != 0) {
		log_info("refused: run this as root (sudo recount status)");
		return EXIT_REFUSED;
	}
	if (machine_read_devices(o, &m) < 0)
		return EXIT_FAILED;
	r = machine_peek_store(m, &s);
	if (r < 0) {
		if (!m->store && m->store_err == -ENOENT && install_outside_present(m->root))
			log_info("something is installed all the same: recount uninstall removes "
				 "it");
		return machine_open_exit(r);
	}
	r = print_status(m, s);
	if (machine_close_store(s) < 0)
		r = -EIO;
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
}
