/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Books what the referee found, and writes the report of a campaign that is over. */
#include "runner/settle.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "results/log.h"
#include "results/report.h"
#include "runner/arm.h"
#include "runner/pstore.h"
#include "runner/unchanged.h"

static void name_damage(const char *path, int err)
{
	log_errno(err, "read %s on the store", path);
}

int settle_load(struct settle *s)
{
	struct campaign *fresh = NULL;
	int r = campaign_load(s->store, s->plan, name_damage, &fresh);

	if (r < 0)
		return log_errno(r, "read campaign %s", s->plan->id);
	campaign_free(s->campaign);
	s->campaign = fresh;
	return 0;
}

void settle_clear(struct settle *s)
{
	campaign_free(s->campaign);
	s->campaign = NULL;
}

static const struct attempt_state *attempt_of(const struct settle *s, unsigned boot,
					      unsigned attempt)
{
	return &s->campaign->boots[boot].attempts[attempt - 1];
}

static void rearmed_path(const struct settle *s, char path[256], unsigned boot, unsigned attempt,
			 unsigned k)
{
	char stem[32];

	snprintf(stem, sizeof(stem), "rearmed-%02u", k);
	store_boot_path(path, s->plan->id, boot, stem, attempt, "json");
}

int settle_rearmed(struct settle *s, unsigned boot, unsigned attempt, unsigned max)
{
	char path[256], text[80], now[32];
	unsigned k;
	int r = -EEXIST;

	arm_utc(now);
	snprintf(text, sizeof(text), "{\"rearmed_utc\":\"%s\"}\n", now);
	for (k = 1; r == -EEXIST && k <= max; k++) {
		rearmed_path(s, path, boot, attempt, k);
		r = store_put(s->store, path, text, strlen(text));
	}
	if (r == -EEXIST)
		return -ETIME;
	return r < 0 ? log_errno(r, "write %s on the store", path) : 0;
}

/* When the attempt was armed again for the last time; 0: never. */
static int64_t rearmed_s(const struct settle *s, unsigned boot, unsigned attempt)
{
	int64_t last_s = 0;
	unsigned k;
	int r = 0;

	for (k = 1; r == 0; k++) {
		_cleanup_free_ char *text = NULL;
		char path[256], utc[32];
		int64_t t;
		size_t len;

		rearmed_path(s, path, boot, attempt, k);
		r = store_get(s->store, path, RECORD_BYTES_MAX, &text, &len);
		if (r == 0 && sscanf(text, "{\"rearmed_utc\":\"%31[^\"]\"}", utc) == 1 &&
		    referee_utc(utc, &t) == 0)
			last_s = t;
	}
	return last_s;
}

/*
 * From when on panic text can be the attempt's own, by the clock of the kernel that died: it was
 * armed then, for the last time. The plan was made before, whatever the clock said at arming; and a
 * kernel that died early took a hardware clock in local time for UTC.
 */
static int64_t panic_since_s(const struct settle *s, unsigned boot, unsigned attempt)
{
	int64_t since_s = rearmed_s(s, boot, attempt), made_s, offset_s = s->plan->rtc_offset_s;

	if (since_s == 0 &&
	    referee_utc(attempt_of(s, boot, attempt)->armed.armed_utc, &since_s) < 0)
		since_s = 0;
	if (referee_utc(s->plan->created_utc, &made_s) == 0 && since_s < made_s)
		since_s = made_s;
	return offset_s < 0 ? since_s + offset_s : since_s;
}

/* Panic text of the open attempt. */
static int find_panic(const struct settle *s, struct pstore *out)
{
	unsigned boot, attempt;
	int r;

	*out = (struct pstore){0};
	if (!campaign_open_attempt(s->campaign, &boot, &attempt))
		return 0;
	if (!*s->root)
		pstore_load_drivers(plan_find_entry(s->plan, s->plan->boots[boot].entry)->cmdline);
	r = pstore_find(s->root, panic_since_s(s, boot, attempt),
			attempt_of(s, boot, attempt)->armed.token, out);
	return r < 0 ? log_errno(r, "look for panic records") : 0;
}

