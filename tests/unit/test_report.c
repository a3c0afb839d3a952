/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The report: whole golden texts of one campaign with everything in it, and its figures. */
#include "tests/unit/sample.h"

#include <errno.h>
#include <math.h>

#include "results/report.h"
#include "results/rows.h"

static struct plan *plan;
static struct campaign *c;

static void add_attempt(unsigned boot, const char *reason, const char *evidence)
{
	struct boot_state *b = &c->boots[boot];
	struct attempt_state *a;

	b->attempts = realloc(b->attempts, (b->n_attempts + 1) * sizeof(*a));
	assert_non_null(b->attempts);
	a = &b->attempts[b->n_attempts++];
	memset(a, 0, sizeof(*a));
	a->exists = a->reached = 1;
	a->done = !reason;
	a->failed = !a->done;
	if (reason) {
		strcpy(a->failure.reason, reason);
		strcpy(a->failure.evidence, evidence);
	}
}

/* A record of trial @trial in @boot's last attempt; borrowed until the next one. */
static struct trial_record *add_trial(unsigned boot, const char *load, enum trial_status status)
{
	struct boot_state *b = &c->boots[boot];
	const struct plan_boot *p = &plan->boots[boot];
	struct trial_record *r;
	size_t i;

	b->records = realloc(b->records, (b->n_records + 1) * sizeof(*r));
	assert_non_null(b->records);
	r = &b->records[b->n_records++];
	trial_record_init(r);
	for (i = 0; strcmp(p->trials[i].load, load) != 0; i++)
		;
	r->boot = boot;
	r->round = p->round;
	r->attempt = b->n_attempts;
	r->trial = p->trials[i].trial;
	r->jobs = p->trials[i].jobs;
	r->status = status;
	snprintf(r->entry, sizeof(r->entry), "%s", p->entry);
	snprintf(r->workload, sizeof(r->workload), "kernel");
	snprintf(r->load, sizeof(r->load), "%s", load);
	return r;
}

static void add_none(unsigned boot, enum trial_status status, double wall_s, double cpus)
{
	struct trial_record *r = add_trial(boot, "none", status);

	r->wall_ns = llround(wall_s * 1e9);
	r->user_ns = llround(wall_s * cpus * 0.75e9);
	r->sys_ns = llround(wall_s * cpus * 0.25e9);
}

static void add_io(unsigned boot, double wall_s, int64_t ops, double elapsed_s)
{
	struct trial_record *r = add_trial(boot, "io", TRIAL_OK);

	r->wall_ns = llround(wall_s * 1e9);
	r->user_ns = r->wall_ns;
	r->sys_ns = r->wall_ns / 2;
	r->has_load_result = 1;
	r->load_result = (struct record_load){
		.work = ops,
		.unit = "ops",
		.elapsed_ns = llround(elapsed_s * 1e9),
		.user_ns = llround(elapsed_s * 0.05e9),
		.sys_ns = llround(elapsed_s * 0.17e9),
	};
}

static int setup(void **state)
{
	(void)state;
	plan = sample_plan();
	c = calloc(1, sizeof(*c));
	assert_non_null(c);
	c->plan = plan;
	c->boots = calloc(plan->n_boots, sizeof(*c->boots));
	assert_non_null(c->boots);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	campaign_free(c);
	plan_free(plan);
	return 0;
}

/*
 * Boots: 1 6.12.117, 2 6.1.0-57, 3 7.3-rc2 | 4 6.1.0-57, 5 7.3-rc2, 6 6.12.117. 7.3-rc2 panics in
 * round 1 and is given up; one io trial is void at first; one build fails; boot 6 has not been yet.
 */
