/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reduces the ok trials of a campaign to the figures of its report. */
#include "results/rows.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* One value per round for one entry and metric; NaN where there is none. */
struct series {
	double *x;
	size_t n;
};

static double percent(int64_t user_ns, int64_t sys_ns, int64_t wall_ns)
{
	if (user_ns < 0 || sys_ns < 0 || wall_ns <= 0)
		return NAN;
	return 100.0 * (double)(user_ns + sys_ns) / (double)wall_ns;
}

static double measure(const struct trial_record *r, enum rows_metric metric)
{
	const struct record_load *l = &r->load_result;

	switch (metric) {
	case ROWS_WALL_NS:
		return (double)r->wall_ns;
	case ROWS_CPU_PERCENT:
		return percent(r->user_ns, r->sys_ns, r->wall_ns);
	case ROWS_LOAD_RATE_PER_S:
		if (!r->has_load_result || l->work < 0 || l->elapsed_ns <= 0)
			return NAN;
		return (double)l->work * 1e9 / (double)l->elapsed_ns;
	case ROWS_LOAD_CPU_PERCENT:
		if (!r->has_load_result)
			return NAN;
		return percent(l->user_ns, l->sys_ns, l->elapsed_ns);
	case ROWS_METRICS:
		break;
	}
	return NAN;
}

const char *rows_metric_name(enum rows_metric metric)
{
	static const char *const names[] = {
		[ROWS_WALL_NS] = "wall_ns",
		[ROWS_CPU_PERCENT] = "cpu_percent",
		[ROWS_LOAD_RATE_PER_S] = "load_rate_per_s",
		[ROWS_LOAD_CPU_PERCENT] = "load_cpu_percent",
	};

	return names[metric];
}

static int is_of_table(const struct plan_trial *t, const struct rows_table *table)
{
	return t->jobs == table->jobs && strcmp(t->workload, table->workload->name) == 0 &&
	       strcmp(t->load, table->load->name) == 0;
}

/* The number of @table's trial in boot @b, 0 when it has none. */
static unsigned trial_of(const struct plan_boot *b, const struct rows_table *table)
{
	size_t i;

	for (i = 0; i < b->n_trials; i++)
		if (is_of_table(&b->trials[i], table))
			return b->trials[i].trial;
	return 0;
}

static void read_series(const struct campaign *c, const struct rows_table *table,
			const struct plan_entry *entry, enum rows_metric metric,
			const struct series *s)
{
	const struct trial_record *r;
	size_t i;

	for (i = 0; i < s->n; i++)
		s->x[i] = NAN;
	for (i = 1; i < c->plan->n_boots; i++) {
		const struct plan_boot *b = &c->plan->boots[i];

		if (strcmp(b->entry, entry->label) != 0)
			continue;
		r = campaign_cell_record(c, b->boot, trial_of(b, table));
		if (r && r->status == TRIAL_OK)
			s->x[b->round] = measure(r, metric);
	}
}

static double paired_ratio(const struct series *s, const struct series *base)
{
	double sum = 0;
	size_t i, n = 0;

	for (i = 0; i < s->n; i++) {
		if (isnan(s->x[i]) || isnan(base->x[i]))
			continue;
		/* It has no logarithm, and a mean of the other rounds would praise what stood
		 * still. */
		if (s->x[i] <= 0 || base->x[i] <= 0)
			return NAN;
		sum += log(s->x[i] / base->x[i]);
		n++;
	}
	return n ? exp(sum / (double)n) : NAN;
}

static int summarise(const struct series *s, struct stat_summary *out)
{
	_cleanup_free_ double *x = malloc(s->n * sizeof(*x));
	size_t i, n = 0;

	if (!x)
		return -ENOMEM;
	for (i = 0; i < s->n; i++)
		if (!isnan(s->x[i]))
			x[n++] = s->x[i];
	return n ? stat_summarise(x, n, out) : 0;
}

static void count_others(const struct campaign *c, const struct rows_table *table,
			 struct rows_row *row)
{
	size_t i, k;