static void say_booked(const struct settle *s, const struct referee_finding *f,
		       const char *evidence)
{
	const struct plan_boot *boot = &s->plan->boots[f->boot];
	const char *rest =
		campaign_attempts_left(s->campaign, f->boot) ? "to be tried again" : "given up";

	if (evidence[0])
		log_info("boot %u (%s, round %u), attempt %u: %s; %s. Evidence: boots/%04u/%s",
			 f->boot, boot->entry, boot->round, f->attempt, f->reason, rest, f->boot,
			 evidence);
	else
		log_info("boot %u (%s, round %u), attempt %u: %s; %s", f->boot, boot->entry,
			 boot->round, f->attempt, f->reason, rest);
}

static int book(struct settle *s, const struct referee_finding *f, const struct pstore *panic)
{
	char path[256], evidence[RECORD_NAME] = "";
	int r;

	if (panic->text && !strcmp(f->reason, "panic")) {
		snprintf(evidence, sizeof(evidence), "panic-%u.txt", f->attempt);
		store_boot_path(path, s->plan->id, f->boot, "panic", f->attempt, "txt");
		r = store_put(s->store, path, panic->text, panic->len);
		if (r < 0 && r != -EEXIST)
			return log_errno(r, "write %s on the store", path);
	}
	r = arm_book_failure(s->store, s->plan, f->boot, f->attempt, f->reason, evidence);
	if (r < 0)
		return r;
	say_booked(s, f, evidence);
	if (evidence[0])
		pstore_delete(panic);
	return settle_load(s);
}

int settle_open(struct settle *s, const char *token, struct referee_finding *out)
{
	_cleanup_(pstore_free) struct pstore panic = {0};
	struct oneshot_state state = {0};
	struct referee_finding f;
	char path[4096];
	int r;

	snprintf(path, sizeof(path), "%s/grub/grubenv", s->store_dir);
	r = oneshot_read(path, &state);
	if (r < 0 && r != -ENOENT && r != -EBADMSG)
		return log_errno(r, "read %s", path);
	if (r < 0) {
		/* GRUB cannot have taken anything from a block that it cannot read. */
		log_errno(r, "read %s", path);
		state = (struct oneshot_state){0};
	}
	r = find_panic(s, &panic);
	if (r < 0)
		return r;
	f = referee_judge(s->campaign, &state, token, panic.text != NULL);
	if (f.reason) {
		r = book(s, &f, &panic);
		if (r < 0)
			return r;
	}
	*out = f;
	return 0;
}

static int boot_is_unfinished(const struct settle *s, const struct plan_boot *boot)
{
	size_t i;

	for (i = 0; i < boot->n_trials; i++)
		if (!campaign_cell_finished(s->campaign, boot->boot, boot->trials[i].trial))
			return 1;
	return 0;
}

static int write_attempt(struct settle *s, const struct plan_boot *boot, unsigned attempt)
{
	struct attempt_record record = {.boot = boot->boot, .attempt = attempt};
	_cleanup_free_ char *json = NULL;
	char path[256];
	int r;

	snprintf(record.token, sizeof(record.token), "%s-%04u-%u-changed", s->plan->id, boot->boot,
		 attempt);
	snprintf(record.entry, sizeof(record.entry), "%s", boot->entry);
	snprintf(record.plan_sha256, sizeof(record.plan_sha256), "%s", s->plan_sha256);
	arm_utc(record.armed_utc);
	r = arm_sequence(s->store, s->plan, &record.sequence);
	if (r < 0)
		return r;
	store_boot_path(path, s->plan->id, boot->boot, "attempt", attempt, "json");
	r = attempt_encode(&record, &json);
	if (r == 0)
		r = store_put(s->store, path, json, strlen(json));
	return r < 0 && r != -EEXIST ? log_errno(r, "write %s on the store", path) : 0;
}

/* Uses up the attempts that are left to @boot. */
static int give_up(struct settle *s, const struct plan_boot *boot, const char *reason)
{
	const struct boot_state *state = &s->campaign->boots[boot->boot];
	unsigned a, last = state->n_attempts + campaign_attempts_left(s->campaign, boot->boot);
	int r;

	for (a = 1; a <= last; a++) {
		const struct attempt_state *attempt =
			a <= state->n_attempts ? &state->attempts[a - 1] : NULL;

		if (attempt && (attempt->done || attempt->failed))
			continue;
		r = attempt && attempt->exists ? 0 : write_attempt(s, boot, a);
		if (r == 0)
			r = arm_book_failure(s->store, s->plan, boot->boot, a, reason, "");
		if (r < 0)
			return r;
	}
	return 0;
}

