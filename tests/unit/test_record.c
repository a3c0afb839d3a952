/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Records: round trips, absent figures, cut and damaged input. */
#include "tests/unit/sample.h"

#include <errno.h>

#include "results/record.h"

static struct trial_record full_trial(void)
{
	struct trial_record r;

	trial_record_init(&r);
	r.boot = 7;
	r.round = 2;
	r.attempt = 1;
	r.trial = 3;
	strcpy(r.entry, "6.12.117");
	strcpy(r.workload, "kernel");
	strcpy(r.load, "mem");
	r.jobs = 4;
	r.wall_ns = INT64_C(251300000000);
	r.sync_ns = 1;
	r.user_ns = INT64_C(9007199254740991);
	r.sys_ns = 0;
	r.major_faults = 11;
	r.minor_faults = 12;
	r.voluntary_switches = 13;
	r.involuntary_switches = 14;
	r.read_bytes = 15;
	r.write_bytes = 16;
	r.swap_in_bytes = 17;
	r.swap_out_bytes = 18;
	r.peak_rss_bytes = 19;
	r.dirty_at_exit_bytes = 20;
	r.memtotal_bytes = INT64_C(1000000000000000);
	r.steal_ns = 22;
	r.psi = (struct record_psi){31, 32, 33, 34, 35};
	r.has_load_result = 1;
	r.load_result = (struct record_load){41, "pages", 42, 43, 44};
	r.cold = (struct record_cold){51, 52, 53, 54, 1};
	strcpy(r.arena_restore, "clean");
	strcpy(r.arena_fstype, "ext4");
	memset(r.product_sha256, 'e', 64);
	return r;
}

static void trial_goes_there_and_back(void **state)
{
	struct trial_record r = full_trial(), back;
	char *json = NULL;

	(void)state;
	assert_int_equal(trial_encode(&r, &json), 0);
	sample_is_golden("trial.json", json);
	memset(&back, 0x55, sizeof(back));
	assert_int_equal(trial_decode(json, strlen(json), &back), 0);
	assert_memory_equal(&r, &back, sizeof(r));
	free(json);
}

static void absent_figures_have_no_key(void **state)
{
	struct trial_record r, back;
	char *json = NULL;

	(void)state;
	trial_record_init(&r);
	r.attempt = r.trial = r.jobs = 1;
	r.wall_ns = 5;
	assert_int_equal(trial_encode(&r, &json), 0);
	assert_non_null(strstr(json, "\"wall_ns\":\t5"));
	assert_null(strstr(json, "-1"));
	assert_null(strstr(json, "user_ns"));
	assert_null(strstr(json, "psi"));
	assert_null(strstr(json, "cold"));
	assert_null(strstr(json, "load_result"));
	assert_null(strstr(json, "product_sha256"));
	assert_int_equal(trial_decode(json, strlen(json), &back), 0);
	assert_memory_equal(&r, &back, sizeof(r));
	assert_true(back.user_ns == ABSENT && back.psi.io_full_ns == ABSENT);
	assert_true(back.cold.ok == ABSENT && back.load_result.work == ABSENT);
	assert_false(back.has_load_result);
	free(json);
}

static void a_part_with_one_figure_keeps_it(void **state)
{
	struct trial_record r, back;
	char *json = NULL;

	(void)state;
	trial_record_init(&r);
	r.attempt = r.trial = r.jobs = 1;
	r.wall_ns = 5;
	r.cold.ok = 0;
	r.psi.memory_full_ns = 0;
	assert_int_equal(trial_encode(&r, &json), 0);
	assert_int_equal(trial_decode(json, strlen(json), &back), 0);
	assert_true(back.cold.ok == 0 && back.cold.dentries == ABSENT);
	assert_true(back.psi.memory_full_ns == 0 && back.psi.cpu_some_ns == ABSENT);
	free(json);
}

static void void_causes_make_a_trial_void(void **state)
{
	struct trial_record r = full_trial(), back;
	char *json = NULL, cause[RECORD_NAME];
	unsigned i;

	(void)state;
	trial_record_void(&r, "oom");
	trial_record_void(&r, "load-died");
	trial_record_void(&r, "oom");
	assert_int_equal(r.status, TRIAL_VOID);
	assert_int_equal(r.n_voids, 2);
	assert_int_equal(trial_encode(&r, &json), 0);
	assert_int_equal(trial_decode(json, strlen(json), &back), 0);
	assert_int_equal(back.status, TRIAL_VOID);
	assert_int_equal(back.n_voids, 2);
	assert_string_equal(back.voids[0], "oom");
	assert_string_equal(back.voids[1], "load-died");
	free(json);
	for (i = 0; i < 2 * RECORD_VOIDS_MAX; i++) {
		snprintf(cause, sizeof(cause), "cause-%u", i);
		trial_record_void(&r, cause);
	}
	assert_int_equal(r.n_voids, RECORD_VOIDS_MAX);
	r = full_trial();
	r.status = TRIAL_DISCARDED;
	trial_record_void(&r, "oom");
	assert_int_equal(r.status, TRIAL_VOID);
	r = full_trial();
	r.status = TRIAL_TIMEOUT;
	trial_record_void(&r, "oom");
	assert_int_equal(r.status, TRIAL_TIMEOUT);
	assert_int_equal(r.n_voids, 1);
}

