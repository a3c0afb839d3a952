/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The codec of plan.json: types here, rules in plan_check(). */
#include "results/plan_json.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* An array of @n elements, at least one so that NULL always means no memory. */
static void *new_array(struct json_io *io, size_t n, size_t size)
{
	void *p = io->err ? NULL : calloc(n ? n : 1, size);

	if (!p && !io->err)
		io->err = -ENOMEM;
	return p;
}

static char **read_argv(struct json_io *io, const cJSON *o, const char *key)
{
	const cJSON *item, *list;
	char **argv;
	size_t n, i = 0;

	list = json_get_array(io, o, key, &n);
	argv = new_array(io, n + 1, sizeof(*argv));
	if (!argv)
		return NULL;
	cJSON_ArrayForEach(item, list)
	{
		argv[i] = json_item_string(io, item, key);
		/* The list would seem to end at the hole, and lose what follows. */
		if (!argv[i])
			break;
		i++;
	}
	return argv;
}

static void write_argv(struct json_io *io, cJSON *o, const char *key, char **argv)
{
	cJSON *list = json_put_array(io, o, key);
	size_t i;

	for (i = 0; argv[i]; i++)
		json_append_text(io, list, argv[i]);
}

void plan_workload_read(struct json_io *io, const cJSON *o, struct plan_workload *w)
{
	w->name = json_get_string(io, o, "name");
	w->dir = json_get_string(io, o, "dir");
	w->clean = read_argv(io, o, "clean");
	w->build = read_argv(io, o, "build");
	w->product = json_get_string(io, o, "product");
	json_get_text(io, o, "product_sha256", w->product_sha256, PLAN_SHA256);
	json_get_text(io, o, "tree_sha256", w->tree_sha256, PLAN_SHA256);
	w->build_ns = json_get_int_or(io, o, "build_ns", 0, JSON_EXACT_MAX, 0);
}

void plan_workload_write(struct json_io *io, cJSON *o, const struct plan_workload *w)
{
	json_put_text(io, o, "name", w->name);
	json_put_text(io, o, "dir", w->dir);
	write_argv(io, o, "clean", w->clean);
	write_argv(io, o, "build", w->build);
	json_put_text(io, o, "product", w->product);
	json_put_text(io, o, "product_sha256", w->product_sha256);
	json_put_text(io, o, "tree_sha256", w->tree_sha256);
	json_put_int(io, o, "build_ns", w->build_ns);
}

void plan_pairs_read(struct json_io *io, const cJSON *o, const char *key, struct plan_pair **pairs,
		     size_t *n)
{
	const cJSON *object = json_get_object(io, o, key), *item;
	size_t i = 0;

	*n = 0;
	*pairs = new_array(io, cJSON_GetArraySize(object), sizeof(**pairs));
	if (!*pairs)
		return;
	*n = cJSON_GetArraySize(object);
	cJSON_ArrayForEach(item, object)
	{
		(*pairs)[i].name = strdup(item->string);
		if (!(*pairs)[i].name && !io->err)
			io->err = -ENOMEM;
		(*pairs)[i].value = json_item_string(io, item, key);
		i++;
	}
}

void plan_pairs_write(struct json_io *io, cJSON *o, const char *key, const struct plan_pair *pairs,
		      size_t n)
{
	cJSON *object = json_put_object(io, o, key);
	size_t i;

	for (i = 0; i < n; i++)
		json_put_text(io, object, pairs[i].name, pairs[i].value);
}

static void read_entries(struct json_io *io, const cJSON *o, struct plan *p)
{
	const cJSON *item, *list;
	struct plan_entry *e;
	size_t n;

	list = json_get_array(io, o, "entries", &n);
	e = p->entries = new_array(io, n, sizeof(*e));
	if (!e)
		return;
	p->n_entries = n;
	cJSON_ArrayForEach(item, list)
	{
		e->label = json_get_string(io, item, "label");
		e->id = json_get_string(io, item, "id");
		e->version = json_get_string(io, item, "version");
		e->kernel = json_get_string(io, item, "kernel");
		e->initrd = json_get_string_or_null(io, item, "initrd");
		e->cmdline = json_get_string(io, item, "cmdline");
		json_get_text(io, item, "kernel_sha256", e->kernel_sha256, PLAN_SHA256);
		json_get_text_or_empty(io, item, "initrd_sha256", e->initrd_sha256, PLAN_SHA256);
		e->twin_of = json_get_string_or_null(io, item, "twin_of");
		e->bmc_s = json_get_int_or(io, item, "bmc_s", 0, UINT_MAX, 0);
		e++;
	}
}

