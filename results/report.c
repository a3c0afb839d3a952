/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The report for people: tables, then what did not count and why. */
#include "results/report.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "results/rows.h"

#define COLUMNS 80
#define LABEL_MAX                                                                                  \
	22 /* a longer label has a line of its own, so that no row is wider than COLUMNS */
#define CELL 40

/* Prints words of a paragraph: lines after the first are indented by four more than @indent. */
static _printf_(3, 4) void print_words(FILE *out, int indent, const char *fmt, ...)
{
	char text[1024], *word, *save = NULL;
	size_t column = indent;
	int first = 1;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(out, "%*s", indent, "");
	for (word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (!first && column + 1 + strlen(word) > COLUMNS) {
			fprintf(out, "\n%*s", indent + 4, "");
			column = indent + 4;
		} else if (!first) {
			fputc(' ', out);
			column++;
		}
		fputs(word, out);
		column += strlen(word);
		first = 0;
	}
	fputc('\n', out);
}

/* As people say it: 4:11.3, 1:02:03.4. */
static void format_time(char buf[CELL], double ns)
{
	long long tenths = llround(ns / 1e8);
	long long minutes = tenths / 600;

	if (minutes < 60)
		snprintf(buf, CELL, "%lld:%02lld.%lld", minutes, tenths / 10 % 60, tenths % 10);
	else
		snprintf(buf, CELL, "%lld:%02lld:%02lld.%lld", minutes / 60, minutes % 60,
			 tenths / 10 % 60, tenths % 10);
}

static void format_rate(char buf[CELL], double rate)
{
	snprintf(buf, CELL, "%.*f", rate < 10 ? 2 : rate < 100 ? 1 : 0, rate);
}

/* The cell of a figure that does not exist. */
static void format_none(char buf[CELL])
{
	strcpy(buf, "-");
}

static void format_percent(char buf[CELL], const struct rows_figure *f)
{
	if (f->s.n > 0)
		snprintf(buf, CELL, "%.0f", f->s.mean);
	else
		format_none(buf);
}

static void format_ratio(char buf[CELL], double ratio)
{
	if (isnan(ratio))
		format_none(buf);
	else
		snprintf(buf, CELL, "%.3f", ratio);
}

static int is_loaded(const struct rows_table *t)
{
	return strcmp(t->load->kind, "none") != 0;
}

static void print_row(FILE *out, const struct rows_table *t, const struct rows_row *row, int width)
{
	const struct rows_figure *wall = &row->figures[ROWS_WALL_NS];
	const struct rows_figure *rate = &row->figures[ROWS_LOAD_RATE_PER_S];
	const char *label = row->entry->label;
	char runs[CELL], time[CELL], cell[CELL];

	snprintf(runs, sizeof(runs), "[%zu]", wall->s.n);
	format_none(time);
	if (wall->s.n > 0)
		format_time(time, wall->s.median);
	if (strlen(label) > LABEL_MAX) {
		fprintf(out, "%s\n", label);
		label = "";
	}
	fprintf(out, "%-*s %6s %9s", width, label, runs, time);
	format_percent(cell, &row->figures[ROWS_CPU_PERCENT]);
	fprintf(out, " %5s", cell);
	if (is_loaded(t)) {
		format_none(cell);
		if (rate->s.n > 0)
			format_rate(cell, rate->s.mean);
		fprintf(out, " %9s", cell);
		format_percent(cell, &row->figures[ROWS_LOAD_CPU_PERCENT]);
		fprintf(out, " %6s", cell);
	}
	format_ratio(cell, wall->ratio);
	fprintf(out, " %6s", cell);
	if (is_loaded(t)) {
		format_ratio(cell, rate->ratio);
		fprintf(out, " %10s", cell);
	}
	fputc('\n', out);
}

static int label_width(const struct rows_table *t)
{
	size_t width = strlen("Kernel"), i, len;

	for (i = 0; i < t->n_rows; i++) {
		len = strlen(t->rows[i].entry->label);
		if (len > width && len <= LABEL_MAX)
			width = len;
	}
	return (int)width;
}

static const char *unit_of(const struct rows_table *t)
{
	size_t i;

	for (i = 0; i < t->n_rows; i++)
		if (t->rows[i].unit[0])
			return t->rows[i].unit;
	return NULL;
}

/* "boot 7 (6.12.117, round 2)" */
static void format_boot(char buf[160], const struct plan_boot *b)
{
	if (b->boot == 0)
		snprintf(buf, 160, "boot 0 (%s, canary)", b->entry);
	else
		snprintf(buf, 160, "boot %u (%s, round %u)", b->boot, b->entry, b->round);
}