static void fill(void)
{
	struct trial_record *r;

	add_attempt(0, "not-reached", "");
	add_attempt(0, NULL, NULL);
	add_none(0, TRIAL_DISCARDED, 999, 1);
	r = add_trial(0, "io", TRIAL_OK);
	trial_record_void(r, "cold-check");
	add_attempt(1, NULL, NULL);
	add_none(1, TRIAL_OK, 198, 1.98);
	r = add_trial(1, "io", TRIAL_OK);
	trial_record_void(r, "load-not-started");
	trial_record_void(r, "product-differs");
	add_attempt(1, NULL, NULL);
	add_io(1, 330.04, 30000, 300);
	add_attempt(2, NULL, NULL);
	add_none(2, TRIAL_OK, 200, 1.96);
	add_io(2, 300, 40000, 400);
	add_attempt(3, "panic", "panic-1.txt");
	add_attempt(3, "no-answer", "");
	add_attempt(4, NULL, NULL);
	add_none(4, TRIAL_OK, 220, 1.9);
	add_io(4, 3723.44, 45000, 500);
	add_attempt(5, NULL, NULL);
	add_none(5, TRIAL_OK, 231, 1.8);
	add_trial(5, "io", TRIAL_TIMEOUT);
	c->damaged = 2;
}

static char *text_of(int (*print)(FILE *, const struct campaign *, const char *),
		     const char *baseline)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(print(f, c, baseline), 0);
	fclose(f);
	return text;
}

static void is_at_most_80_columns(const char *text)
{
	const char *line, *end;

	for (line = text; (end = strchr(line, '\n')); line = end + 1)
		if (end - line > 80)
			fail_msg("%d columns: %.*s", (int)(end - line), (int)(end - line), line);
}

static void is_near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-12 * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

static void text_shows_tables_and_what_went_wrong(void **state)
{
	char *text;

	(void)state;
	fill();
	text = text_of(report_text, NULL);
	is_at_most_80_columns(text);
	sample_is_golden("report.txt", text);
	free(text);
}

static void json_has_a_row_for_each_figure(void **state)
{
	char *text;

	(void)state;
	fill();
	text = text_of(report_json, NULL);
	sample_is_golden("report.json", text);
	free(text);
}

static void a_campaign_without_records_says_so(void **state)
{
	char *text;

	(void)state;
	text = text_of(report_text, NULL);
	is_at_most_80_columns(text);
	sample_is_golden("report-empty.txt", text);
	free(text);
	text = text_of(report_json, NULL);
	sample_is_golden("report-empty.json", text);
	assert_null(strstr(text, "nan"));
	free(text);
}

static void any_entry_can_be_the_baseline(void **state)
{
	char *text;
	FILE *f = fopen("/dev/null", "w");

	(void)state;
	fill();
	text = text_of(report_text, "6.12.117");
	sample_is_golden("report-other-baseline.txt", text);
	free(text);
	assert_non_null(f);
	assert_int_equal(report_text(f, c, "6.12"), -ENOENT);
	assert_int_equal(report_json(f, c, "6.12"), -ENOENT);
	fclose(f);
}

static void long_labels_do_not_widen_the_table(void **state)
{
	static const char label[] =
		"a-label-of-sixty-three-characters-that-somebody-chose-for-fun-x";
	char *text;
	size_t i;

	(void)state;
	assert_int_equal(strlen(label), 63);
	free(plan->entries[1].label);
	plan->entries[1].label = strdup(label);
	for (i = 0; i < plan->n_boots; i++) {
		if (strcmp(plan->boots[i].entry, "6.12.117") != 0)
			continue;
		free(plan->boots[i].entry);
		plan->boots[i].entry = strdup(label);
	}
	fill();
	text = text_of(report_text, NULL);
	is_at_most_80_columns(text);
	assert_non_null(strstr(text, label));
	free(text);
}

