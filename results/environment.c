/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes the snapshot of a boot's environment. */
#include "results/environment.h"

#include "results/json.h"

int environment_encode(const struct plan_pair *facts, size_t n, char **json)
{
	_cleanup_(cleanup_json) cJSON *o = cJSON_CreateObject();
	struct json_io io = {0};

	json_put_int(&io, o, "schema", PLAN_SCHEMA);
	for (size_t i = 0; i < n; i++)
		if (facts[i].value)
			json_put_lossy(&io, o, facts[i].name, facts[i].value);
	return io.err ? io.err : json_print(o, json, NULL);
}
