/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The figures of a report, one table per workload, jobs and load, one row per entry. The text and
 * the JSON report both print these, so that they cannot disagree. Only ok trials count; the
 * canary's never do. Reads a campaign, prints nothing. Pure.
 */
#ifndef RECOUNT_RESULTS_ROWS_H
#define RECOUNT_RESULTS_ROWS_H

#include "results/campaign.h"
#include "results/stat.h"

struct rows_figure {
	struct stat_summary s; /* s.n = 0: there is none, and the rest of it means nothing */
	double ratio;	       /* to the baseline; NaN when no round has both, or it has no sense */
};

enum rows_metric {
	ROWS_WALL_NS,
	ROWS_CPU_PERCENT, /* user and system time of the build by wall; 100 is one CPU */
	ROWS_LOAD_RATE_PER_S,
	ROWS_LOAD_CPU_PERCENT,
	ROWS_METRICS
};

struct rows_row {
	const struct plan_entry *entry; /* borrowed */
	struct rows_figure figures[ROWS_METRICS];
	unsigned n_void, n_failed; /* records of this table's trials; failed counts timeouts too */
	char unit[16];		   /* of the load's work, "" when none was counted */
};

struct rows_table {
	const struct plan_workload *workload; /* borrowed */
	const struct plan_load *load;	      /* borrowed */
	unsigned jobs;
	struct rows_row *rows; /* the entries of the rounds, in the plan's order */
	size_t n_rows;
};

struct rows {
	const struct plan_entry *baseline; /* borrowed */
	struct rows_table *tables;	   /* by workload, jobs (rising), load: the plan's order */
	size_t n_tables;
};

/*
 * Ratio is the geometric mean over rounds of x(entry) / x(baseline), for the rounds that have both:
 * exp() of the mean of ln-ratios, the datum of paired comparison in log scale. It is given for
 * ROWS_WALL_NS and ROWS_LOAD_RATE_PER_S. A load that did no work in one of these rounds, of the
 * entry or of the baseline, leaves its row without a ratio of the load rate.
 * @baseline is a label, or NULL for the plan's; -ENOENT when no entry has it. -ENOMEM. The campaign
 * must outlive the answer. Owned by caller, rows_free().
 */
int rows_collect(const struct campaign *c, const char *baseline, struct rows **out) _must_check_;
void rows_free(struct rows *r);
static inline void cleanup_rows(struct rows **r)
{
	rows_free(*r);
}

/* The metric's name in JSON; borrowed, static. */
const char *rows_metric_name(enum rows_metric metric);

#endif