static void every_status_goes_there_and_back(void **state)
{
	static const char *const words[] = {"ok", "void", "failed", "timeout", "discarded"};
	struct trial_record r, back;
	char *json = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		r = full_trial();
		if (i == TRIAL_VOID)
			trial_record_void(&r, "oom");
		r.status = (enum trial_status)i;
		assert_string_equal(trial_status_name(r.status), words[i]);
		assert_int_equal(trial_encode(&r, &json), 0);
		assert_int_equal(trial_decode(json, strlen(json), &back), 0);
		assert_int_equal(back.status, i);
		free(json);
	}
}

/* golden/trial.json with @from replaced by @to, decoded. */
static int decode_changed(const char *from, const char *to)
{
	char *json = sample_read("trial.json"), *at = strstr(json, from), *out;
	struct trial_record r;
	int err;

	if (!at)
		fail_msg("golden/trial.json has no %s", from);
	assert_true(asprintf(&out, "%.*s%s%s", (int)(at - json), json, to, at + strlen(from)) > 0);
	err = trial_decode(out, strlen(out), &r);
	free(out);
	free(json);
	return err;
}

static void decode_refuses_contradictions(void **state)
{
	struct trial_record r = full_trial();
	char *json = NULL;

	(void)state;
	assert_int_equal(decode_changed("\"ok\",", "\"ok\" ,"), 0);
	assert_int_equal(decode_changed("\"ok\",", "\"OK\","), -EBADMSG);
	assert_int_equal(decode_changed("\"ok\",", "\"void\","), -EBADMSG);
	assert_int_equal(decode_changed("\"void\":\t[]", "\"void\":\t[\"oom\"]"), -EBADMSG);
	assert_int_equal(decode_changed("\"void\":\t[]", "\"void\":\t{}"), -EBADMSG);
	assert_int_equal(decode_changed("\"wall_ns\":\t251300000000", "\"wall_ns\":\t0"), -EBADMSG);
	assert_int_equal(decode_changed("\"wall_ns\"", "\"no\""), -EBADMSG);
	assert_int_equal(decode_changed("\"sync_ns\":\t1", "\"sync_ns\":\t-1"), -EBADMSG);
	assert_int_equal(decode_changed("\"sync_ns\":\t1", "\"sync_ns\":\tnull"), -EBADMSG);
	assert_int_equal(decode_changed("9007199254740991", "9007199254740992"), -EBADMSG);
	assert_int_equal(decode_changed("9007199254740991", "0.5"), -EBADMSG);
	assert_int_equal(decode_changed("\"boot\":\t7", "\"boot\":\t10000"), -EBADMSG);
	assert_int_equal(decode_changed("\"attempt\":\t1", "\"attempt\":\t0"), -EBADMSG);
	assert_int_equal(decode_changed("\"trial\":\t3", "\"trial\":\t100"), -EBADMSG);
	assert_int_equal(decode_changed("\"pages\"", "\"pages-pages-pages\""), -EBADMSG);
	assert_int_equal(decode_changed("\"schema\":\t1", "\"schema\":\t2"), -EPROTONOSUPPORT);
	assert_int_equal(decode_changed("\"schema\":\t1", "\"other\":\t{}"), 0);
	r.wall_ns = ABSENT;
	assert_int_equal(trial_encode(&r, &json), -EINVAL);
	r = full_trial();
	r.status = TRIAL_VOID;
	assert_int_equal(trial_encode(&r, &json), -EINVAL);
	r = full_trial();
	r.sync_ns = -5;
	assert_int_equal(trial_encode(&r, &json), -EINVAL);
	r = full_trial();
	r.sync_ns = INT64_MAX;
	assert_int_equal(trial_encode(&r, &json), -ERANGE);
	assert_null(json);
}

