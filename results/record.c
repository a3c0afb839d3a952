/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Codecs of the records of a campaign. */
#include "results/record.h"

#include <errno.h>
#include <string.h>

#include "results/json.h"

/* Keys and places of the figures: one list for reading, writing and emptying. */
struct figure {
	const char *key;
	size_t offset;
};

/* clang-format off */
#define FIGURE(member) { #member, offsetof(struct trial_record, member) }
/* NOLINTNEXTLINE(bugprone-macro-parentheses): offsetof takes a bare member, as in part.member. */
#define FIGURE_IN(part, member) { #member, offsetof(struct trial_record, part.member) }
/* clang-format on */

static const struct figure trial_figures[] = {
	FIGURE(wall_ns),
	FIGURE(sync_ns),
	FIGURE(user_ns),
	FIGURE(sys_ns),
	FIGURE(major_faults),
	FIGURE(minor_faults),
	FIGURE(voluntary_switches),
	FIGURE(involuntary_switches),
	FIGURE(read_bytes),
	FIGURE(write_bytes),
	FIGURE(swap_in_bytes),
	FIGURE(swap_out_bytes),
	FIGURE(peak_rss_bytes),
	FIGURE(dirty_at_exit_bytes),
	FIGURE(memtotal_bytes),
	FIGURE(steal_ns),
};

static const struct figure psi_figures[] = {
	FIGURE_IN(psi, cpu_some_ns), FIGURE_IN(psi, memory_some_ns), FIGURE_IN(psi, memory_full_ns),
	FIGURE_IN(psi, io_some_ns),  FIGURE_IN(psi, io_full_ns),
};

static const struct figure load_figures[] = {
	FIGURE_IN(load_result, work),
	FIGURE_IN(load_result, elapsed_ns),
	FIGURE_IN(load_result, user_ns),
	FIGURE_IN(load_result, sys_ns),
};

static const struct figure cold_figures[] = {
	FIGURE_IN(cold, cached_bytes),
	FIGURE_IN(cold, slab_reclaimable_bytes),
	FIGURE_IN(cold, dentries),
	FIGURE_IN(cold, device_read_bytes),
};

static const char *const status_names[] = {
	[TRIAL_OK] = "ok",	     [TRIAL_VOID] = "void",	      [TRIAL_FAILED] = "failed",
	[TRIAL_TIMEOUT] = "timeout", [TRIAL_DISCARDED] = "discarded",
};

static int64_t *place(struct trial_record *r, const struct figure *f)
{
	return (int64_t *)((char *)r + f->offset);
}

static int64_t value(const struct trial_record *r, const struct figure *f)
{
	return *(const int64_t *)((const char *)r + f->offset);
}

static void clear_figures(struct trial_record *r, const struct figure *f, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		*place(r, &f[i]) = ABSENT;
}

static void read_figures(struct json_io *io, const cJSON *o, struct trial_record *r,
			 const struct figure *f, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		*place(r, &f[i]) = json_get_int_or(io, o, f[i].key, 0, JSON_EXACT_MAX, ABSENT);
}

static int has_figures(const struct trial_record *r, const struct figure *f, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (value(r, &f[i]) != ABSENT)
			return 1;
	return 0;
}

static void write_figures(struct json_io *io, cJSON *o, const struct trial_record *r,
			  const struct figure *f, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (value(r, &f[i]) >= 0)
			json_put_int(io, o, f[i].key, value(r, &f[i]));
		else if (value(r, &f[i]) != ABSENT)
			io->err = -EINVAL;
}

void trial_record_init(struct trial_record *r)
{
	memset(r, 0, sizeof(*r));
	clear_figures(r, trial_figures, ARRAY_SIZE(trial_figures));
	clear_figures(r, psi_figures, ARRAY_SIZE(psi_figures));
	clear_figures(r, load_figures, ARRAY_SIZE(load_figures));
	clear_figures(r, cold_figures, ARRAY_SIZE(cold_figures));
	r->cold.ok = ABSENT;
}

void trial_record_void(struct trial_record *r, const char *cause)
{
	unsigned i;

	if (r->status == TRIAL_OK || r->status == TRIAL_DISCARDED)
		r->status = TRIAL_VOID;
	for (i = 0; i < r->n_voids; i++)
		if (strncmp(r->voids[i], cause, RECORD_NAME - 1) == 0)
			return;
	if (r->n_voids < RECORD_VOIDS_MAX)
		snprintf(r->voids[r->n_voids++], RECORD_NAME, "%s", cause);
}

