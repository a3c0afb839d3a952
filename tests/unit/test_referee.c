/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the referee decides, on campaigns made in memory: no store, no clock, no reboot. */
#include "runner/referee.h"
#include "tests/unit/sample.h"

#define HOME "6.1.0-57-amd64" /* default_uname of the sample */

struct night {
	struct plan *plan;
	struct campaign c;
	struct oneshot_state state;
	unsigned n_armed;
};

static int setup(void **state)
{
	struct night *n = calloc(1, sizeof(*n));

	assert_non_null(n);
	n->plan = sample_plan();
	n->c.plan = n->plan;
	n->c.boots = calloc(n->plan->n_boots, sizeof(*n->c.boots));
	assert_non_null(n->c.boots);
	*state = n;
	return 0;
}

static int teardown(void **state)
{
	struct night *n = *state;

	for (size_t i = 0; i < n->plan->n_boots; i++) {
		free(n->c.boots[i].attempts);
		free(n->c.boots[i].records);
	}
	free(n->c.boots);
	plan_free(n->plan);
	free(n);
	return 0;
}

/* Writes the next attempt at @boot down, armed @minute after midnight, and into the one-shot key.
 */
static struct attempt_state *arm(struct night *n, unsigned boot, unsigned minute)
{
	struct boot_state *b = &n->c.boots[boot];
	struct attempt_state *a;

	b->attempts = realloc(b->attempts, (b->n_attempts + 1) * sizeof(*a));
	assert_non_null(b->attempts);
	a = &b->attempts[b->n_attempts++];
	memset(a, 0, sizeof(*a));
	a->exists = 1;
	a->armed.boot = boot;
	a->armed.attempt = b->n_attempts;
	a->armed.sequence = ++n->n_armed;
	snprintf(a->armed.token, sizeof(a->armed.token), "token-%u-%u", boot, b->n_attempts);
	snprintf(a->armed.armed_utc, sizeof(a->armed.armed_utc), "2026-12-01T%02u:%02u:00Z",
		 minute / 60, minute % 60);
	snprintf(n->state.token, sizeof(n->state.token), "%s", a->armed.token);
	return a;
}

/* GRUB boots what is armed. */
static void take(struct night *n)
{
	snprintf(n->state.taken, sizeof(n->state.taken), "%s", n->state.token);
}

static void add_records(struct night *n, unsigned boot, enum trial_status status)
{
	const struct plan_boot *plan = &n->plan->boots[boot];
	struct boot_state *b = &n->c.boots[boot];

	b->records = calloc(plan->n_trials, sizeof(*b->records));
	assert_non_null(b->records);
	for (; b->n_records < plan->n_trials; b->n_records++) {
		struct trial_record *r = &b->records[b->n_records];

		trial_record_init(r);
		r->boot = boot;
		r->attempt = 1;
		r->trial = plan->trials[b->n_records].trial;
		r->status = status;
		snprintf(r->load, sizeof(r->load), "%s", plan->trials[b->n_records].load);
	}
}

/* A boot as it should be. */
static void finish(struct night *n, unsigned boot, unsigned minute)
{
	struct attempt_state *a = arm(n, boot, minute);

	take(n);
	a->reached = a->done = 1;
	add_records(n, boot, boot == 0 ? TRIAL_DISCARDED : TRIAL_OK);
}

static void book(struct attempt_state *a, const char *reason)
{
	a->failed = 1;
	snprintf(a->failure.reason, sizeof(a->failure.reason), "%s", reason);
}

static int64_t at(unsigned minute)
{
	int64_t midnight_s;

	assert_int_equal(referee_utc("2026-12-01T00:00:00Z", &midnight_s), 0);
	return midnight_s + 60 * (int64_t)minute;
}

static struct referee_finding judge(struct night *n, int panic_text)
{
	return referee_judge(&n->c, &n->state, "", panic_text);
}

/* The step at @minute, nothing open; *boot and *attempt as they come. */
static enum referee_step next(struct night *n, unsigned minute, unsigned *boot, unsigned *attempt)
{
	struct referee_finding none = {.verdict = REFEREE_NONE};
	struct referee_now now = {.uname = HOME, .now_s = at(minute)};