static void figures_are_those_of_ok_trials_outside_the_canary(void **state)
{
	const struct rows_figure *f;
	struct rows *rows = NULL;

	(void)state;
	fill();
	/* Discarded is discarded, in whichever boot. */
	add_attempt(6, NULL, NULL);
	add_none(6, TRIAL_DISCARDED, 999, 1);
	assert_int_equal(rows_collect(c, NULL, &rows), 0);
	assert_ptr_equal(rows->baseline, &plan->entries[0]);
	assert_int_equal(rows->n_tables, 2);
	assert_string_equal(rows->tables[0].load->name, "none");
	assert_string_equal(rows->tables[1].load->name, "io");
	f = rows->tables[0].rows[0].figures;
	assert_int_equal(f[ROWS_WALL_NS].s.n, 2);
	is_near(f[ROWS_WALL_NS].s.mean, 210e9);
	is_near(f[ROWS_WALL_NS].s.min, 200e9);
	is_near(f[ROWS_WALL_NS].s.max, 220e9);
	is_near(f[ROWS_WALL_NS].s.stddev, sqrt(200) * 1e9);
	is_near(f[ROWS_WALL_NS].s.cv, sqrt(200) / 210);
	is_near(f[ROWS_WALL_NS].ratio, 1);
	is_near(f[ROWS_CPU_PERCENT].s.mean, 193);
	assert_true(isnan(f[ROWS_CPU_PERCENT].ratio));
	/* 6.12.117 has round 1 only, 7.3-rc2 round 2 only: each is paired with its own round. */
	is_near(rows->tables[0].rows[1].figures[ROWS_WALL_NS].ratio, 198.0 / 200);
	is_near(rows->tables[0].rows[2].figures[ROWS_WALL_NS].ratio, 231.0 / 220);
	f = rows->tables[1].rows[0].figures;
	is_near(f[ROWS_LOAD_RATE_PER_S].s.mean, 95);
	is_near(f[ROWS_LOAD_CPU_PERCENT].s.mean, 22);
	f = rows->tables[1].rows[1].figures;
	is_near(f[ROWS_LOAD_RATE_PER_S].ratio, 1);
	is_near(f[ROWS_WALL_NS].ratio, 330.04 / 300);
	assert_int_equal(rows->tables[1].rows[1].n_void, 1);
	assert_int_equal(rows->tables[1].rows[2].n_failed, 1);
	assert_int_equal(rows->tables[1].rows[2].figures[ROWS_WALL_NS].s.n, 0);
	assert_string_equal(rows->tables[1].rows[1].unit, "ops");
	rows_free(rows);
}

static void ratio_is_the_geometric_mean_of_paired_rounds(void **state)
{
	struct rows *rows = NULL;

	(void)state;
	add_attempt(1, NULL, NULL);
	add_none(1, TRIAL_OK, 100, 1);
	add_attempt(2, NULL, NULL);
	add_none(2, TRIAL_OK, 200, 1);
	add_attempt(4, NULL, NULL);
	add_none(4, TRIAL_OK, 50, 1);
	add_attempt(6, NULL, NULL);
	add_none(6, TRIAL_OK, 400, 1);
	assert_int_equal(rows_collect(c, NULL, &rows), 0);
	/* sqrt(1/2 · 8), where the ratio of means or medians would be 2. */
	is_near(rows->tables[0].rows[1].figures[ROWS_WALL_NS].ratio, 2);
	is_near(rows->tables[0].rows[1].figures[ROWS_WALL_NS].s.mean, 250e9);
	is_near(rows->tables[0].rows[0].figures[ROWS_WALL_NS].s.mean, 125e9);
	rows_free(rows);
	c->boots[6].records[0].wall_ns = 100000000000;
	assert_int_equal(rows_collect(c, "6.12.117", &rows), 0);
	/* sqrt(2 · 1/2) */
	is_near(rows->tables[0].rows[0].figures[ROWS_WALL_NS].ratio, 1);
	rows_free(rows);
}