static void read_workloads(struct json_io *io, const cJSON *o, struct plan *p)
{
	const cJSON *item, *list;
	size_t n, i = 0;

	list = json_get_array(io, o, "workloads", &n);
	p->workloads = new_array(io, n, sizeof(*p->workloads));
	if (!p->workloads)
		return;
	p->n_workloads = n;
	cJSON_ArrayForEach(item, list) plan_workload_read(io, item, &p->workloads[i++]);
}

static void read_loads(struct json_io *io, const cJSON *o, struct plan *p)
{
	const cJSON *item, *list;
	struct plan_load *l;
	size_t n;

	list = json_get_array(io, o, "loads", &n);
	l = p->loads = new_array(io, n, sizeof(*l));
	if (!l)
		return;
	p->n_loads = n;
	cJSON_ArrayForEach(item, list)
	{
		l->name = json_get_string(io, item, "name");
		l->kind = json_get_string(io, item, "kind");
		l->bytes = json_get_int(io, item, "bytes", 0, JSON_EXACT_MAX);
		l->workers = json_get_int(io, item, "workers", 0, UINT_MAX);
		l->steady_ms = json_get_int_or(io, item, "steady_ms", 0, UINT_MAX, 0);
		l++;
	}
}

static void read_trials(struct json_io *io, const cJSON *o, struct plan_boot *b)
{
	const cJSON *item, *list;
	struct plan_trial *t;
	size_t n;

	list = json_get_array(io, o, "trials", &n);
	t = b->trials = new_array(io, n, sizeof(*t));
	if (!t)
		return;
	b->n_trials = n;
	cJSON_ArrayForEach(item, list)
	{
		t->trial = json_get_int(io, item, "trial", 1, UINT_MAX);
		t->workload = json_get_string(io, item, "workload");
		t->load = json_get_string(io, item, "load");
		t->jobs = json_get_int(io, item, "jobs", 1, UINT_MAX);
		t++;
	}
}

static void read_boots(struct json_io *io, const cJSON *o, struct plan *p)
{
	const cJSON *item, *list;
	struct plan_boot *b;
	size_t n;

	list = json_get_array(io, o, "boots", &n);
	b = p->boots = new_array(io, n, sizeof(*b));
	if (!b)
		return;
	p->n_boots = n;
	cJSON_ArrayForEach(item, list)
	{
		b->boot = json_get_int(io, item, "boot", 0, UINT_MAX);
		b->round = json_get_int(io, item, "round", 0, UINT_MAX);
		b->entry = json_get_string(io, item, "entry");
		read_trials(io, item, b);
		b++;
	}
}

static void read_limits(struct json_io *io, const cJSON *root, struct plan *p)
{
	const cJSON *o = json_get_object(io, root, "limits");

	p->boot_timeout_ms = json_get_int(io, o, "boot_timeout_ms", 1, JSON_EXACT_MAX);
	p->trial_timeout_ms = json_get_int(io, o, "trial_timeout_ms", 1, JSON_EXACT_MAX);
	p->load_start_timeout_ms = json_get_int(io, o, "load_start_timeout_ms", 1, JSON_EXACT_MAX);
	p->retries = json_get_int(io, o, "retries", 1, UINT_MAX);
	p->boots_max = json_get_int(io, o, "boots_max", 1, UINT_MAX);
	o = json_get_object(io, root, "process");
	p->umask = json_get_int(io, o, "umask", 0, UINT_MAX);
	p->nice = json_get_int(io, o, "nice", INT_MIN, INT_MAX);
	p->oom_score_adj = json_get_int(io, o, "oom_score_adj", INT_MIN, INT_MAX);
}

static void read_partitions(struct json_io *io, const cJSON *root, struct plan *p)
{
	const cJSON *o = json_get_object(io, root, "root");

	p->root_uuid = json_get_string(io, o, "uuid");
	p->root_fstype = json_get_string(io, o, "fstype");
	p->root_options = json_get_string_or_null(io, o, "options");
	o = json_get_object(io, root, "arena");
	p->arena_uuid = json_get_string(io, o, "uuid");
	p->arena_partuuid = json_get_string_or_null(io, o, "partuuid");
	p->arena_fstype = json_get_string(io, o, "fstype");
	p->arena_options = json_get_string_or_null(io, o, "options");
	p->arena_bytes = json_get_int(io, o, "bytes", 0, JSON_EXACT_MAX);
	o = json_get_object_or_null(io, root, "swap");
	if (!o)
		return;
	p->swap_uuid = json_get_string(io, o, "uuid");
	p->swap_bytes = json_get_int(io, o, "bytes", 0, JSON_EXACT_MAX);
}