	return referee_next(&n->c, &none, &now, boot, attempt);
}

static void assert_armed(struct night *n, unsigned minute, unsigned boot, unsigned attempt)
{
	unsigned b = 99, a = 99;

	assert_int_equal(next(n, minute, &b, &a), REFEREE_ARM);
	assert_int_equal(b, boot);
	assert_int_equal(a, attempt);
}

/* Why it ended contains @words; for "" it is empty. */
static void assert_explained_by(struct night *n, enum referee_step step,
				const struct referee_finding *f, const char *uname,
				const char *words)
{
	char *text = NULL;

	assert_int_equal(referee_explain(&n->c, step, f, uname, &text), 0);
	if (!*words)
		assert_string_equal(text, "");
	else if (!strstr(text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, text);
	free(text);
}

static void assert_explained(struct night *n, enum referee_step step, const char *uname,
			     const char *words)
{
	struct referee_finding none = {.verdict = REFEREE_NONE};

	assert_explained_by(n, step, &none, uname, words);
}

static void case_28_power_cut_before_the_key_blames_nobody(void **state)
{
	struct night *n = *state;
	struct referee_now now = {.uname = HOME, .now_s = at(500)};
	struct referee_finding f;
	unsigned boot = 99, attempt = 99;

	finish(n, 0, 1);
	finish(n, 1, 10);
	arm(n, 2, 20);
	/* attempt-1.json of boot 2 is there, the key still names boot 1's token, which was taken */
	snprintf(n->state.token, sizeof(n->state.token), "token-1-1");
	f = judge(n, 0);
	assert_int_equal(f.verdict, REFEREE_REARM);
	assert_int_equal(f.boot, 2);
	assert_int_equal(f.attempt, 1);
	assert_null(f.reason);
	/* however long the power was away */
	assert_int_equal(referee_next(&n->c, &f, &now, &boot, &attempt), REFEREE_ARM);
	assert_int_equal(boot, 2);
	assert_int_equal(attempt, 1);
}

static void case_28_power_cut_before_grub_blames_nobody(void **state)
{
	struct night *n = *state;
	struct referee_finding f;

	finish(n, 0, 1);
	arm(n, 1, 10);
	f = judge(n, 0);
	assert_int_equal(f.verdict, REFEREE_REARM);
	assert_int_equal(f.boot, 1);
	assert_int_equal(f.attempt, 1);
}

static void case_28_lost_key_of_a_reached_boot_is_no_power_cut(void **state)
{
	struct night *n = *state;

	finish(n, 0, 1);
	arm(n, 1, 10)->reached = 1;
	n->state = (struct oneshot_state){0};
	assert_int_equal(judge(n, 0).verdict, REFEREE_BOOK);
	assert_string_equal(judge(n, 0).reason, "no-answer");
}

static void case_57_panic_text_makes_it_a_panic(void **state)
{
	struct night *n = *state;
	struct attempt_state *a;

	finish(n, 0, 1);
	a = arm(n, 1, 10);
	take(n);
	/* before the worker … */
	assert_int_equal(judge(n, 1).verdict, REFEREE_BOOK);
	assert_string_equal(judge(n, 1).reason, "panic");
	/* … and after it was reached */
	a->reached = 1;
	assert_string_equal(judge(n, 1).reason, "panic");
	assert_string_equal(judge(n, 0).reason, "no-answer");
}

static void case_57_panic_text_does_not_blame_what_was_not_taken(void **state)
{
	struct night *n = *state;

	finish(n, 0, 1);
	arm(n, 1, 10);
	assert_int_equal(judge(n, 1).verdict, REFEREE_REARM);
}

static void case_59_not_reached_is_tried_again_then_put_last(void **state)
{
	struct night *n = *state;
	struct attempt_state *a;

	finish(n, 0, 1);
	a = arm(n, 1, 10);
	take(n);
	assert_int_equal(judge(n, 0).verdict, REFEREE_BOOK);
	assert_string_equal(judge(n, 0).reason, "not-reached");
	book(a, "not-reached");
	assert_armed(n, 12, 1, 2);
	book(arm(n, 1, 12), "not-reached");
	/* boot 6 is the other one of this entry: it comes last */
	assert_armed(n, 14, 2, 1);
	for (unsigned boot = 2; boot <= 5; boot++)
		finish(n, boot, 10 + 10 * boot);
	assert_armed(n, 70, 6, 1);
}

static void case_61_too_many_boots_end_it(void **state)
{
	struct night *n = *state;
	unsigned boot, attempt;

	finish(n, 0, 1);
	n->plan->boots_max = 3;
	book(arm(n, 1, 10), "no-answer");
	assert_armed(n, 12, 1, 2);
	book(arm(n, 1, 12), "no-answer");
	assert_int_equal(next(n, 14, &boot, &attempt), REFEREE_LIMIT);
	assert_explained(n, REFEREE_LIMIT, HOME, "used up the 3 boots it was allowed (boots_max)");
}

static void case_72_canary_must_come_home_to_the_default_kernel(void **state)
{
	struct night *n = *state;
	struct referee_finding none = {.verdict = REFEREE_NONE};
	struct referee_now now = {.uname = "6.12.117", .now_s = at(10)};
	unsigned boot, attempt;

	finish(n, 0, 1);
	assert_int_equal(judge(n, 0).verdict, REFEREE_NONE);
	assert_armed(n, 10, 1, 1);
	assert_int_equal(referee_next(&n->c, &none, &now, &boot, &attempt), REFEREE_CANARY_BAD);
	assert_explained(n, REFEREE_CANARY_BAD, now.uname,
			 "it came home to 6.12.117, not to " HOME);
	/* once another boot was armed it has come home, whatever runs today */
	book(arm(n, 1, 10), "no-answer");
	assert_int_equal(referee_next(&n->c, &none, &now, &boot, &attempt), REFEREE_ARM);
}

static void case_72_canary_without_result_never_lets_the_run_start(void **state)
{
	struct night *n = *state;
	unsigned boot, attempt;

	book(arm(n, 0, 1), "no-answer");
	assert_armed(n, 5, 0, 2);
	book(arm(n, 0, 5), "no-answer");
	assert_int_equal(next(n, 9, &boot, &attempt), REFEREE_CANARY_BAD);
}

/* Each way in which the canary can fail, twice: the run never starts, and says why. */
static void case_72_canary_fails(struct night *n, const char *reason)
{
	char words[128];
	unsigned boot = 99, attempt = 99;

	book(arm(n, 0, 1), reason);
	take(n);
	assert_armed(n, 5, 0, 2);
	book(arm(n, 0, 5), reason);
	take(n);
	assert_int_equal(next(n, 9, &boot, &attempt), REFEREE_CANARY_BAD);
	assert_int_equal(boot, 99);
	snprintf(words, sizeof(words), "did not go as it should: attempt 1: %s; attempt 2: %s",
		 reason, reason);
	assert_explained(n, REFEREE_CANARY_BAD, HOME, words);
}

static void case_72_canary_not_reached(void **state)
{
	case_72_canary_fails(*state, "not-reached");
}

static void case_72_canary_panicked(void **state)
{
	case_72_canary_fails(*state, "panic");
}

static void case_72_canary_timed_out(void **state)
{
	case_72_canary_fails(*state, "timeout");
}

static void case_72_canary_booted_the_normal_system(void **state)
{
	case_72_canary_fails(*state, "init-not-reached");
}

/* Done, but its trial is not what it should be. */
static void case_72_canary_done_with(struct night *n, enum trial_status status, const char *words)
{
	unsigned boot = 99, attempt = 99;
	struct attempt_state *a;

	finish(n, 0, 1);
	for (size_t i = 0; i < n->c.boots[0].n_records; i++) {
		n->c.boots[0].records[i].status = TRIAL_DISCARDED;
		if (status == TRIAL_VOID)
			trial_record_void(&n->c.boots[0].records[i], "not-cold");
		n->c.boots[0].records[i].status = status;
	}
	assert_armed(n, 5, 0, 2);
	a = arm(n, 0, 5);
	a->reached = a->done = 1;
	assert_int_equal(next(n, 9, &boot, &attempt), REFEREE_CANARY_BAD);
	assert_explained(n, REFEREE_CANARY_BAD, HOME, words);
}

static void case_72_canarys_trial_was_void(void **state)
{
	case_72_canary_done_with(*state, TRIAL_VOID, "its trial was void (not-cold)");
}

static void case_72_canarys_trial_failed(void **state)
{
	case_72_canary_done_with(*state, TRIAL_FAILED, "attempt 1: its trial failed");
}

static void case_72_canarys_trial_timed_out(void **state)
{
	case_72_canary_done_with(*state, TRIAL_TIMEOUT, "its trial took too long");
}

static void case_72_canarys_records_are_damaged(void **state)
{
	struct night *n = *state;
	unsigned boot, attempt;
	struct attempt_state *a;

	/* what cannot be read is not there */
	a = arm(n, 0, 1);
	a->reached = a->done = 1;
	assert_armed(n, 5, 0, 2);
	a = arm(n, 0, 5);
	memset(&a->armed, 0, sizeof(a->armed));
	assert_int_equal(judge(n, 0).verdict, REFEREE_BOOK);
	assert_string_equal(judge(n, 0).reason, "damaged");
	book(a, "damaged");
	assert_int_equal(next(n, 9, &boot, &attempt), REFEREE_CANARY_BAD);
	assert_explained(n, REFEREE_CANARY_BAD, HOME,
			 "attempt 1: left no record of its trial that can be read; attempt 2: "
			 "damaged");
}

static void case_72_boot_after_the_canary_still_carries_its_token(void **state)
{
	struct night *n = *state;
	struct referee_now now = {.uname = HOME, .now_s = at(10)};
	struct referee_finding f;
	unsigned boot, attempt;

	finish(n, 0, 1);
	f = referee_judge(&n->c, &n->state, "token-0-1", 0);
	assert_int_equal(f.verdict, REFEREE_STUCK);
	assert_null(f.reason);
	assert_int_equal(referee_next(&n->c, &f, &now, &boot, &attempt), REFEREE_CANARY_BAD);
	assert_explained_by(n, REFEREE_CANARY_BAD, &f, HOME, "carries its token again");
	/* later in the night it is one of many, and no reason to end it */
	book(arm(n, 1, 10), "no-answer");
	assert_int_equal(referee_judge(&n->c, &n->state, "token-0-1", 0).verdict, REFEREE_STAY);
}

static void case_48_init_not_reached_goes_home_once(void **state)
{
	struct night *n = *state;
	struct attempt_state *a;
	struct referee_finding f;

	finish(n, 0, 1);
	a = arm(n, 1, 10);
	take(n);
	f = referee_judge(&n->c, &n->state, "token-1-1", 0);
	assert_int_equal(f.verdict, REFEREE_GO_HOME);
	assert_int_equal(f.boot, 1);
	assert_int_equal(f.attempt, 1);
	assert_string_equal(f.reason, "init-not-reached");
	/* booked: a second run in the same boot must not reboot again and again */
	book(a, f.reason);
	f = referee_judge(&n->c, &n->state, "token-1-1", 0);
	assert_int_equal(f.verdict, REFEREE_STAY);
	assert_null(f.reason);
}

static void case_24_boot_with_an_unknown_token_is_left_alone(void **state)
{
	struct night *n = *state;

	finish(n, 0, 1);
	finish(n, 1, 10);
	arm(n, 2, 20);
	assert_int_equal(referee_judge(&n->c, &n->state, "token-9-9", 0).verdict, REFEREE_STAY);
	/* that of a boot which is done, too */
	assert_int_equal(referee_judge(&n->c, &n->state, "token-1-1", 0).verdict, REFEREE_STAY);
}

static void damaged_attempt_file_is_booked_not_armed_again(void **state)
{
	struct night *n = *state;
	struct attempt_state *a;

	finish(n, 0, 1);
	a = arm(n, 1, 10);
	memset(&a->armed, 0, sizeof(a->armed));
	assert_int_equal(judge(n, 0).verdict, REFEREE_BOOK);
	assert_string_equal(judge(n, 0).reason, "damaged");
}

static void person_at_the_button_is_asked(void **state)
{
	struct night *n = *state;
	/* the sample's boot may take 15 min and its 2 trials 5 min each; then 10 min of grace */
	const unsigned last = 10 + 15 + 2 * 5 + 10;
	struct referee_finding none = {.verdict = REFEREE_NONE};
	struct referee_now now = {.uname = HOME, .now_s = at(last + 1)};
	unsigned boot, attempt;

	finish(n, 0, 1);
	book(arm(n, 1, 10), "not-reached");
	assert_armed(n, last, 1, 2);
	assert_int_equal(next(n, last + 1, &boot, &attempt), REFEREE_WAIT);
	/* … but a BMC may have come before */
	n->c.boots[1].attempts[0].armed.bmc_s = 1200;
	assert_armed(n, last + 20, 1, 2);
	assert_int_equal(next(n, last + 21, &boot, &attempt), REFEREE_WAIT);
	n->c.boots[1].attempts[0].armed.bmc_s = 0;
	/* it stays so until the person says resume … */
	assert_int_equal(next(n, last + 1000, &boot, &attempt), REFEREE_WAIT);
	now.asked = 1;
	assert_int_equal(referee_next(&n->c, &none, &now, &boot, &attempt), REFEREE_ARM);
	/* … and counts from when it was armed last */
	now.asked = 0;
	now.rearmed_s = at(last);
	assert_int_equal(referee_next(&n->c, &none, &now, &boot, &attempt), REFEREE_ARM);
}

static void boot_that_a_person_held_waits_for_resume(void **state)
{
	struct night *n = *state;
	struct referee_finding none = {.verdict = REFEREE_NONE};
	struct referee_now now = {.uname = HOME, .now_s = at(12)};
	unsigned boot, attempt;

	finish(n, 0, 1);
	book(arm(n, 1, 10), "held");
	assert_int_equal(next(n, 11, &boot, &attempt), REFEREE_HELD);
	assert_int_equal(next(n, 5000, &boot, &attempt), REFEREE_HELD);
	/* whoever says resume loses no attempt */
	now.asked = 1;
	assert_int_equal(referee_next(&n->c, &none, &now, &boot, &attempt), REFEREE_ARM);
	assert_int_equal(boot, 1);
	assert_int_equal(attempt, 2);
	book(arm(n, 1, 12), "no-answer");
	assert_armed(n, 14, 1, 3);
}

/* Wall clocks jump: back, to 1970 and from there. */
static void clocks_that_cannot_be_believed_call_nobody(void **state)
{
	struct night *n = *state;
	struct referee_finding none = {.verdict = REFEREE_NONE};
	struct referee_now now = {.uname = HOME, .now_s = at(1000)};
	struct attempt_state *a;
	unsigned boot, attempt;

	finish(n, 0, 1);
	a = arm(n, 1, 10);
	book(a, "not-reached");
	assert_int_equal(referee_next(&n->c, &none, &now, &boot, &attempt), REFEREE_WAIT);
	/* armed by a kernel without a clock */
	strcpy(a->armed.armed_utc, "1970-01-01T00:02:00Z");
	assert_int_equal(referee_next(&n->c, &none, &now, &boot, &attempt), REFEREE_ARM);
	/* the referee's own has gone back */
	strcpy(a->armed.armed_utc, "2026-12-01T00:10:00Z");
	now.now_s = 120;
	assert_int_equal(referee_next(&n->c, &none, &now, &boot, &attempt), REFEREE_ARM);
	now.now_s = at(5);
	assert_int_equal(referee_next(&n->c, &none, &now, &boot, &attempt), REFEREE_ARM);
	/* no time at all */
	strcpy(a->armed.armed_utc, "soon");
	now.now_s = at(1000);
	assert_int_equal(referee_next(&n->c, &none, &now, &boot, &attempt), REFEREE_ARM);
}

static void kernel_that_came_home_by_itself_needs_nobody(void **state)
{
	struct night *n = *state;
	struct attempt_state *a;

	finish(n, 0, 1);
	a = arm(n, 1, 10);
	a->reached = 1;
	book(a, "no-answer");
	assert_armed(n, 1000, 1, 2);
}

static void everything_done_is_complete(void **state)
{
	struct night *n = *state;
	unsigned boot, attempt;

	for (unsigned b = 0; b < n->plan->n_boots; b++)
		finish(n, b, 1 + 10 * b);
	assert_int_equal(judge(n, 0).verdict, REFEREE_NONE);
	assert_int_equal(next(n, 100, &boot, &attempt), REFEREE_COMPLETE);
	assert_explained(n, REFEREE_COMPLETE, HOME, "");
}

static void last_armed_goes_by_number_not_by_clock(void **state)
{
	struct night *n = *state;
	unsigned boot, attempt;
	int64_t armed_s;

	assert_int_equal(referee_last_armed(&n->c, &boot, &attempt, &armed_s), 0);
	finish(n, 0, 1);
	book(arm(n, 6, 30), "no-answer");
	/* the clock has gone back by then */
	book(arm(n, 2, 20), "no-answer");
	/* booked without having been armed */
	book(arm(n, 3, 40), "changed");
	assert_int_equal(referee_last_armed(&n->c, &boot, &attempt, &armed_s), 1);
	assert_int_equal(boot, 2);
	assert_int_equal(attempt, 1);
	assert_int_equal(armed_s, at(20));
}

static void utc_is_read_strictly(void **state)
{
	int64_t s = -1;

	(void)state;
	assert_int_equal(referee_utc("1970-01-02T00:00:01Z", &s), 0);
	assert_int_equal(s, 86401);
	assert_true(referee_utc("", &s) < 0);
	assert_true(referee_utc("2026-12-01T00:00:00", &s) < 0);
	assert_true(referee_utc("2026-12-01T00:00:00Zx", &s) < 0);
	assert_int_equal(s, 86401);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(case_28_power_cut_before_the_key_blames_nobody),
		CASE(case_28_power_cut_before_grub_blames_nobody),
		CASE(case_28_lost_key_of_a_reached_boot_is_no_power_cut),
		CASE(case_57_panic_text_makes_it_a_panic),
		CASE(case_57_panic_text_does_not_blame_what_was_not_taken),
		CASE(case_59_not_reached_is_tried_again_then_put_last),
		CASE(case_61_too_many_boots_end_it),
		CASE(case_72_canary_must_come_home_to_the_default_kernel),
		CASE(case_72_canary_without_result_never_lets_the_run_start),
		CASE(case_72_canary_not_reached),
		CASE(case_72_canary_panicked),
		CASE(case_72_canary_timed_out),
		CASE(case_72_canary_booted_the_normal_system),
		CASE(case_72_canarys_trial_was_void),
		CASE(case_72_canarys_trial_failed),
		CASE(case_72_canarys_trial_timed_out),
		CASE(case_72_canarys_records_are_damaged),
		CASE(case_72_boot_after_the_canary_still_carries_its_token),
		CASE(case_48_init_not_reached_goes_home_once),
		CASE(case_24_boot_with_an_unknown_token_is_left_alone),
		CASE(damaged_attempt_file_is_booked_not_armed_again),
		CASE(person_at_the_button_is_asked),
		CASE(boot_that_a_person_held_waits_for_resume),
		CASE(clocks_that_cannot_be_believed_call_nobody),
		CASE(kernel_that_came_home_by_itself_needs_nobody),
		CASE(everything_done_is_complete),
		CASE(last_armed_goes_by_number_not_by_clock),
		CASE(utc_is_read_strictly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
