/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parts of plan.json that other files of the store hold too. For codecs of results/ only. */
#ifndef RECOUNT_RESULTS_PLAN_JSON_H
#define RECOUNT_RESULTS_PLAN_JSON_H

#include "results/json.h"
#include "results/plan.h"

/* Fills @w, which must be empty, from one element of "workloads"; types only, the rules are
 * plan_check()'s. After an error it holds what plan_workload_clear() can free. */
void plan_workload_read(struct json_io *io, const cJSON *o, struct plan_workload *w);
void plan_workload_write(struct json_io *io, cJSON *o, const struct plan_workload *w);

/* The object @key of @o as pairs, in the file's order; owned by caller, plan_pairs_free(). */
void plan_pairs_read(struct json_io *io, const cJSON *o, const char *key, struct plan_pair **pairs,
		     size_t *n);
void plan_pairs_write(struct json_io *io, cJSON *o, const char *key, const struct plan_pair *pairs,
		      size_t n);

#endif