static void read_plan(struct json_io *io, const cJSON *o, struct plan *p)
{
	p->id = json_get_string(io, o, "id");
	p->created_utc = json_get_string(io, o, "created_utc");
	p->rtc_offset_s = json_get_int(io, o, "rtc_offset_s", -JSON_EXACT_MAX, JSON_EXACT_MAX);
	p->seed = json_get_int(io, o, "seed", 0, JSON_EXACT_MAX);
	p->boot_mode = json_get_string(io, o, "boot_mode");
	p->mode = json_get_string(io, o, "mode");
	p->baseline = json_get_string(io, o, "baseline");
	p->margin = json_get_double(io, o, "margin");
	p->rounds_max = json_get_int(io, o, "rounds_max", 1, UINT_MAX);
	p->home_every_rounds = json_get_int_or(io, o, "home_every_rounds", 0, UINT_MAX, 0);
	p->build_uid = json_get_int(io, o, "build_uid", 1, UINT_MAX);
	p->default_uname = json_get_string(io, o, "default_uname");
	p->store_uuid = json_get_string(io, o, "store_uuid");
	p->memtotal_bytes = json_get_int(io, o, "memtotal_bytes", 1, JSON_EXACT_MAX);
	read_limits(io, o, p);
	read_partitions(io, o, p);
	plan_pairs_read(io, o, "panic", &p->panic, &p->n_panic);
	plan_pairs_read(io, o, "toolchain", &p->toolchain, &p->n_toolchain);
	read_entries(io, o, p);
	read_workloads(io, o, p);
	read_loads(io, o, p);
	read_boots(io, o, p);
}

int plan_decode(const char *json, size_t len, struct plan **out, const char **why)
{
	_cleanup_(cleanup_json) cJSON *o = NULL;
	_cleanup_(cleanup_plan) struct plan *p = NULL;
	struct json_io io = {0};
	int err;

	if (why)
		*why = "JSON";
	err = json_parse(json, len, PLAN_BYTES_MAX, &o);
	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	json_get_schema(&io, o, PLAN_SCHEMA);
	read_plan(&io, o, p);
	if (io.err) {
		if (why)
			*why = io.why ? io.why : "memory";
		return io.err;
	}
	err = plan_check(p, why);
	if (err)
		return err;
	*out = TAKE_PTR(p);
	return 0;
}

static void write_entries(struct json_io *io, cJSON *root, const struct plan *p)
{
	cJSON *list = json_put_array(io, root, "entries");
	size_t i;

	for (i = 0; i < p->n_entries; i++) {
		const struct plan_entry *e = &p->entries[i];
		cJSON *o = json_append_object(io, list);

		json_put_text(io, o, "label", e->label);
		json_put_text(io, o, "id", e->id);
		json_put_text(io, o, "version", e->version);
		json_put_text(io, o, "kernel", e->kernel);
		json_put_text(io, o, "initrd", e->initrd);
		json_put_text(io, o, "cmdline", e->cmdline);
		json_put_text(io, o, "kernel_sha256", e->kernel_sha256);
		json_put_text(io, o, "initrd_sha256",
			      e->initrd_sha256[0] ? e->initrd_sha256 : NULL);
		json_put_text(io, o, "twin_of", e->twin_of);
		if (e->bmc_s)
			json_put_int(io, o, "bmc_s", e->bmc_s);
	}
}

static void write_loads(struct json_io *io, cJSON *root, const struct plan *p)
{
	cJSON *list = json_put_array(io, root, "loads");
	size_t i;

	for (i = 0; i < p->n_loads; i++) {
		const struct plan_load *l = &p->loads[i];
		cJSON *o = json_append_object(io, list);

		json_put_text(io, o, "name", l->name);
		json_put_text(io, o, "kind", l->kind);
		json_put_int(io, o, "bytes", l->bytes);
		json_put_int(io, o, "workers", l->workers);
		json_put_int(io, o, "steady_ms", l->steady_ms);
	}
}

