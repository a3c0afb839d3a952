/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plan minus store: what is open, finished and next, after every kind of boot. */
#include "tests/unit/sample.h"

#include <errno.h>

#include "results/campaign.h"

static char folder[SAMPLE_FOLDER];
static struct store *store;
static struct plan *plan;
static struct campaign *c;
static unsigned complaints;
static char complaint[256];

static int setup(void **state)
{
	(void)state;
	sample_folder(folder);
	assert_int_equal(store_open(folder, &store), 0);
	plan = sample_plan();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	campaign_free(c);
	c = NULL;
	plan_free(plan);
	store_close(store);
	sample_folder_remove(folder);
	return 0;
}

static void on_damage(const char *path, int err)
{
	assert_int_not_equal(err, 0);
	complaints++;
	snprintf(complaint, sizeof(complaint), "%s", path);
}

static void load(void)
{
	campaign_free(c);
	c = NULL;
	complaints = 0;
	assert_int_equal(campaign_load(store, plan, on_damage, &c), 0);
	assert_int_equal(c->damaged, complaints);
}

static void put(unsigned boot, const char *stem, unsigned attempt, char *json)
{
	char path[256];

	store_boot_path(path, plan->id, boot, stem, attempt, "json");
	assert_int_equal(store_replace(store, path, json, strlen(json)), 0);
	free(json);
}

static void token_of(char token[RECORD_TOKEN], unsigned boot, unsigned attempt)
{
	snprintf(token, RECORD_TOKEN, "%s-%04u-%u-0badcafe", plan->id, boot, attempt);
}

static void put_armed(unsigned boot, unsigned attempt)
{
	struct attempt_record r = {.boot = boot, .attempt = attempt};
	char *json;

	token_of(r.token, boot, attempt);
	strcpy(r.entry, plan->boots[boot].entry);
	assert_int_equal(attempt_encode(&r, &json), 0);
	put(boot, "attempt", attempt, json);
}

static void put_reached(unsigned boot, unsigned attempt)
{
	struct reached_record r = {.reached_monotonic_ns = 1};
	char *json;

	token_of(r.token, boot, attempt);
	assert_int_equal(reached_encode(&r, &json), 0);
	put(boot, "reached", attempt, json);
}

static void put_done(unsigned boot, unsigned attempt)
{
	struct done_record r = {.done_monotonic_ns = 2};
	char *json;

	token_of(r.token, boot, attempt);
	assert_int_equal(done_encode(&r, &json), 0);
	put(boot, "done", attempt, json);
}

static void put_failed(unsigned boot, unsigned attempt, const char *reason)
{
	struct failed_record r = {.evidence = ""};
	char *json;

	strcpy(r.reason, reason);
	assert_int_equal(failed_encode(&r, &json), 0);
	put(boot, "failed", attempt, json);
}

static struct trial_record trial_of(unsigned boot, unsigned attempt, unsigned trial)
{
	const struct plan_trial *t = &plan->boots[boot].trials[trial - 1];
	struct trial_record r;

	trial_record_init(&r);
	r.boot = boot;
	r.round = plan->boots[boot].round;
	r.attempt = attempt;
	r.trial = trial;
	strcpy(r.entry, plan->boots[boot].entry);
	strcpy(r.workload, t->workload);
	strcpy(r.load, t->load);
	r.jobs = t->jobs;
	r.wall_ns = 13000000000 + boot;
	return r;
}

static void put_record(const struct trial_record *r)
{
	char stem[16], *json;

	snprintf(stem, sizeof(stem), "trial-%02u", r->trial);
	assert_int_equal(trial_encode(r, &json), 0);
	put(r->boot, stem, r->attempt, json);
}

static void put_trial(unsigned boot, unsigned attempt, unsigned trial, enum trial_status status)
{
	struct trial_record r = trial_of(boot, attempt, trial);

	if (status == TRIAL_VOID)
		trial_record_void(&r, "oom");
	r.status = status;
	put_record(&r);
}

/* A whole attempt in which both trials end as @first and @second. */
static void put_boot(unsigned boot, unsigned attempt, enum trial_status first,
		     enum trial_status second)
{
	put_armed(boot, attempt);
	put_reached(boot, attempt);
	put_trial(boot, attempt, 1, first);
	put_trial(boot, attempt, 2, second);
	put_done(boot, attempt);
}

static void put_canary(void)
{
	put_boot(0, 1, TRIAL_DISCARDED, TRIAL_DISCARDED);
}