static void decode_refuses_every_cut_and_survives_flips(void **state)
{
	char *json = sample_read("trial.json"), *copy;
	size_t whole = strlen(json) - 1, i;
	struct trial_record r;

	(void)state;
	for (i = 0; i < whole; i++) {
		copy = malloc(i ? i : 1);
		assert_non_null(copy);
		memcpy(copy, json, i);
		if (trial_decode(copy, i, &r) != -EBADMSG)
			fail_msg("cut to %zu bytes: not refused", i);
		free(copy);
	}
	for (i = 0; i < 8 * whole; i++) {
		json[i / 8] = (char)(json[i / 8] ^ (1 << i % 8));
		if (trial_decode(json, whole, &r) == 0) {
			assert_int_equal(trial_encode(&r, &copy), 0);
			free(copy);
		}
		json[i / 8] = (char)(json[i / 8] ^ (1 << i % 8));
	}
	free(json);
}

static void attempt_goes_there_and_back(void **state)
{
	struct attempt_record r = {.boot = 7, .attempt = 2, .sequence = 12}, back;
	char *json = NULL;

	(void)state;
	strcpy(r.token, "2026-11-30-a-0007-2-0badcafe");
	strcpy(r.entry, "6.12.117");
	strcpy(r.armed_utc, "2026-11-30T00:14:07Z");
	memset(r.plan_sha256, 'a', 64);
	assert_int_equal(attempt_encode(&r, &json), 0);
	assert_int_equal(attempt_decode(json, strlen(json), &back), 0);
	assert_memory_equal(&r, &back, sizeof(r));
	assert_int_equal(attempt_decode(json, strlen(json) - 2, &back), -EBADMSG);
	free(json);
	/* one of a store from before there was a number */
	r.sequence = 0;
	assert_int_equal(attempt_encode(&r, &json), 0);
	assert_null(strstr(json, "sequence"));
	assert_null(strstr(json, "bmc_s"));
	assert_int_equal(attempt_decode(json, strlen(json), &back), 0);
	assert_memory_equal(&r, &back, sizeof(r));
	free(json);
	/* one that was armed together with the BMC's watchdog, and one that cannot have been */
	r.bmc_s = 1200;
	assert_int_equal(attempt_encode(&r, &json), 0);
	assert_non_null(strstr(json, "\"bmc_s\":\t1200"));
	assert_int_equal(attempt_decode(json, strlen(json), &back), 0);
	assert_memory_equal(&r, &back, sizeof(r));
	free(json);
	r.bmc_s = PLAN_BMC_S_MAX + 1;
	assert_int_equal(attempt_encode(&r, &json), 0);
	assert_int_equal(attempt_decode(json, strlen(json), &back), -EBADMSG);
	free(json);
	r.bmc_s = 1200;
	assert_int_equal(attempt_decode("{}", 2, &back), -EBADMSG);
	assert_int_equal(attempt_decode("[]", 2, &back), -EBADMSG);
	assert_int_equal(attempt_decode("", 0, &back), -EBADMSG);
	assert_memory_equal(&r, &back, sizeof(r));
}

static void reached_keeps_strange_command_lines_readable(void **state)
{
	struct reached_record r = {.reached_monotonic_ns = 4200000000}, back;
	char *json = NULL;

	(void)state;
	strcpy(r.token, "t");
	strcpy(r.uname, "Linux 6.1.0-57-amd64 #1 SMP");
	strcpy(r.cmdline, "a=\"b c\"\tk\xc3\xa4se \xff\xc3 \\x");
	assert_int_equal(reached_encode(&r, &json), 0);
	assert_int_equal(reached_decode(json, strlen(json), &back), 0);
	assert_string_equal(back.token, "t");
	assert_string_equal(back.uname, r.uname);
	assert_string_equal(back.cmdline, "a=\"b c\"\tk\xc3\xa4se ?? \\x");
	assert_true(back.reached_monotonic_ns == INT64_C(4200000000));
	free(json);
}

static void done_and_failed_go_there_and_back(void **state)
{
	struct done_record done = {"token", 77}, done_back;
	struct failed_record failed = {"panic", "panic-1.txt"}, failed_back;
	char *json = NULL;

	(void)state;
	assert_int_equal(done_encode(&done, &json), 0);
	assert_int_equal(done_decode(json, strlen(json), &done_back), 0);
	assert_string_equal(done_back.token, "token");
	assert_int_equal(done_back.done_monotonic_ns, 77);
	free(json);
	assert_int_equal(failed_encode(&failed, &json), 0);
	assert_int_equal(failed_decode(json, strlen(json), &failed_back), 0);
	assert_string_equal(failed_back.reason, "panic");
	assert_string_equal(failed_back.evidence, "panic-1.txt");
	free(json);
	failed.evidence[0] = '\0';
	assert_int_equal(failed_encode(&failed, &json), 0);
	assert_null(strstr(json, "evidence"));
	assert_int_equal(failed_decode(json, strlen(json), &failed_back), 0);
	assert_string_equal(failed_back.evidence, "");
	free(json);
	assert_int_equal(failed_decode("{\"evidence\":\"x\"}", 16, &failed_back), -EBADMSG);
}