static void write_boots(struct json_io *io, cJSON *root, const struct plan *p)
{
	cJSON *list = json_put_array(io, root, "boots"), *o, *trials;
	size_t i, k;

	for (i = 0; i < p->n_boots; i++) {
		const struct plan_boot *b = &p->boots[i];

		o = json_append_object(io, list);
		json_put_int(io, o, "boot", b->boot);
		json_put_int(io, o, "round", b->round);
		json_put_text(io, o, "entry", b->entry);
		trials = json_put_array(io, o, "trials");
		for (k = 0; k < b->n_trials; k++) {
			o = json_append_object(io, trials);
			json_put_int(io, o, "trial", b->trials[k].trial);
			json_put_text(io, o, "workload", b->trials[k].workload);
			json_put_text(io, o, "load", b->trials[k].load);
			json_put_int(io, o, "jobs", b->trials[k].jobs);
		}
	}
}

static void write_machine(struct json_io *io, cJSON *root, const struct plan *p)
{
	cJSON *o = json_put_object(io, root, "limits");

	json_put_int(io, o, "boot_timeout_ms", p->boot_timeout_ms);
	json_put_int(io, o, "trial_timeout_ms", p->trial_timeout_ms);
	json_put_int(io, o, "load_start_timeout_ms", p->load_start_timeout_ms);
	json_put_int(io, o, "retries", p->retries);
	json_put_int(io, o, "boots_max", p->boots_max);
	json_put_int(io, root, "build_uid", p->build_uid);
	o = json_put_object(io, root, "process");
	json_put_int(io, o, "umask", p->umask);
	json_put_int(io, o, "nice", p->nice);
	json_put_int(io, o, "oom_score_adj", p->oom_score_adj);
	plan_pairs_write(io, root, "panic", p->panic, p->n_panic);
	json_put_text(io, root, "default_uname", p->default_uname);
	json_put_text(io, root, "store_uuid", p->store_uuid);
	o = json_put_object(io, root, "root");
	json_put_text(io, o, "uuid", p->root_uuid);
	json_put_text(io, o, "fstype", p->root_fstype);
	json_put_text(io, o, "options", p->root_options);
	o = json_put_object(io, root, "arena");
	json_put_text(io, o, "uuid", p->arena_uuid);
	json_put_text(io, o, "partuuid", p->arena_partuuid);
	json_put_text(io, o, "fstype", p->arena_fstype);
	json_put_text(io, o, "options", p->arena_options);
	json_put_int(io, o, "bytes", p->arena_bytes);
	if (p->swap_uuid) {
		o = json_put_object(io, root, "swap");
		json_put_text(io, o, "uuid", p->swap_uuid);
		json_put_int(io, o, "bytes", p->swap_bytes);
	}
	json_put_int(io, root, "memtotal_bytes", p->memtotal_bytes);
	plan_pairs_write(io, root, "toolchain", p->toolchain, p->n_toolchain);
}

int plan_encode(const struct plan *p, char **json, size_t *len)
{
	_cleanup_(cleanup_json) cJSON *o = cJSON_CreateObject();
	struct json_io io = {0};
	cJSON *list;
	size_t i;
	int err = plan_check(p, NULL);

	if (err)
		return err;
	if (!o)
		return -ENOMEM;
	json_put_int(&io, o, "schema", PLAN_SCHEMA);
	json_put_text(&io, o, "id", p->id);
	json_put_text(&io, o, "created_utc", p->created_utc);
	json_put_int(&io, o, "rtc_offset_s", p->rtc_offset_s);
	json_put_int(&io, o, "seed", p->seed);
	json_put_text(&io, o, "boot_mode", p->boot_mode);
	json_put_text(&io, o, "mode", p->mode);
	json_put_text(&io, o, "baseline", p->baseline);
	json_put_double(&io, o, "margin", p->margin);
	json_put_int(&io, o, "rounds_max", p->rounds_max);
	if (p->home_every_rounds)
		json_put_int(&io, o, "home_every_rounds", p->home_every_rounds);
	write_machine(&io, o, p);
	write_entries(&io, o, p);
	list = json_put_array(&io, o, "workloads");
	for (i = 0; i < p->n_workloads; i++)
		plan_workload_write(&io, json_append_object(&io, list), &p->workloads[i]);
	write_loads(&io, o, p);
	write_boots(&io, o, p);
	return io.err ? io.err : json_print(o, json, len);
}