const char *trial_status_name(enum trial_status status)
{
	return (size_t)status < ARRAY_SIZE(status_names) ? status_names[status] : "unknown";
}

/* Printable ASCII: such texts are printed to terminals, and a bundle's come from elsewhere. */
static int is_words(const char *s)
{
	for (; *s; s++)
		if (*s < 0x20 || *s > 0x7e)
			return 0;
	return 1;
}

/* A file beside the record, and nothing but that. */
static int is_file_name(const char *s)
{
	return is_words(s) && s[0] != '.' && !strchr(s, '/');
}

static int trial_is_words(const struct trial_record *r)
{
	unsigned i;

	for (i = 0; i < r->n_voids; i++)
		if (!is_words(r->voids[i]))
			return 0;
	return is_words(r->entry) && is_words(r->workload) && is_words(r->load) &&
	       is_words(r->load_result.unit) && is_words(r->arena_restore) &&
	       is_words(r->arena_fstype) && is_words(r->product_sha256);
}

/* A time is what a usable trial is for; a void one without its cause would "look odd". */
static int is_sound(const struct trial_record *r)
{
	if (!trial_is_words(r))
		return 0;
	switch (r->status) {
	case TRIAL_OK:
	case TRIAL_DISCARDED:
		return r->wall_ns > 0 && r->n_voids == 0;
	case TRIAL_VOID:
		return r->n_voids > 0;
	case TRIAL_FAILED:
	case TRIAL_TIMEOUT:
		return 1;
	}
	return 0;
}

static int finish(struct json_io *io, const cJSON *o, char **json)
{
	return io->err ? io->err : json_print(o, json, NULL);
}

static int attempt_is_words(const struct attempt_record *r)
{
	return is_words(r->token) && is_words(r->entry) && is_words(r->armed_utc) &&
	       is_words(r->plan_sha256);
}

int attempt_encode(const struct attempt_record *r, char **json)
{
	_cleanup_(cleanup_json) cJSON *o = cJSON_CreateObject();
	struct json_io io = {0};

	if (!attempt_is_words(r))
		return -EINVAL;
	json_put_text(&io, o, "token", r->token);
	json_put_int(&io, o, "boot", r->boot);
	json_put_int(&io, o, "attempt", r->attempt);
	if (r->sequence)
		json_put_int(&io, o, "sequence", r->sequence);
	json_put_text(&io, o, "entry", r->entry);
	json_put_text(&io, o, "armed_utc", r->armed_utc);
	json_put_text(&io, o, "plan_sha256", r->plan_sha256);
	if (r->bmc_s)
		json_put_int(&io, o, "bmc_s", r->bmc_s);
	return finish(&io, o, json);
}

int attempt_decode(const char *json, size_t len, struct attempt_record *out)
{
	_cleanup_(cleanup_json) cJSON *o = NULL;
	struct attempt_record r = {0};
	struct json_io io = {0};
	int err = json_parse(json, len, RECORD_BYTES_MAX, &o);

	if (err)
		return err;
	json_get_schema(&io, o, PLAN_SCHEMA);
	json_get_text(&io, o, "token", r.token, sizeof(r.token));
	r.boot = json_get_int(&io, o, "boot", 0, PLAN_BOOTS_MAX - 1);
	r.attempt = json_get_int(&io, o, "attempt", 1, RECORD_ATTEMPT_MAX);
	r.sequence = json_get_int_or(&io, o, "sequence", 0, PLAN_BOOTS_MAX * RECORD_ATTEMPT_MAX, 0);
	json_get_text(&io, o, "entry", r.entry, sizeof(r.entry));
	json_get_text(&io, o, "armed_utc", r.armed_utc, sizeof(r.armed_utc));
	json_get_text(&io, o, "plan_sha256", r.plan_sha256, sizeof(r.plan_sha256));
	r.bmc_s = json_get_int_or(&io, o, "bmc_s", 0, PLAN_BMC_S_MAX, 0);
	if (io.err)
		return io.err;
	if (!attempt_is_words(&r))
		return -EBADMSG;
	*out = r;
	return 0;
}

int reached_encode(const struct reached_record *r, char **json)
{
	_cleanup_(cleanup_json) cJSON *o = cJSON_CreateObject();
	struct json_io io = {0};

	if (!is_words(r->token))
		return -EINVAL;
	json_put_text(&io, o, "token", r->token);
	json_put_lossy(&io, o, "uname", r->uname);
	json_put_lossy(&io, o, "cmdline", r->cmdline);
	json_put_int(&io, o, "reached_monotonic_ns", r->reached_monotonic_ns);
	return finish(&io, o, json);
}