	for (i = 1; i < c->plan->n_boots; i++) {
		const struct plan_boot *b = &c->plan->boots[i];
		const struct boot_state *state = &c->boots[i];

		if (strcmp(b->entry, row->entry->label) != 0)
			continue;
		for (k = 0; k < state->n_records; k++) {
			const struct trial_record *r = &state->records[k];

			if (r->trial != trial_of(b, table))
				continue;
			row->n_void += r->status == TRIAL_VOID;
			row->n_failed += r->status == TRIAL_FAILED || r->status == TRIAL_TIMEOUT;
			if (r->status == TRIAL_OK && r->has_load_result)
				memcpy(row->unit, r->load_result.unit, sizeof(row->unit));
		}
	}
}

static int fill_table(const struct campaign *c, const struct plan_entry *baseline,
		      struct rows_table *table)
{
	size_t n = c->plan->rounds_max + 1, i;
	_cleanup_free_ double *own = malloc(n * sizeof(*own));
	_cleanup_free_ double *base = malloc(n * sizeof(*base));
	const struct series s = {own, n}, b = {base, n};
	enum rows_metric m;
	int err;

	table->rows = calloc(c->plan->n_entries, sizeof(*table->rows));
	if (!own || !base || !table->rows)
		return -ENOMEM;
	table->n_rows = 0;
	for (i = 0; i < c->plan->n_entries; i++)
		if (plan_is_compared(c->plan, c->plan->entries[i].label))
			table->rows[table->n_rows++].entry = &c->plan->entries[i];
	for (m = 0; m < ROWS_METRICS; m++) {
		read_series(c, table, baseline, m, &b);
		for (i = 0; i < table->n_rows; i++) {
			struct rows_figure *f = &table->rows[i].figures[m];

			read_series(c, table, table->rows[i].entry, m, &s);
			err = summarise(&s, &f->s);
			if (err)
				return err;
			f->ratio = NAN;
			if (m == ROWS_WALL_NS || m == ROWS_LOAD_RATE_PER_S)
				f->ratio = paired_ratio(&s, &b);
		}
	}
	for (i = 0; i < table->n_rows; i++)
		count_others(c, table, &table->rows[i]);
	return 0;
}

static int is_planned(const struct plan *plan, const struct rows_table *table)
{
	size_t i;

	for (i = 1; i < plan->n_boots; i++)
		if (trial_of(&plan->boots[i], table))
			return 1;
	return 0;
}

static void mark_jobs(const struct plan *plan, char used[PLAN_JOBS_MAX + 1])
{
	size_t i, k;

	for (i = 1; i < plan->n_boots; i++)
		for (k = 0; k < plan->boots[i].n_trials; k++)
			used[plan->boots[i].trials[k].jobs] = 1;
}

static int add_table(struct rows *r, const struct rows_table *table)
{
	struct rows_table *more = realloc(r->tables, (r->n_tables + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	r->tables = more;
	r->tables[r->n_tables++] = *table;
	return 0;
}

static int list_tables(const struct plan *plan, struct rows *r)
{
	char used[PLAN_JOBS_MAX + 1] = {0};
	struct rows_table t = {0};
	size_t w, l;
	int err;

	mark_jobs(plan, used);
	for (w = 0; w < plan->n_workloads; w++) {
		t.workload = &plan->workloads[w];
		for (t.jobs = 1; t.jobs <= PLAN_JOBS_MAX; t.jobs++) {
			for (l = 0; used[t.jobs] && l < plan->n_loads; l++) {
				t.load = &plan->loads[l];
				err = is_planned(plan, &t) ? add_table(r, &t) : 0;
				if (err)
					return err;
			}
		}
	}
	return 0;
}

int rows_collect(const struct campaign *c, const char *baseline, struct rows **out)
{
	_cleanup_(cleanup_rows) struct rows *r = calloc(1, sizeof(*r));
	size_t i;
	int err;

	if (!r)
		return -ENOMEM;
	r->baseline = plan_find_entry(c->plan, baseline ? baseline : c->plan->baseline);
	if (!r->baseline)
		return -ENOENT;
	err = list_tables(c->plan, r);
	for (i = 0; !err && i < r->n_tables; i++)
		err = fill_table(c, r->baseline, &r->tables[i]);
	if (err)
		return err;
	*out = TAKE_PTR(r);
	return 0;
}

void rows_free(struct rows *r)
{
	size_t i;

	if (!r)
		return;
	for (i = 0; i < r->n_tables; i++)
		free(r->tables[i].rows);
	free(r->tables);
	free(r);
}