/* One that stood still in a round must not look better than one that was slow in it. */
static void load_that_stood_still_in_a_round_has_no_ratio(void **state)
{
	const struct rows_figure *f;
	struct rows *rows = NULL;

	(void)state;
	add_attempt(1, NULL, NULL);
	add_io(1, 100, 0, 100);
	add_attempt(2, NULL, NULL);
	add_io(2, 100, 500, 100);
	add_attempt(4, NULL, NULL);
	add_io(4, 100, 500, 100);
	add_attempt(6, NULL, NULL);
	add_io(6, 200, 1000, 100);
	assert_int_equal(rows_collect(c, NULL, &rows), 0);
	f = rows->tables[1].rows[1].figures;
	assert_int_equal(f[ROWS_LOAD_RATE_PER_S].s.n, 2);
	assert_true(isnan(f[ROWS_LOAD_RATE_PER_S].ratio));
	is_near(f[ROWS_WALL_NS].ratio, sqrt(2));
	is_near(rows->tables[1].rows[0].figures[ROWS_LOAD_RATE_PER_S].ratio, 1);
	rows_free(rows);
	/* nor is there one to a baseline that did */
	assert_int_equal(rows_collect(c, "6.12.117", &rows), 0);
	assert_true(isnan(rows->tables[1].rows[0].figures[ROWS_LOAD_RATE_PER_S].ratio));
	rows_free(rows);
	/* a round that the two do not share says nothing */
	c->boots[2].records[0].status = TRIAL_FAILED;
	assert_int_equal(rows_collect(c, NULL, &rows), 0);
	is_near(rows->tables[1].rows[1].figures[ROWS_LOAD_RATE_PER_S].ratio, 2);
	rows_free(rows);
}

static void figures_that_were_not_read_are_left_out(void **state)
{
	struct rows *rows = NULL;
	struct trial_record *r;

	(void)state;
	add_attempt(1, NULL, NULL);
	add_none(1, TRIAL_OK, 100, 1);
	c->boots[1].records[0].user_ns = ABSENT;
	add_attempt(2, NULL, NULL);
	add_io(2, 100, 500, 100);
	r = &c->boots[2].records[0];
	r->load_result.work = ABSENT;
	r->load_result.sys_ns = ABSENT;
	add_attempt(4, NULL, NULL);
	add_io(4, 100, 0, 100);
	assert_int_equal(rows_collect(c, NULL, &rows), 0);
	assert_int_equal(rows->tables[0].rows[1].figures[ROWS_WALL_NS].s.n, 1);
	assert_int_equal(rows->tables[0].rows[1].figures[ROWS_CPU_PERCENT].s.n, 0);
	assert_true(isnan(rows->tables[0].rows[1].figures[ROWS_WALL_NS].ratio));
	assert_int_equal(rows->tables[1].rows[0].figures[ROWS_LOAD_RATE_PER_S].s.n, 1);
	assert_true(rows->tables[1].rows[0].figures[ROWS_LOAD_RATE_PER_S].s.mean == 0);
	/* A load that did no work has no ratio, not an infinite one. */
	assert_true(isnan(rows->tables[1].rows[0].figures[ROWS_LOAD_RATE_PER_S].ratio));
	assert_int_equal(rows->tables[1].rows[0].figures[ROWS_LOAD_CPU_PERCENT].s.n, 1);
	rows_free(rows);
}

static void an_entry_of_the_canary_alone_has_no_row(void **state)
{
	struct rows *rows = NULL;
	size_t all = plan->n_entries;

	(void)state;
	/* The canary's kernel is left out of every round. */
	for (size_t b = 1; b < plan->n_boots; b++) {
		if (strcmp(plan->boots[b].entry, plan->boots[0].entry) == 0) {
			free(plan->boots[b].entry);
			plan->boots[b].entry = strdup(plan->entries[all - 1].label);
		}
	}
	assert_int_equal(rows_collect(c, plan->entries[all - 1].label, &rows), 0);
	assert_int_equal(rows->tables[0].n_rows, all - 1);
	for (size_t i = 0; i < all - 1; i++)
		assert_string_not_equal(rows->tables[0].rows[i].entry->label, plan->boots[0].entry);
	rows_free(rows);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(text_shows_tables_and_what_went_wrong),
		TEST(json_has_a_row_for_each_figure),
		TEST(a_campaign_without_records_says_so),
		TEST(any_entry_can_be_the_baseline),
		TEST(long_labels_do_not_widen_the_table),
		TEST(figures_are_those_of_ok_trials_outside_the_canary),
		TEST(ratio_is_the_geometric_mean_of_paired_rounds),
		TEST(load_that_stood_still_in_a_round_has_no_ratio),
		TEST(figures_that_were_not_read_are_left_out),
		TEST(an_entry_of_the_canary_alone_has_no_row),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
