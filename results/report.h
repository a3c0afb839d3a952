/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The report of a campaign: records in, a table for people or JSON for programs out. */
#ifndef RECOUNT_RESULTS_REPORT_H
#define RECOUNT_RESULTS_REPORT_H

#include <stdio.h>

#include "results/campaign.h"

/*
 * Text, at most 80 columns: per workload, jobs and load one table with contest's columns (Kernel,
 * [runs], time, CPU%, load per second, LCPU%, Ratio to @baseline), under each its void and failed
 * trials with their causes, never hidden; then the counts and the attempts that failed. The
 * canary's trials are in no table. Time is the median. Ratio is the geometric mean of t(entry) /
 * t(baseline) over the rounds that have both (the datum is ln time, as in later statistics); Load
 * ratio is the same of the load's rate.
 * @baseline is a label, or NULL for the plan's.
 * -ENOENT when no entry has that label. A campaign without records gives tables that say so.
 */
int report_text(FILE *out, const struct campaign *c, const char *baseline) _must_check_;

/*
 * {"campaign", "baseline", "rows": [...]} as in recount-results(5); one row per (workload, load,
 * jobs, arena_fstype, metric, entry) with n, mean, median, stddev, cv, min, max and ratio, the same
 * figures as in the text. Metrics: wall_ns (always, with n_void and n_failed), cpu_percent, and
 * where a load counted its work load_rate_per_s (with its unit; its ratio is the load ratio) and
 * load_cpu_percent. NaN never appears: a figure that does not exist is left out.
 */
int report_json(FILE *out, const struct campaign *c, const char *baseline) _must_check_;

#endif