/* Names from a record lead nowhere, and its words steer no terminal. */
static void texts_are_names_and_words(void **state)
{
	static const char *const names[] = {"../panic-1.txt",
					    "/etc/shadow",
					    "a/b",
					    ".",
					    "..",
					    ".x",
					    "a\x1b[2J",
					    "a\n",
					    "\x7f",
					    "\xc2\x9b"
					    "2J"};
	struct failed_record failed = {"panic", ""};
	struct attempt_record attempt = {.boot = 1, .attempt = 1};
	struct done_record done = {"token\n", 1};
	struct reached_record reached = {.token = "\x1b"};
	struct trial_record trial = full_trial();
	char text[256], *json = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		strcpy(failed.evidence, names[i]);
		assert_int_equal(failed_encode(&failed, &json), -EINVAL);
	}
	snprintf(text, sizeof(text), "{\"reason\":\"panic\",\"evidence\":\"../x\"}");
	assert_int_equal(failed_decode(text, strlen(text), &failed), -EBADMSG);
	snprintf(text, sizeof(text), "{\"reason\":\"\\u001b[2J\"}");
	assert_int_equal(failed_decode(text, strlen(text), &failed), -EBADMSG);
	strcpy(attempt.entry, "\x1b[2J");
	assert_int_equal(attempt_encode(&attempt, &json), -EINVAL);
	assert_int_equal(done_encode(&done, &json), -EINVAL);
	assert_int_equal(reached_encode(&reached, &json), -EINVAL);
	strcpy(trial.load_result.unit, "\x1b");
	assert_int_equal(trial_encode(&trial, &json), -EINVAL);
	assert_int_equal(decode_changed("\"6.12.117\"", "\"\\u001b]0;x\""), -EBADMSG);
	assert_int_equal(decode_changed("\"clean\"", "\"\\u009b\""), -EBADMSG);
	assert_null(json);
}

static int decode_attempt(const char *json, size_t len)
{
	struct attempt_record r;

	return attempt_decode(json, len, &r);
}

static int decode_reached(const char *json, size_t len)
{
	struct reached_record r;

	return reached_decode(json, len, &r);
}

static int decode_done(const char *json, size_t len)
{
	struct done_record r;

	return done_decode(json, len, &r);
}

static int decode_failed(const char *json, size_t len)
{
	struct failed_record r;

	return failed_decode(json, len, &r);
}

static int decode_trial(const char *json, size_t len)
{
	struct trial_record r;

	return trial_decode(json, len, &r);
}

static void every_kind_has_limits(void **state)
{
	static int (*const kinds[])(const char *, size_t) = {
		decode_attempt, decode_reached, decode_done, decode_failed, decode_trial};
	static char big[RECORD_BYTES_MAX + 1];
	static const char deep[] = "{\"a\":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}";
	size_t i;

	(void)state;
	memset(big, ' ', sizeof(big));
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		assert_int_equal(kinds[i](big, sizeof(big)), -E2BIG);
		assert_int_equal(kinds[i](deep, sizeof(deep) - 1), -EBADMSG);
	}
}

/* The same document one level less deep is only unknown keys. */
static void depth_is_sixteen(void **state)
{
	static const char fifteen[] = "{\"token\":\"t\",\"done_monotonic_ns\":1,"
				      "\"a\":[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]}";
	static const char sixteen[] = "{\"token\":\"t\",\"done_monotonic_ns\":1,"
				      "\"a\":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}";

	(void)state;
	assert_int_equal(decode_done(fifteen, sizeof(fifteen) - 1), 0);
	assert_int_equal(decode_done(sixteen, sizeof(sixteen) - 1), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trial_goes_there_and_back),
		cmocka_unit_test(absent_figures_have_no_key),
		cmocka_unit_test(a_part_with_one_figure_keeps_it),
		cmocka_unit_test(void_causes_make_a_trial_void),
		cmocka_unit_test(every_status_goes_there_and_back),
		cmocka_unit_test(decode_refuses_contradictions),
		cmocka_unit_test(decode_refuses_every_cut_and_survives_flips),
		cmocka_unit_test(attempt_goes_there_and_back),
		cmocka_unit_test(reached_keeps_strange_command_lines_readable),
		cmocka_unit_test(done_and_failed_go_there_and_back),
		cmocka_unit_test(texts_are_names_and_words),
		cmocka_unit_test(every_kind_has_limits),
		cmocka_unit_test(depth_is_sixteen),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