static void next_is(unsigned want_boot, unsigned want_attempt)
{
	unsigned boot = 99, attempt = 99;

	load();
	assert_int_equal(campaign_next(c, &boot, &attempt), CAMPAIGN_BOOT);
	assert_int_equal(boot, want_boot);
	assert_int_equal(attempt, want_attempt);
}

static void next_ends(enum campaign_next want)
{
	unsigned boot = 99, attempt = 99;

	load();
	assert_int_equal(campaign_next(c, &boot, &attempt), want);
	assert_int_equal(boot, 99);
	assert_int_equal(attempt, 99);
}

static void the_canary_comes_first_and_must_pass(void **state)
{
	(void)state;
	next_is(0, 1);
	put_armed(0, 1);
	put_reached(0, 1);
	put_trial(0, 1, 1, TRIAL_DISCARDED);
	/* Only the first load of the plan must succeed; but the boot must be done. */
	put_trial(0, 1, 2, TRIAL_VOID);
	next_is(0, 2);
	put_failed(0, 1, "no-answer");
	next_is(0, 2);
	put_done(0, 1);
	next_is(1, 1);
}

static void a_canary_without_its_first_load_is_tried_again_then_bad(void **state)
{
	(void)state;
	put_boot(0, 1, TRIAL_VOID, TRIAL_DISCARDED);
	next_is(0, 2);
	put_armed(0, 2);
	put_failed(0, 2, "not-reached");
	next_ends(CAMPAIGN_CANARY_BAD);
	/* An ok record is not what a canary leaves. */
	put_trial(0, 2, 1, TRIAL_OK);
	next_ends(CAMPAIGN_CANARY_BAD);
	put_trial(0, 2, 1, TRIAL_DISCARDED);
	next_is(1, 1);
}

static void boots_follow_the_plan_until_it_is_complete(void **state)
{
	unsigned boot;

	(void)state;
	put_canary();
	for (boot = 1; boot < 7; boot++) {
		next_is(boot, 1);
		put_boot(boot, 1, TRIAL_OK, TRIAL_OK);
	}
	next_ends(CAMPAIGN_COMPLETE);
}

static void an_unfinished_cell_is_tried_again_in_its_round(void **state)
{
	(void)state;
	put_canary();
	put_boot(1, 1, TRIAL_OK, TRIAL_VOID);
	next_is(1, 2);
	assert_int_equal(campaign_cell_finished(c, 1, 1), 1);
	assert_int_equal(campaign_cell_finished(c, 1, 2), 0);
	/* The second attempt runs only what is missing. */
	put_armed(1, 2);
	put_reached(1, 2);
	put_trial(1, 2, 2, TRIAL_TIMEOUT);
	load();
	assert_int_equal(campaign_cell_finished(c, 1, 2), 0);
	put_done(1, 2);
	next_is(2, 1);
	assert_int_equal(campaign_cell_finished(c, 1, 2), 1);
	assert_null(campaign_cell_record(c, 1, 2));
	assert_int_equal(campaign_cell_record(c, 1, 1)->wall_ns, 13000000001);
}

static void the_first_ok_record_of_a_cell_counts(void **state)
{
	struct trial_record r;

	(void)state;
	put_canary();
	put_boot(1, 1, TRIAL_VOID, TRIAL_OK);
	r = trial_of(1, 2, 1);
	r.wall_ns = 222;
	put_armed(1, 2);
	put_record(&r);
	r.trial = 2;
	strcpy(r.load, "none");
	r.wall_ns = 333;
	put_record(&r);
	load();
	assert_int_equal(campaign_cell_record(c, 1, 1)->wall_ns, 222);
	assert_int_equal(campaign_cell_record(c, 1, 1)->attempt, 2);
	assert_int_equal(campaign_cell_record(c, 1, 2)->attempt, 1);
	assert_int_equal(c->boots[1].n_records, 4);
	assert_null(campaign_cell_record(c, 1, 3));
	assert_null(campaign_cell_record(c, 1, 0));
	assert_null(campaign_cell_record(c, 7, 1));
	assert_int_equal(campaign_cell_finished(c, 7, 1), 0);
}

