/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads a campaign's files into memory. A file is believed when it decodes and says the same as its
 * name, the plan and the attempt's token. */
#include "results/campaign.h"

#include <errno.h>
#include <string.h>

enum kind { KIND_ATTEMPT, KIND_REACHED, KIND_TRIAL, KIND_DONE, KIND_FAILED };

/* What a file's name says. */
struct name {
	enum kind kind;
	unsigned trial, attempt;
};

struct loader {
	struct store *store;
	struct campaign *c;
	void (*on_damage)(const char *path, int err);
};

static void damaged(struct loader *l, const char *path, int err)
{
	l->c->damaged++;
	if (l->on_damage)
		l->on_damage(path, err);
}

/* A number without sign or leading zeros, up to the text @end. */
static int parse_number(const char *text, const char *end, unsigned max, unsigned *out)
{
	unsigned n = 0;

	if (*text < '1' || *text > '9')
		return 0;
	for (; *text >= '0' && *text <= '9'; text++) {
		n = 10 * n + (*text - '0');
		if (n > max)
			return 0;
	}
	*out = n;
	return strcmp(text, end) == 0;
}

/* 1 for a record's name, 0 for any other file. */
static int parse_name(const char *text, struct name *out)
{
	static const char *const stems[] = {
		[KIND_ATTEMPT] = "attempt-", [KIND_REACHED] = "reached-", [KIND_TRIAL] = "trial-",
		[KIND_DONE] = "done-",	     [KIND_FAILED] = "failed-",
	};
	struct name n = {0};
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(stems); i++) {
		len = strlen(stems[i]);
		if (strncmp(text, stems[i], len) == 0)
			break;
	}
	if (i == ARRAY_SIZE(stems))
		return 0;
	n.kind = i;
	text += len;
	if (n.kind == KIND_TRIAL) {
		if (text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9' ||
		    text[2] != '-')
			return 0;
		n.trial = 10 * (text[0] - '0') + (text[1] - '0');
		text += 3;
	}
	if (!parse_number(text, ".json", RECORD_ATTEMPT_MAX, &n.attempt))
		return 0;
	*out = n;
	return 1;
}

static int grow_attempts(struct boot_state *b, unsigned n)
{
	struct attempt_state *more;

	if (b->attempts && n <= b->n_attempts)
		return 0;
	more = realloc(b->attempts, n * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + b->n_attempts, 0, (n - b->n_attempts) * sizeof(*more));
	b->attempts = more;
	b->n_attempts = n;
	return 0;
}

