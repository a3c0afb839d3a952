/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The codec of prepared/manifest.json, and its place on the store. */
#include "results/prepared.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "results/json.h"
#include "results/plan_json.h"

#define MANIFEST "prepared/manifest.json"

void prepared_free(struct prepared *p)
{
	if (!p)
		return;
	plan_workload_clear(&p->workload);
	plan_pairs_free(p->toolchain, p->n_toolchain);
	free(p->arena_uuid);
	free(p);
}

static int is_sound(const struct prepared *p)
{
	return plan_check_workload(&p->workload, NULL) == 0 && p->jobs >= 1 &&
	       p->jobs <= PLAN_JOBS_MAX && p->build_uid >= 1 && p->build_uid < UINT_MAX &&
	       plan_is_uuid(p->arena_uuid) && plan_is_toolchain(p->toolchain, p->n_toolchain);
}

int prepared_decode(const char *json, size_t len, struct prepared **out)
{
	_cleanup_(cleanup_json) cJSON *o = NULL;
	_cleanup_(cleanup_prepared) struct prepared *p = NULL;
	struct json_io io = {0};
	const cJSON *w;
	int err;

	err = json_parse(json, len, PLAN_BYTES_MAX, &o);
	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	json_get_schema(&io, o, PLAN_SCHEMA);
	w = json_get_object(&io, o, "workload");
	plan_workload_read(&io, w, &p->workload);
	p->jobs = json_get_int(&io, o, "jobs", 1, PLAN_JOBS_MAX);
	p->build_uid = json_get_int(&io, o, "build_uid", 1, UINT_MAX - 1);
	p->arena_uuid = json_get_string(&io, o, "arena_uuid");
	plan_pairs_read(&io, o, "toolchain", &p->toolchain, &p->n_toolchain);
	if (io.err)
		return io.err;
	if (!is_sound(p))
		return -EBADMSG;
	*out = TAKE_PTR(p);
	return 0;
}

int prepared_encode(const struct prepared *p, char **json)
{
	_cleanup_(cleanup_json) cJSON *o = cJSON_CreateObject();
	struct json_io io = {0};

	if (!is_sound(p))
		return -EBADMSG;
	json_put_int(&io, o, "schema", PLAN_SCHEMA);
	plan_workload_write(&io, json_put_object(&io, o, "workload"), &p->workload);
	json_put_int(&io, o, "jobs", p->jobs);
	json_put_int(&io, o, "build_uid", p->build_uid);
	json_put_text(&io, o, "arena_uuid", p->arena_uuid);
	plan_pairs_write(&io, o, "toolchain", p->toolchain, p->n_toolchain);
	return io.err ? io.err : json_print(o, json, NULL);
}

int prepared_load(struct store *s, struct prepared **out)
{
	_cleanup_free_ char *json = NULL;
	size_t len;
	int err = store_get(s, MANIFEST, PLAN_BYTES_MAX, &json, &len);

	return err ? err : prepared_decode(json, len, out);
}

int prepared_save(struct store *s, const struct prepared *p)
{
	_cleanup_free_ char *json = NULL;
	int err = prepared_encode(p, &json);

	return err ? err : store_replace(s, MANIFEST, json, strlen(json));
}

int prepared_remove(struct store *s)
{
	return store_remove(s, MANIFEST);
}