static void an_armed_attempt_is_open_until_done_or_failed(void **state)
{
	unsigned boot = 99, attempt = 99;

	(void)state;
	load();
	assert_int_equal(campaign_open_attempt(c, &boot, &attempt), 0);
	assert_int_equal(boot, 99);
	put_canary();
	put_armed(1, 1);
	load();
	assert_int_equal(campaign_open_attempt(c, &boot, &attempt), 1);
	assert_int_equal(boot, 1);
	assert_int_equal(attempt, 1);
	assert_false(c->boots[1].attempts[0].reached);
	/* Open counts as used, but finishes nothing. */
	next_is(1, 2);
	put_failed(1, 1, "panic");
	load();
	assert_int_equal(campaign_open_attempt(c, &boot, &attempt), 0);
	put_armed(1, 2);
	put_reached(1, 2);
	next_is(2, 1);
	assert_int_equal(campaign_cell_finished(c, 1, 1), 0);
	assert_int_equal(campaign_open_attempt(c, &boot, &attempt), 1);
	assert_int_equal(attempt, 2);
	assert_true(c->boots[1].attempts[1].reached);
	assert_string_equal(c->boots[1].attempts[1].armed.token, "2026-11-30-a-0001-2-0badcafe");
	assert_string_equal(c->boots[1].attempts[0].failure.reason, "panic");
	put_done(1, 2);
	load();
	assert_int_equal(campaign_cell_finished(c, 1, 1), 1);
	assert_int_equal(campaign_open_attempt(c, &boot, &attempt), 0);
	/* Of several the last one that would be armed. */
	put_armed(2, 1);
	put_armed(5, 1);
	put_armed(5, 2);
	put_armed(4, 1);
	load();
	assert_int_equal(campaign_open_attempt(c, &boot, &attempt), 1);
	assert_int_equal(boot, 5);
	assert_int_equal(attempt, 2);
}

static void an_entry_that_hangs_comes_last(void **state)
{
	(void)state;
	put_canary();
	/* 6.12.117 hangs in round 1; its boot of round 2 is 6. */
	put_armed(1, 1);
	put_failed(1, 1, "not-reached");
	next_is(1, 2);
	put_armed(1, 2);
	put_failed(1, 2, "not-reached");
	next_is(2, 1);
	put_boot(2, 1, TRIAL_OK, TRIAL_OK);
	put_boot(3, 1, TRIAL_OK, TRIAL_OK);
	next_is(4, 1);
	put_boot(4, 1, TRIAL_OK, TRIAL_OK);
	put_boot(5, 1, TRIAL_OK, TRIAL_OK);
	next_is(6, 1);
}

static void boots_of_a_hanging_entry_wait_for_later_rounds(void **state)
{
	(void)state;
	put_canary();
	put_boot(1, 1, TRIAL_OK, TRIAL_OK);
	/* The baseline hangs; its boot of round 2 is 4, before 5 and 6. */
	put_armed(2, 1);
	put_failed(2, 1, "not-reached");
	put_armed(2, 2);
	put_failed(2, 2, "not-reached");
	put_boot(3, 1, TRIAL_OK, TRIAL_OK);
	next_is(5, 1);
	put_boot(5, 1, TRIAL_OK, TRIAL_OK);
	next_is(6, 1);
	put_boot(6, 1, TRIAL_OK, TRIAL_OK);
	next_is(4, 1);
	put_boot(4, 1, TRIAL_OK, TRIAL_OK);
	next_ends(CAMPAIGN_COMPLETE);
}

static void a_panicking_entry_keeps_its_place(void **state)
{
	(void)state;
	put_canary();
	put_boot(1, 1, TRIAL_OK, TRIAL_OK);
	put_armed(2, 1);
	put_failed(2, 1, "panic");
	put_armed(2, 2);
	put_failed(2, 2, "not-reached");
	put_boot(3, 1, TRIAL_OK, TRIAL_OK);
	next_is(4, 1);
}

static void an_attempt_that_is_nobodys_fault_costs_no_try(void **state)
{
	static const char *const reasons[] = {"held", "root-dirty", "hibernated",
					      "bmc-not-stopped"};
	struct campaign_counts n;

	(void)state;
	/* The canary too, and as often as it comes. */
	for (unsigned attempt = 1; attempt <= ARRAY_SIZE(reasons); attempt++) {
		next_is(0, attempt);
		put_armed(0, attempt);
		put_failed(0, attempt, reasons[attempt - 1]);
	}
	next_is(0, 5);
	put_boot(0, 5, TRIAL_DISCARDED, TRIAL_DISCARDED);
	put_armed(1, 1);
	put_failed(1, 1, "held");
	put_armed(1, 2);
	put_failed(1, 2, "panic");
	next_is(1, 3);
	load();
	assert_int_equal(campaign_cell_finished(c, 1, 1), 0);
	campaign_count(c, &n);
	assert_int_equal(n.boots_failed, 0);
	put_armed(1, 3);
	put_failed(1, 3, "panic");
	next_is(2, 1);
	assert_int_equal(campaign_cell_finished(c, 1, 1), 1);
}