static int add_record(struct boot_state *b, const struct trial_record *r)
{
	struct trial_record *more = realloc(b->records, (b->n_records + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	b->records = more;
	b->records[b->n_records++] = *r;
	return 0;
}

static int read_attempt(struct campaign *c, unsigned boot, const struct name *name,
			const char *json, size_t len)
{
	struct attempt_record r;
	int err = attempt_decode(json, len, &r);

	if (err)
		return err;
	if (r.boot != boot || r.attempt != name->attempt ||
	    strcmp(r.entry, c->plan->boots[boot].entry) != 0)
		return -EBADMSG;
	c->boots[boot].attempts[name->attempt - 1].armed = r;
	return 0;
}

/* A token can only be wrong when there is one to compare it with. */
static int is_token_of(const struct attempt_state *a, const char *token)
{
	return a->armed.token[0] == '\0' || strcmp(a->armed.token, token) == 0;
}

static int read_trial(struct campaign *c, unsigned boot, const struct name *name, const char *json,
		      size_t len)
{
	const struct plan_boot *plan = &c->plan->boots[boot];
	const struct plan_trial *t;
	struct trial_record r;
	int err = trial_decode(json, len, &r);

	if (err)
		return err;
	if (r.boot != boot || r.attempt != name->attempt || r.trial != name->trial ||
	    r.trial > plan->n_trials || r.round != plan->round || strcmp(r.entry, plan->entry) != 0)
		return -EBADMSG;
	t = &plan->trials[r.trial - 1];
	if (r.jobs != t->jobs || strcmp(r.workload, t->workload) != 0 ||
	    strcmp(r.load, t->load) != 0)
		return -EBADMSG;
	return add_record(&c->boots[boot], &r);
}

static int read_record(struct campaign *c, unsigned boot, const struct name *name, const char *json,
		       size_t len)
{
	struct attempt_state *a = &c->boots[boot].attempts[name->attempt - 1];
	struct reached_record reached;
	struct done_record done;
	int err = 0;

	switch (name->kind) {
	case KIND_ATTEMPT:
		return read_attempt(c, boot, name, json, len);
	case KIND_TRIAL:
		return read_trial(c, boot, name, json, len);
	case KIND_REACHED:
		err = reached_decode(json, len, &reached);
		if (!err && !is_token_of(a, reached.token))
			err = -EBADMSG;
		a->reached = !err;
		break;
	case KIND_DONE:
		err = done_decode(json, len, &done);
		if (!err && !is_token_of(a, done.token))
			err = -EBADMSG;
		a->done = !err;
		break;
	case KIND_FAILED:
		err = failed_decode(json, len, &a->failure);
		a->failed = !err;
		break;
	}
	return err;
}

static int load_file(struct loader *l, unsigned boot, const struct name *name, const char *path)
{
	struct boot_state *b = &l->c->boots[boot];
	_cleanup_free_ char *json = NULL;
	size_t len;
	int err;

	err = grow_attempts(b, name->attempt);
	if (err)
		return err;
	if (name->kind == KIND_ATTEMPT)
		b->attempts[name->attempt - 1].exists = 1;
	err = store_get(l->store, path, RECORD_BYTES_MAX, &json, &len);
	if (!err)
		err = read_record(l->c, boot, name, json, len);
	if (err && err != -ENOMEM) {
		damaged(l, path, err);
		err = 0;
	}
	return err;
}

static int by_attempt(const void *a, const void *b)
{
	const struct trial_record *x = a, *y = b;

	if (x->attempt != y->attempt)
		return x->attempt < y->attempt ? -1 : 1;
	return x->trial < y->trial ? -1 : x->trial > y->trial;
}

static int load_boot(struct loader *l, unsigned boot)
{
	struct boot_state *b = &l->c->boots[boot];
	char folder[64], path[64 + 256], **names = NULL;
	struct name name;
	size_t i, n = 0;
	int err;

	snprintf(folder, sizeof(folder), "campaigns/%s/boots/%04u", l->c->plan->id, boot);
	err = store_list(l->store, folder, &names, &n);
	if (err == -ENOMEM)
		return err;
	if (err)
		damaged(l, folder, err);
	/* Sorted names put attempt-N.json first: tokens are known when others are compared. */
	for (i = 0; !err && i < n; i++) {
		if (!parse_name(names[i], &name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		err = load_file(l, boot, &name, path);
	}
	store_names_free(names, n);
	if (b->n_records)
		qsort(b->records, b->n_records, sizeof(*b->records), by_attempt);
	return err == -ENOMEM ? err : 0;
}

int campaign_load(struct store *s, const struct plan *plan,
		  void (*on_damage)(const char *path, int err), struct campaign **out)
{
	_cleanup_(cleanup_campaign) struct campaign *c = calloc(1, sizeof(*c));
	struct loader l = {.store = s, .c = c, .on_damage = on_damage};
	unsigned boot;
	int err;

	if (!c)
		return -ENOMEM;
	c->plan = plan;
	c->boots = calloc(plan->n_boots, sizeof(*c->boots));
	if (!c->boots)
		return -ENOMEM;
	for (boot = 0; boot < plan->n_boots; boot++) {
		err = load_boot(&l, boot);
		if (err)
			return err;
	}
	*out = TAKE_PTR(c);
	return 0;
}

void campaign_free(struct campaign *c)
{
	size_t i;

	if (!c)
		return;
	for (i = 0; c->boots && i < c->plan->n_boots; i++) {
		free(c->boots[i].attempts);
		free(c->boots[i].records);
	}
	free(c->boots);
	free(c);
}