static void print_record(FILE *out, const struct plan_boot *b, const struct trial_record *r)
{
	char boot[160], causes[RECORD_VOIDS_MAX * (RECORD_NAME + 2) + 1] = "";
	size_t len = 0;
	unsigned i;

	format_boot(boot, b);
	for (i = 0; i < r->n_voids; i++)
		len += snprintf(causes + len, sizeof(causes) - len, "%s%s", i ? ", " : ": ",
				r->voids[i]);
	print_words(out, 2, "%s, %s -j%u with load %s, attempt %u: %s%s", boot, r->workload,
		    r->jobs, r->load, r->attempt, trial_status_name(r->status), causes);
}

static int is_of_table(const struct trial_record *r, const struct rows_table *t)
{
	return r->jobs == t->jobs && !strcmp(r->workload, t->workload->name) &&
	       !strcmp(r->load, t->load->name);
}

/* The void and failed trials that belong to @t, or the canary's when it is NULL. */
static void print_records(FILE *out, const struct campaign *c, const struct rows_table *t)
{
	size_t first = t ? 1 : 0, end = t ? c->plan->n_boots : 1, b, i;

	for (b = first; b < end; b++) {
		for (i = 0; i < c->boots[b].n_records; i++) {
			const struct trial_record *r = &c->boots[b].records[i];

			if (r->status != TRIAL_OK && r->status != TRIAL_DISCARDED &&
			    (!t || is_of_table(r, t)))
				print_record(out, &c->plan->boots[b], r);
		}
	}
}

static void print_table(FILE *out, const struct campaign *c, const struct rows_table *t)
{
	const char *unit = unit_of(t);
	int width = label_width(t);
	size_t i, runs = 0;

	fputc('\n', out);
	print_words(out, 0, "%s%s: %s, cold, -j%u, %s%s%s%s", is_loaded(t) ? t->load->name : "No",
		    " load", t->workload->name, t->jobs, c->plan->arena_fstype,
		    unit ? "; Loads/s in " : "", unit ? unit : "", unit ? " per s" : "");
	fprintf(out, "%-*s %6s %9s %5s", width, "Kernel", "[runs]", "Time", "CPU%");
	if (is_loaded(t))
		fprintf(out, " %9s %6s", "Loads/s", "LCPU%");
	fprintf(out, " %6s", "Ratio");
	if (is_loaded(t))
		fprintf(out, " %10s", "Load ratio");
	fputc('\n', out);
	for (i = 0; i < t->n_rows; i++) {
		print_row(out, t, &t->rows[i], width);
		runs += t->rows[i].figures[ROWS_WALL_NS].s.n;
	}
	if (runs == 0)
		fputs("  no trial of this table is ok yet\n", out);
	print_records(out, c, t);
}

static void print_attempts(FILE *out, const struct campaign *c)
{
	const struct failed_record *f;
	char boot[160];
	unsigned b, a;
	int first = 1;

	for (b = 0; b < c->plan->n_boots; b++) {
		for (a = 0; a < c->boots[b].n_attempts; a++) {
			if (!c->boots[b].attempts[a].failed)
				continue;
			f = &c->boots[b].attempts[a].failure;
			if (first)
				fputs("failed attempts:\n", out);
			first = 0;
			format_boot(boot, &c->plan->boots[b]);
			if (f->evidence[0])
				print_words(out, 2, "%s, attempt %u: %s; evidence boots/%04u/%s",
					    boot, a + 1, f->reason, b, f->evidence);
			else
				print_words(out, 2, "%s, attempt %u: %s", boot, a + 1, f->reason);
		}
	}
}

static void print_counts(FILE *out, const struct campaign *c)
{
	struct campaign_counts n;

	campaign_count(c, &n);
	fputc('\n', out);
	print_words(out, 0,
		    "%u trials planned: %u ok, %u given up, %u to run (canary apart); "
		    "records void %u, failed %u; boots given up %u",
		    n.trials_planned, n.trials_ok, n.trials_finished - n.trials_ok,
		    n.trials_planned - n.trials_finished, n.records_void, n.records_failed,
		    n.boots_failed);
	print_records(out, c, NULL);
	print_attempts(out, c);
	if (c->damaged)
		print_words(out, 0, "damaged files, not counted: %u", c->damaged);
}

int report_text(FILE *out, const struct campaign *c, const char *baseline)
{
	_cleanup_(cleanup_rows) struct rows *rows = NULL;
	size_t i;
	int err;

	err = rows_collect(c, baseline, &rows);
	if (err)
		return err;
	print_words(out, 0, "campaign %s: entries %zu, rounds %u, baseline %s", c->plan->id,
		    rows->n_tables ? rows->tables[0].n_rows : 0, c->plan->rounds_max,
		    rows->baseline->label);
	print_words(
		out, 0,
		"Time is the median, CPU%% and Loads/s are means. Ratio is the time against the "
		"baseline's in the same round, Load ratio the load's rate (geometric means).");
	for (i = 0; i < rows->n_tables; i++)
		print_table(out, c, &rows->tables[i]);
	print_counts(out, c);
	return ferror(out) ? -EIO : 0;
}