/* The sample's boots 1 and 6 are of one entry. */
static void watchdog_that_was_not_stopped_is_not_armed_again(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < plan->n_entries; i++)
		if (strcmp(plan->entries[i].label, "7.3-rc2") != 0)
			plan->entries[i].bmc_s = 1200;
	put_canary();
	put_armed(1, 1);
	put_failed(1, 1, "not-reached");
	load();
	assert_string_equal(plan->boots[1].entry, plan->boots[6].entry);
	assert_int_equal(campaign_bmc_s(c, 1), 1200);
	assert_int_equal(campaign_bmc_s(c, 6), 1200);
	for (i = 1; i < plan->n_boots; i++)
		if (!strcmp(plan->boots[i].entry, "7.3-rc2"))
			assert_int_equal(campaign_bmc_s(c, i), 0);
	put_armed(1, 2);
	put_failed(1, 2, "bmc-not-stopped");
	load();
	assert_int_equal(campaign_bmc_s(c, 1), 0);
	assert_int_equal(campaign_bmc_s(c, 6), 0);
	for (i = 2; i < 6; i++)
		assert_int_equal(campaign_bmc_s(c, i),
				 plan_find_entry(plan, plan->boots[i].entry)->bmc_s *
					 (strcmp(plan->boots[i].entry, plan->boots[1].entry) != 0));
}

static void attempts_in_all_are_limited(void **state)
{
	(void)state;
	plan->boots_max = 3;
	put_canary();
	put_armed(1, 1);
	put_failed(1, 1, "panic");
	next_is(1, 2);
	put_armed(1, 2);
	put_done(1, 2);
	next_ends(CAMPAIGN_LIMIT);
	/* Where nothing is left, nothing is over the limit. */
	plan->n_boots = 2;
	next_ends(CAMPAIGN_COMPLETE);
	campaign_free(c);
	c = NULL;
	plan->n_boots = 7;
}

static void damaged_files_are_skipped_and_named(void **state)
{
	struct trial_record r;

	(void)state;
	put_canary();
	put_boot(1, 1, TRIAL_OK, TRIAL_OK);
	put(1, "trial-01", 1, strdup("{\"schema\":1,\"boot\":1"));
	load();
	assert_int_equal(complaints, 1);
	assert_string_equal(complaint, "campaigns/2026-11-30-a/boots/0001/trial-01-1.json");
	assert_null(campaign_cell_record(c, 1, 1));
	assert_non_null(campaign_cell_record(c, 1, 2));
	next_is(1, 2);
	/* A record that belongs elsewhere. */
	r = trial_of(2, 1, 1);
	r.trial = 2;
	put_record(&r);
	r = trial_of(2, 1, 1);
	strcpy(r.entry, "7.3-rc2");
	put_record(&r);
	load();
	assert_int_equal(complaints, 3);
	assert_null(campaign_cell_record(c, 2, 1));
	assert_null(campaign_cell_record(c, 2, 2));
	r = trial_of(2, 1, 1);
	r.jobs++;
	put_record(&r);
	r = trial_of(2, 1, 2);
	r.round++;
	put_record(&r);
	load();
	assert_int_equal(complaints, 3);
	assert_null(campaign_cell_record(c, 2, 1));
	assert_null(campaign_cell_record(c, 2, 2));
}

static void a_damaged_attempt_is_used_and_open(void **state)
{
	unsigned boot, attempt;

	(void)state;
	put_canary();
	put(1, "attempt", 1, strdup(""));
	load();
	assert_int_equal(complaints, 1);
	assert_int_equal(campaign_open_attempt(c, &boot, &attempt), 1);
	assert_int_equal(boot, 1);
	assert_string_equal(c->boots[1].attempts[0].armed.token, "");
	next_is(1, 2);
	put_failed(1, 1, "no-answer");
	load();
	assert_int_equal(campaign_open_attempt(c, &boot, &attempt), 0);
}

static void a_wrong_token_is_not_believed(void **state)
{
	struct done_record done = {"someone-else", 5};
	char *json;

	(void)state;
	put_canary();
	put_armed(1, 1);
	assert_int_equal(done_encode(&done, &json), 0);
	put(1, "done", 1, json);
	load();
	assert_int_equal(complaints, 1);
	assert_false(c->boots[1].attempts[0].done);
}