int reached_decode(const char *json, size_t len, struct reached_record *out)
{
	_cleanup_(cleanup_json) cJSON *o = NULL;
	struct reached_record r = {0};
	struct json_io io = {0};
	int err = json_parse(json, len, RECORD_BYTES_MAX, &o);

	if (err)
		return err;
	json_get_schema(&io, o, PLAN_SCHEMA);
	json_get_text(&io, o, "token", r.token, sizeof(r.token));
	json_get_text(&io, o, "uname", r.uname, sizeof(r.uname));
	json_get_text(&io, o, "cmdline", r.cmdline, sizeof(r.cmdline));
	r.reached_monotonic_ns = json_get_int(&io, o, "reached_monotonic_ns", 0, JSON_EXACT_MAX);
	if (io.err)
		return io.err;
	if (!is_words(r.token))
		return -EBADMSG;
	*out = r;
	return 0;
}

int done_encode(const struct done_record *r, char **json)
{
	_cleanup_(cleanup_json) cJSON *o = cJSON_CreateObject();
	struct json_io io = {0};

	if (!is_words(r->token))
		return -EINVAL;
	json_put_text(&io, o, "token", r->token);
	json_put_int(&io, o, "done_monotonic_ns", r->done_monotonic_ns);
	return finish(&io, o, json);
}

int done_decode(const char *json, size_t len, struct done_record *out)
{
	_cleanup_(cleanup_json) cJSON *o = NULL;
	struct done_record r = {0};
	struct json_io io = {0};
	int err = json_parse(json, len, RECORD_BYTES_MAX, &o);

	if (err)
		return err;
	json_get_schema(&io, o, PLAN_SCHEMA);
	json_get_text(&io, o, "token", r.token, sizeof(r.token));
	r.done_monotonic_ns = json_get_int(&io, o, "done_monotonic_ns", 0, JSON_EXACT_MAX);
	if (io.err)
		return io.err;
	if (!is_words(r.token))
		return -EBADMSG;
	*out = r;
	return 0;
}

int failed_encode(const struct failed_record *r, char **json)
{
	_cleanup_(cleanup_json) cJSON *o = cJSON_CreateObject();
	struct json_io io = {0};

	if (!is_words(r->reason) || !is_file_name(r->evidence))
		return -EINVAL;
	json_put_text(&io, o, "reason", r->reason);
	if (r->evidence[0])
		json_put_text(&io, o, "evidence", r->evidence);
	return finish(&io, o, json);
}

int failed_decode(const char *json, size_t len, struct failed_record *out)
{
	_cleanup_(cleanup_json) cJSON *o = NULL;
	struct failed_record r = {0};
	struct json_io io = {0};
	int err = json_parse(json, len, RECORD_BYTES_MAX, &o);

	if (err)
		return err;
	json_get_schema(&io, o, PLAN_SCHEMA);
	json_get_text(&io, o, "reason", r.reason, sizeof(r.reason));
	json_get_text_or_empty(&io, o, "evidence", r.evidence, sizeof(r.evidence));
	if (io.err)
		return io.err;
	if (!is_words(r.reason) || !is_file_name(r.evidence))
		return -EBADMSG;
	*out = r;
	return 0;
}

static void write_parts(struct json_io *io, cJSON *root, const struct trial_record *r)
{
	cJSON *o;

	if (has_figures(r, psi_figures, ARRAY_SIZE(psi_figures))) {
		o = json_put_object(io, root, "psi");
		write_figures(io, o, r, psi_figures, ARRAY_SIZE(psi_figures));
	}
	if (r->has_load_result) {
		o = json_put_object(io, root, "load_result");
		json_put_lossy(io, o, "unit", r->load_result.unit);
		write_figures(io, o, r, load_figures, ARRAY_SIZE(load_figures));
	}
	if (has_figures(r, cold_figures, ARRAY_SIZE(cold_figures)) || r->cold.ok != ABSENT) {
		o = json_put_object(io, root, "cold");
		write_figures(io, o, r, cold_figures, ARRAY_SIZE(cold_figures));
		if (r->cold.ok != ABSENT)
			json_put_bool(io, o, "ok", r->cold.ok);
	}
}

static void put_unless_empty(struct json_io *io, cJSON *o, const char *key, const char *text)
{
	if (text[0])
		json_put_text(io, o, key, text);
}

