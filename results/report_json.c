/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The report for programs. */
#include "results/report.h"

#include <errno.h>
#include <math.h>

#include "results/json.h"
#include "results/rows.h"

/* Twelve digits: a tenth of a nanosecond in four minutes, and the same text from every libm. */
static void put_figure(struct json_io *io, cJSON *o, const char *key, double value)
{
	char text[32];

	if (isnan(value))
		return;
	snprintf(text, sizeof(text), "%.12g", value);
	json_put_double(io, o, key, strtod(text, NULL));
}

static void put_row(struct json_io *io, cJSON *o, const struct plan *plan,
		    const struct rows_table *t, const struct rows_row *row, enum rows_metric metric)
{
	const struct rows_figure *f = &row->figures[metric];

	json_put_text(io, o, "workload", t->workload->name);
	json_put_text(io, o, "load", t->load->name);
	json_put_int(io, o, "jobs", t->jobs);
	json_put_text(io, o, "arena_fstype", plan->arena_fstype);
	json_put_text(io, o, "metric", rows_metric_name(metric));
	json_put_text(io, o, "entry", row->entry->label);
	if (metric == ROWS_LOAD_RATE_PER_S)
		json_put_lossy(io, o, "unit", row->unit);
	json_put_int(io, o, "n", f->s.n);
	if (f->s.n > 0) {
		put_figure(io, o, "mean", f->s.mean);
		put_figure(io, o, "median", f->s.median);
		put_figure(io, o, "stddev", f->s.stddev);
		put_figure(io, o, "cv", f->s.cv);
		put_figure(io, o, "min", f->s.min);
		put_figure(io, o, "max", f->s.max);
		put_figure(io, o, "ratio", f->ratio);
	}
	if (metric == ROWS_WALL_NS) {
		json_put_int(io, o, "n_void", row->n_void);
		json_put_int(io, o, "n_failed", row->n_failed);
	}
}

static void put_table(struct json_io *io, cJSON *list, const struct plan *plan,
		      const struct rows_table *t)
{
	enum rows_metric m;
	size_t i;

	for (m = 0; m < ROWS_METRICS; m++)
		for (i = 0; i < t->n_rows; i++)
			if (m == ROWS_WALL_NS || t->rows[i].figures[m].s.n > 0)
				put_row(io, json_append_object(io, list), plan, t, &t->rows[i], m);
}

int report_json(FILE *out, const struct campaign *c, const char *baseline)
{
	_cleanup_(cleanup_json) cJSON *o = cJSON_CreateObject();
	_cleanup_(cleanup_rows) struct rows *rows = NULL;
	_cleanup_free_ char *text = NULL;
	struct json_io io = {0};
	cJSON *list;
	size_t i;
	int err;

	err = rows_collect(c, baseline, &rows);
	if (err)
		return err;
	json_put_text(&io, o, "campaign", c->plan->id);
	json_put_text(&io, o, "baseline", rows->baseline->label);
	list = json_put_array(&io, o, "rows");
	for (i = 0; i < rows->n_tables; i++)
		put_table(&io, list, c->plan, &rows->tables[i]);
	err = io.err ? io.err : json_print(o, &text, NULL);
	if (err)
		return err;
	return fputs(text, out) == EOF ? -EIO : 0;
}