static void other_files_are_none_of_its_business(void **state)
{
	static const char *const names[] = {
		"environment-1.json", "dmesg-1.txt",	   "attempt-01.json",
		"attempt-0.json",     "attempt-100.json",  "attempt-1.jsonx",
		"trial-1-1.json",     "trial-001-1.json",  "attempt-.json",
		"attempt--1.json",    "rearmed-01-1.json", "attempt-4294967297.json",
	};
	char path[256];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "campaigns/%s/boots/0001/%s", plan->id, names[i]);
		assert_int_equal(store_put(store, path, "x", 1), 0);
	}
	put_canary();
	next_is(1, 1);
	assert_int_equal(complaints, 0);
	assert_int_equal(c->boots[1].n_attempts, 0);
}

static void home_comes_after_the_canary_and_between_rounds(void **state)
{
	(void)state;
	/* the sample's rounds are boots 1 to 3 and 4 to 6 */
	assert_int_equal(campaign_comes_home(plan, 0, 0), 1);
	assert_int_equal(campaign_comes_home(plan, 0, 1), 1);
	assert_int_equal(campaign_comes_home(plan, 3, 4), 0);
	plan->home_every_rounds = 1;
	assert_int_equal(campaign_comes_home(plan, 3, 4), 1);
	assert_int_equal(campaign_comes_home(plan, 1, 2), 0);
	assert_int_equal(campaign_comes_home(plan, 2, 2), 0);
	/* a boot that was put off to the end, and what follows it */
	assert_int_equal(campaign_comes_home(plan, 6, 2), 0);
	for (unsigned boot = 1; boot < 7; boot++)
		plan->boots[boot].round = boot;
	plan->home_every_rounds = 2;
	assert_int_equal(campaign_comes_home(plan, 1, 2), 0);
	assert_int_equal(campaign_comes_home(plan, 2, 3), 1);
	assert_int_equal(campaign_comes_home(plan, 3, 4), 0);
	assert_int_equal(campaign_comes_home(plan, 4, 5), 1);
	/* rounds that were given up are passed over, the turn is not */
	assert_int_equal(campaign_comes_home(plan, 1, 4), 1);
	plan->home_every_rounds = 6;
	assert_int_equal(campaign_comes_home(plan, 1, 6), 0);
}

static void counts_leave_the_canary_out(void **state)
{
	struct campaign_counts n;

	(void)state;
	put_boot(0, 1, TRIAL_VOID, TRIAL_FAILED);
	put_boot(0, 2, TRIAL_DISCARDED, TRIAL_DISCARDED);
	put_boot(1, 1, TRIAL_OK, TRIAL_OK);
	put_boot(2, 1, TRIAL_OK, TRIAL_VOID);
	put_boot(2, 2, TRIAL_OK, TRIAL_FAILED);
	put_armed(3, 1);
	put_failed(3, 1, "panic");
	put_armed(3, 2);
	put_trial(3, 2, 1, TRIAL_TIMEOUT);
	put_failed(3, 2, "no-answer");
	put_armed(4, 1);
	put_trial(4, 1, 1, TRIAL_OK);
	load();
	campaign_count(c, &n);
	assert_int_equal(n.boots_planned, 6);
	assert_int_equal(n.boots_finished, 3);
	assert_int_equal(n.boots_failed, 1);
	assert_int_equal(n.attempts, 8);
	assert_int_equal(n.trials_planned, 12);
	assert_int_equal(n.trials_ok, 4);
	assert_int_equal(n.trials_finished, 7);
	assert_int_equal(n.records_void, 1);
	assert_int_equal(n.records_failed, 2);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_canary_comes_first_and_must_pass),
		TEST(a_canary_without_its_first_load_is_tried_again_then_bad),
		TEST(boots_follow_the_plan_until_it_is_complete),
		TEST(an_unfinished_cell_is_tried_again_in_its_round),
		TEST(the_first_ok_record_of_a_cell_counts),
		TEST(an_armed_attempt_is_open_until_done_or_failed),
		TEST(an_entry_that_hangs_comes_last),
		TEST(boots_of_a_hanging_entry_wait_for_later_rounds),
		TEST(a_panicking_entry_keeps_its_place),
		TEST(an_attempt_that_is_nobodys_fault_costs_no_try),
		TEST(watchdog_that_was_not_stopped_is_not_armed_again),
		TEST(attempts_in_all_are_limited),
		TEST(damaged_files_are_skipped_and_named),
		TEST(a_damaged_attempt_is_used_and_open),
		TEST(a_wrong_token_is_not_believed),
		TEST(other_files_are_none_of_its_business),
		TEST(home_comes_after_the_canary_and_between_rounds),
		TEST(counts_leave_the_canary_out),
	};

	return cmocka_run_group_tests_name("campaign", tests, NULL, NULL);
}