int trial_encode(const struct trial_record *r, char **json)
{
	_cleanup_(cleanup_json) cJSON *o = cJSON_CreateObject();
	struct json_io io = {0};
	cJSON *list;
	unsigned i;

	if (!is_sound(r))
		return -EINVAL;
	json_put_int(&io, o, "schema", PLAN_SCHEMA);
	json_put_int(&io, o, "boot", r->boot);
	json_put_int(&io, o, "round", r->round);
	json_put_text(&io, o, "entry", r->entry);
	json_put_int(&io, o, "attempt", r->attempt);
	json_put_int(&io, o, "trial", r->trial);
	json_put_text(&io, o, "workload", r->workload);
	json_put_text(&io, o, "load", r->load);
	json_put_int(&io, o, "jobs", r->jobs);
	json_put_text(&io, o, "status", trial_status_name(r->status));
	list = json_put_array(&io, o, "void");
	for (i = 0; i < r->n_voids; i++)
		json_append_text(&io, list, r->voids[i]);
	write_figures(&io, o, r, trial_figures, ARRAY_SIZE(trial_figures));
	write_parts(&io, o, r);
	put_unless_empty(&io, o, "arena_restore", r->arena_restore);
	put_unless_empty(&io, o, "arena_fstype", r->arena_fstype);
	put_unless_empty(&io, o, "product_sha256", r->product_sha256);
	return finish(&io, o, json);
}

static void read_status(struct json_io *io, const cJSON *o, struct trial_record *r)
{
	char word[16];
	const cJSON *list, *item;
	size_t i, n;

	json_get_text(io, o, "status", word, sizeof(word));
	for (i = 0; i < ARRAY_SIZE(status_names) && strcmp(word, status_names[i]) != 0; i++)
		;
	list = json_get_array(io, o, "void", &n);
	if (io->err || i == ARRAY_SIZE(status_names) || n > RECORD_VOIDS_MAX) {
		io->err = io->err ? io->err : -EBADMSG;
		return;
	}
	r->status = i;
	cJSON_ArrayForEach(item, list)
		json_item_text(io, item, "void", r->voids[r->n_voids++], RECORD_NAME);
}

static void read_parts(struct json_io *io, const cJSON *root, struct trial_record *r)
{
	const cJSON *o = json_get_object_or_null(io, root, "psi");

	read_figures(io, o, r, psi_figures, ARRAY_SIZE(psi_figures));
	o = json_get_object_or_null(io, root, "cold");
	read_figures(io, o, r, cold_figures, ARRAY_SIZE(cold_figures));
	r->cold.ok = json_get_bool_or(io, o, "ok", ABSENT);
	o = json_get_object_or_null(io, root, "load_result");
	if (!o)
		return;
	r->has_load_result = 1;
	json_get_text(io, o, "unit", r->load_result.unit, sizeof(r->load_result.unit));
	read_figures(io, o, r, load_figures, ARRAY_SIZE(load_figures));
}

int trial_decode(const char *json, size_t len, struct trial_record *out)
{
	_cleanup_(cleanup_json) cJSON *o = NULL;
	struct trial_record r;
	struct json_io io = {0};
	int err = json_parse(json, len, RECORD_BYTES_MAX, &o);

	if (err)
		return err;
	trial_record_init(&r);
	json_get_schema(&io, o, PLAN_SCHEMA);
	r.boot = json_get_int(&io, o, "boot", 0, PLAN_BOOTS_MAX - 1);
	r.round = json_get_int(&io, o, "round", 0, PLAN_ROUNDS_MAX);
	json_get_text(&io, o, "entry", r.entry, sizeof(r.entry));
	r.attempt = json_get_int(&io, o, "attempt", 1, RECORD_ATTEMPT_MAX);
	r.trial = json_get_int(&io, o, "trial", 1, PLAN_TRIALS_MAX);
	json_get_text(&io, o, "workload", r.workload, sizeof(r.workload));
	json_get_text(&io, o, "load", r.load, sizeof(r.load));
	r.jobs = json_get_int(&io, o, "jobs", 1, PLAN_JOBS_MAX);
	read_status(&io, o, &r);
	read_figures(&io, o, &r, trial_figures, ARRAY_SIZE(trial_figures));
	read_parts(&io, o, &r);
	json_get_text_or_empty(&io, o, "arena_restore", r.arena_restore, sizeof(r.arena_restore));
	json_get_text_or_empty(&io, o, "arena_fstype", r.arena_fstype, sizeof(r.arena_fstype));
	json_get_text_or_empty(&io, o, "product_sha256", r.product_sha256, PLAN_SHA256);
	if (io.err)
		return io.err;
	if (!is_sound(&r))
		return -EBADMSG;
	*out = r;
	return 0;
}