static int is_changed(const struct settle *s, const struct plan_entry *e)
{
	int r = unchanged_entry(s->root, s->plan, e);

	if (r == 1)
		log_warn("what is left of %s is skipped", e->label);
	if (r < 0)
		log_info("nothing is armed in this boot; mount what it lies on, then recount "
			 "resume, or end the campaign: recount stop");
	return r;
}

static int skip_entry(struct settle *s, const struct plan_entry *e, struct referee_finding *finding)
{
	size_t b;
	int r, changed = -1;

	for (b = 0; b < s->plan->n_boots; b++) {
		const struct plan_boot *boot = &s->plan->boots[b];

		if (strcmp(boot->entry, e->label) != 0 || !boot_is_unfinished(s, boot))
			continue;
		if (changed < 0)
			changed = is_changed(s, e);
		if (changed <= 0)
			return changed;
		r = give_up(s, boot, "changed");
		if (r < 0)
			return r;
		if (finding->verdict == REFEREE_REARM && finding->boot == b)
			finding->verdict = REFEREE_NONE;
	}
	return changed == 1;
}

int settle_changed(struct settle *s, struct referee_finding *finding)
{
	int n = 0, r;
	size_t i;

	for (i = 0; i < s->plan->n_entries; i++) {
		r = skip_entry(s, &s->plan->entries[i], finding);
		if (r < 0)
			return r;
		n += r;
	}
	if (n == 0)
		return 0;
	r = settle_load(s);
	return r < 0 ? r : n;
}

enum referee_step settle_next(const struct settle *s, const struct referee_finding *finding,
			      const char *uname, int asked, unsigned *boot, unsigned *attempt)
{
	struct referee_now now = {.uname = uname, .now_s = time(NULL), .asked = asked};
	unsigned last_boot, last_attempt;
	int64_t t;

	if (referee_last_armed(s->campaign, &last_boot, &last_attempt, &t))
		now.rearmed_s = rearmed_s(s, last_boot, last_attempt);
	return referee_next(s->campaign, finding, &now, boot, attempt);
}

/* A report is made from records: one of an earlier end of the same campaign gives way. */
static int put_report(struct settle *s, const char *name, const char *text, size_t len)
{
	char path[256];
	int r;

	snprintf(path, sizeof(path), "campaigns/%s/report/%s", s->plan->id, name);
	r = store_replace(s->store, path, text, len);
	return r < 0 ? log_errno(r, "write %s on the store", path) : 0;
}

static int make_text(const struct settle *s, const char *why, char **text, size_t *len)
{
	_cleanup_free_ char *out = NULL;
	FILE *f = open_memstream(&out, len);
	int r;

	if (!f)
		return -ENOMEM;
	fprintf(f, "%s%s", why, why[0] ? "\n\n" : "");
	r = report_text(f, s->campaign, NULL);
	if (fclose(f) && r == 0)
		r = -ENOMEM;
	if (r == 0)
		*text = TAKE_PTR(out);
	return r;
}

static int make_json(const struct settle *s, char **text, size_t *len)
{
	_cleanup_free_ char *out = NULL;
	FILE *f = open_memstream(&out, len);
	int r;

	if (!f)
		return -ENOMEM;
	r = report_json(f, s->campaign, NULL);
	if (fclose(f) && r == 0)
		r = -ENOMEM;
	if (r == 0)
		*text = TAKE_PTR(out);
	return r;
}

int settle_report(struct settle *s, const char *why)
{
	_cleanup_free_ char *text = NULL, *json = NULL;
	size_t text_len = 0, json_len = 0;
	int r = make_text(s, why, &text, &text_len);

	if (r == 0)
		r = make_json(s, &json, &json_len);
	if (r != 0)
		return log_errno(r, "make the report of %s", s->plan->id);
	fwrite(text, 1, text_len, stdout);
	fflush(stdout);
	r = put_report(s, "report.json", json, json_len);
	return r < 0 ? r : put_report(s, "report.txt", text, text_len);
}

void settle_last_words(const struct settle *s)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	int r = make_text(s, "", &text, &len);

	if (r < 0) {
		log_errno(r, "make the report of %s", s->plan->id);
		return;
	}
	log_info("the store can be read, but not written; what it holds of %s:", s->plan->id);
	fwrite(text, 1, len, stdout);
	fflush(stdout);
}
