/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan.json: round trip, every rule, cut and damaged input. */
#include "tests/unit/sample.h"

#include <errno.h>

/* The sample with its first @from replaced by @to; free(). */
static char *changed(const char *from, const char *to)
{
	char *json = sample_read("plan.json"), *at = strstr(json, from), *out;

	if (!at)
		fail_msg("the sample has no %s", from);
	assert_true(asprintf(&out, "%.*s%s%s", (int)(at - json), json, to, at + strlen(from)) > 0);
	free(json);
	return out;
}

static void decode_reads_every_field(void **state)
{
	struct plan *p = sample_plan();

	(void)state;
	assert_string_equal(p->id, SAMPLE_ID);
	assert_string_equal(p->created_utc, "2026-11-30T00:14:07Z");
	assert_int_equal(p->rtc_offset_s, -3600);
	assert_true(p->seed == UINT64_C(9007199254740991));
	assert_string_equal(p->boot_mode, "initramfs");
	assert_string_equal(p->mode, "as-shipped");
	assert_string_equal(p->baseline, "6.1.0-57");
	assert_true(p->margin == 0.01);
	assert_int_equal(p->rounds_max, 2);
	assert_int_equal(p->retries, 2);
	assert_int_equal(p->boots_max, 24);
	assert_int_equal(p->boot_timeout_ms, 900000);
	assert_int_equal(p->trial_timeout_ms, 300000);
	assert_int_equal(p->load_start_timeout_ms, 60000);
	assert_int_equal(p->build_uid, 65534);
	assert_int_equal(p->umask, 022);
	assert_int_equal(p->nice, 0);
	assert_int_equal(p->oom_score_adj, -7);
	assert_string_equal(p->default_uname, "6.1.0-57-amd64");
	assert_string_equal(p->store_uuid, "11111111-2222-3333-4444-555555555555");
	assert_string_equal(p->root_uuid, "aaaaaaaa-2222-3333-4444-555555555555");
	assert_string_equal(p->root_fstype, "ext4");
	assert_null(p->root_options);
	assert_string_equal(p->arena_uuid, "bbbbbbbb-2222-3333-4444-555555555555");
	assert_string_equal(p->arena_partuuid, "5ac3b2b1-02");
	assert_string_equal(p->arena_options, "noatime,data=ordered");
	assert_true(p->arena_bytes == UINT64_C(4294967296));
	assert_string_equal(p->swap_uuid, "cccccccc-2222-3333-4444-555555555555");
	assert_true(p->swap_bytes == 1073741824);
	assert_true(p->memtotal_bytes == UINT64_C(1000000000000000));
	assert_int_equal(p->n_panic, 2);
	assert_string_equal(p->panic[0].name, "kernel.panic");
	assert_string_equal(p->panic[0].value, "10");
	assert_int_equal(p->n_toolchain, 2);
	assert_string_equal(p->toolchain[1].name, "/usr/bin/make");
	assert_int_equal(p->n_entries, 3);
	assert_string_equal(p->entries[0].cmdline, "root=UUID=aaaa ro \"x=a b\"");
	assert_string_equal(p->entries[0].initrd, "/boot/initrd.img-6.1.0-57-amd64");
	assert_null(p->entries[1].initrd);
	assert_null(p->entries[1].twin_of);
	assert_string_equal(p->entries[2].twin_of, "6.12.117");
	assert_string_equal(p->entries[2].id, "recount-e03");
	plan_free(p);
}

static void decode_reads_workloads_loads_and_boots(void **state)
{
	struct plan *p = sample_plan();

	(void)state;
	assert_int_equal(p->n_workloads, 1);
	assert_string_equal(p->workloads[0].dir, "linux-6.12/tools/lib/api");
	assert_string_equal(p->workloads[0].clean[1], "clean");
	assert_null(p->workloads[0].clean[2]);
	assert_string_equal(p->workloads[0].build[2], "init/");
	assert_null(p->workloads[0].build[3]);
	assert_string_equal(p->workloads[0].product, ".");
	assert_int_equal(p->workloads[0].product_sha256[63], '4');
	assert_int_equal(p->workloads[0].tree_sha256[0], '5');
	assert_true(p->workloads[0].build_ns == INT64_C(13000000000));
	assert_int_equal(p->n_loads, 2);
	assert_string_equal(p->loads[1].kind, "io");
	assert_int_equal(p->loads[1].bytes, 67108864);
	assert_int_equal(p->loads[1].workers, 2);
	assert_int_equal(p->loads[1].steady_ms, 10000);
	assert_int_equal(p->n_boots, 7);
	assert_int_equal(p->boots[6].boot, 6);
	assert_int_equal(p->boots[6].round, 2);
	assert_string_equal(p->boots[6].entry, "6.12.117");
	assert_int_equal(p->boots[6].n_trials, 2);
	assert_string_equal(p->boots[6].trials[1].load, "io");
	assert_int_equal(p->boots[6].trials[1].jobs, 2);
	assert_ptr_equal(plan_find_entry(p, "7.3-rc2"), &p->entries[2]);
	assert_null(plan_find_entry(p, "7.3"));
	assert_null(plan_find_entry(p, NULL));
	assert_ptr_equal(plan_find_load(p, "io"), &p->loads[1]);
	assert_null(plan_find_load(p, "mem"));
	assert_ptr_equal(plan_find_workload(p, "kernel"), &p->workloads[0]);
	assert_null(plan_find_workload(p, "Kernel"));
	assert_true(plan_is_compared(p, "6.12.117"));
	assert_false(plan_is_compared(p, "6.12"));
	/* in the canary alone */
	p->n_boots = 1;
	assert_false(plan_is_compared(p, p->boots[0].entry));
	p->n_boots = 7;
	plan_free(p);
}

static void commands_have_a_limit(void **state)
{
	char *words[PLAN_ARGS_MAX + 2];
	struct plan *p = sample_plan();
	struct plan_workload w = p->workloads[0];
	const char *why = "";
	size_t n;

	(void)state;
	for (n = 0; n < PLAN_ARGS_MAX; n++)
		words[n] = "make";
	words[n] = NULL;
	w.build = words;
	assert_int_equal(plan_check_workload(&w, &why), 0);
	words[n++] = "more";
	words[n] = NULL;
	assert_int_equal(plan_check_workload(&w, &why), -EBADMSG);
	assert_string_equal(why, "build");
	plan_free(p);
}

static void encode_gives_the_same_text_again(void **state)
{
	struct plan *p = sample_plan();
	char *json = NULL;
	size_t len = 0;

	(void)state;
	assert_int_equal(plan_encode(p, &json, &len), 0);
	assert_int_equal(len, strlen(json));
	sample_is_golden("plan.json", json);
	free(json);
	plan_free(p);
}

static void absent_keys_have_their_meaning(void **state)
{
	char *json = changed("\"steady_ms\":\t10000", "\"new\":\t[1]"), *at;
	struct plan *p = NULL;

	(void)state;
	assert_int_equal(plan_decode(json, strlen(json), &p, NULL), 0);
	assert_int_equal(p->loads[1].steady_ms, 0);
	plan_free(p);
	/* Without its name the swap partition is only an unknown key. */
	at = strstr(json, "\"swap\"");
	assert_non_null(at);
	memcpy(at, "\"SWAP\"", 6);
	assert_int_equal(plan_decode(json, strlen(json), &p, NULL), 0);
	assert_null(p->swap_uuid);
	assert_int_equal(p->swap_bytes, 0);
	plan_free(p);
	free(json);
}

static void seconds_of_the_bmcs_watchdog_are_an_entrys_own(void **state)
{
	static const char *const refused[] = {"6554", "-1", "1.5", "\"1200\""};
	char *json = changed("\"twin_of\":", "\"bmc_s\": 1200, \"twin_of\":"), *again = NULL,
	     text[64];
	struct plan *p = sample_plan();
	const char *why = "";
	size_t len;

	(void)state;
	assert_int_equal(plan_uses_bmc(p), 0);
	plan_free(p);
	assert_int_equal(plan_decode(json, strlen(json), &p, NULL), 0);
	assert_int_equal(p->entries[0].bmc_s, 0);
	assert_int_equal(p->entries[2].bmc_s, 1200);
	assert_int_equal(plan_uses_bmc(p), 1);
	p->entries[0].bmc_s = 6553;
	free(json);
	assert_int_equal(plan_encode(p, &again, &len), 0);
	plan_free(p);
	assert_int_equal(plan_decode(again, len, &p, NULL), 0);
	assert_int_equal(p->entries[0].bmc_s, 6553);
	assert_int_equal(p->entries[1].bmc_s, 0);
	assert_int_equal(p->entries[2].bmc_s, 1200);
	plan_free(p);
	free(again);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		snprintf(text, sizeof(text), "\"bmc_s\": %s, \"twin_of\":", refused[i]);
		json = changed("\"twin_of\":", text);
		assert_int_equal(plan_decode(json, strlen(json), &p, &why), -EBADMSG);
		assert_string_equal(why, "bmc_s");
		free(json);
	}
}

static void decode_refuses_broken_rules(void **state)
{
	static const struct {
		const char *from, *to, *why;
	} cases[] = {
		{"\"2026-11-30-a\"", "\"2026/11\"", "id"},
		{"\"2026-11-30-a\"", "\"-a\"", "id"},
		{"\"2026-11-30-a\"", "\"a23456789-123456789-123456789-123456789-12345678x\"", "id"},
		{"\"2026-11-30T00:14:07Z\"", "\"30 November\"", "created_utc"},
		{"9007199254740991", "9007199254740992", "seed"},
		{"9007199254740991", "1.5", "seed"},
		{"9007199254740991", "-1", "seed"},
		{"9007199254740991", "\"1\"", "seed"},
		{"9007199254740991", "1e400", "seed"},
		{"0.01", "0", "margin"},
		{"0.01", "1", "margin"},
		{"\"rounds_max\":\t2", "\"rounds_max\":\t1", "round"},
		{"\"retries\":\t2", "\"retries\":\t0", "retries"},
		{"\"retries\":\t2", "\"retries\":\t10", "retries"},
		{"\"retries\":\t2", "\"Retries\":\t2", "retries"},
		{"\"boots_max\":\t24", "\"boots_max\":\t4294967297", "boots_max"},
		{"\"build_uid\":\t65534", "\"build_uid\":\t0", "build_uid"},
		{"\"build_uid\":\t65534", "\"build_uid\":\t4294967295", "build_uid"},
		{"\"umask\":\t18", "\"umask\":\t512", "umask"},
		{"\"nice\":\t0", "\"nice\":\t20", "nice"},
		{"\"oom_score_adj\":\t-7", "\"oom_score_adj\":\t-1001", "oom_score_adj"},
		{"\"kernel.panic\"", "\"kernel..panic\"", "panic"},
		{"\"kernel.panic\"", "\"/kernel/panic\"", "panic"},
		{"\"kernel.panic\":\t\"10\"", "\"kernel.core_pattern\":\t\"|/x\"", "panic"},
		{"\"kernel.panic\":\t\"10\"", "\"kernel.modprobe\":\t\"/run/recount/arena/x\"",
		 "panic"},
		{"\"/usr/bin/make\"", "\"usr/bin/make\"", "toolchain"},
		{"\"/usr/bin/make\"", "\"/usr/../bin/make\"", "toolchain"},
		{"aaaaaaaa\"", "aaaaaaaA\"", "toolchain"},
		{"\"baseline\":\t\"6.1.0-57\"", "\"baseline\":\t\"6.1\"", "baseline"},
		{"bbbbbbbb-2222", "11111111-2222", "store_uuid"},
		{"bbbbbbbb-2222", "../bbbbb-2222", "arena"},
		{"\"/boot/initrd.img-6.1.0-57-amd64\"", "\"/boot/../etc/shadow\"", "initrd"},
		{"\"/boot/initrd.img-6.1.0-57-amd64\"", "\"initrd\"", "initrd"},
		{"\"version\":\t\"6.1.0-57-amd64\"", "\"version\":\t\"..\"", "version"},
		{"\"version\":\t\"6.1.0-57-amd64\"", "\"version\":\t\"6.1/../x\"", "version"},
		{"\"default_uname\":\t\"", "\"default_uname\":\t\"../", "default_uname"},
		{"noatime,", "noatime ,", "arena"},
		{"\"recount-e02\"", "\"recount-E02\"", "id"},
		{"\"recount-e02\"", "\"e02\"", "id"},
		{"\"recount-e02\"", "\"recount-e01\"", "id"},
		{"\"label\":\t\"6.12.117\"", "\"label\":\t\"7.3-rc2\"", "label"},
		{"\"label\":\t\"6.12.117\"", "\"label\":\t\"6.12\\n117\"", "label"},
		{"\"label\":\t\"6.12.117\"", "\"label\":\t\"\"", "label"},
		{"\"/boot/vmlinuz-6.12.117\"", "\"boot/vmlinuz-6.12.117\"", "kernel"},
		{"\"/boot/vmlinuz-6.12.117\"", "\"/boot/..\"", "kernel"},
		{"\"/boot/initrd.img-6.1.0-57-amd64\"", "\"../initrd\"", "initrd"},
		{"ro mitigations=off", "ro\\nmitigations=off", "cmdline"},
		{"2222222\"", "222222\"", "kernel_sha256"},
		{"2222222\"", "222222g\"", "kernel_sha256"},
		{"2222222\"", "222222222\"", "kernel_sha256"},
		{"\"twin_of\":\t\"6.12.117\"", "\"twin_of\":\t\"6.12\"", "twin_of"},
		{"\"twin_of\":\t\"6.12.117\"", "\"twin_of\":\t\"7.3-rc2\"", "twin_of"},
		{"linux-6.12/tools/lib/api", "/linux-6.12", "dir"},
		{"linux-6.12/tools/lib/api", "linux-6.12/../..", "dir"},
		{"linux-6.12/tools/lib/api", "", "dir"},
		{"[\"make\", \"clean\"]", "[]", "clean"},
		{"[\"make\", \"V=1\", \"init/\"]", "[\"make\", 1]", "build"},
		{"[\"make\", \"V=1\", \"init/\"]", "\"make\"", "build"},
		{"\"product\":\t\".\"", "\"product\":\t\"..\"", "product"},
		{"\"build_ns\":\t13000000000", "\"build_ns\":\t-1", "build_ns"},
		{"\"name\":\t\"io\"", "\"name\":\t\"none\"", "name"},
		{"\"name\":\t\"io\"", "\"name\":\t\"../io\"", "name"},
		{"\"workers\":\t2", "\"workers\":\t4097", "workers"},
		{"\"boot\":\t3", "\"boot\":\t4", "boot"},
		{"\"boot\":\t0,\n\t\t\t\"round\":\t0", "\"boot\":\t0,\n\t\t\t\"round\":\t1",
		 "round"},
		{"\"boot\":\t3,\n\t\t\t\"round\":\t1", "\"boot\":\t3,\n\t\t\t\"round\":\t0",
		 "round"},
		{"\"boot\":\t2,\n\t\t\t\"round\":\t1", "\"boot\":\t2,\n\t\t\t\"round\":\t2",
		 "round"},
		{"\"entry\":\t\"7.3-rc2\"", "\"entry\":\t\"7.3\"", "entry"},
		{"\"entry\":\t\"7.3-rc2\"", "\"entry\":\t\"6.12.117\"", "entry"},
		{"\"trial\":\t2", "\"trial\":\t3", "trial"},
		{"\"workload\":\t\"kernel\"", "\"workload\":\t\"gcc\"", "workload"},
		{"\"load\":\t\"io\"", "\"load\":\t\"mem\"", "load"},
		{"\"load\":\t\"io\"", "\"load\":\t\"none\"", "trial"},
		{"\"jobs\":\t2", "\"jobs\":\t0", "jobs"},
		{"\"jobs\":\t2", "\"jobs\":\t1025", "jobs"},
	};
	struct plan *p = NULL;
	const char *why;
	char *json;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		json = changed(cases[i].from, cases[i].to);
		why = "nothing";
		if (plan_decode(json, strlen(json), &p, &why) != -EBADMSG)
			fail_msg("%s -> %s was not refused", cases[i].from, cases[i].to);
		if (strcmp(why, cases[i].why) != 0)
			fail_msg("%s -> %s: refused for %s", cases[i].from, cases[i].to, why);
		free(json);
	}
	assert_null(p);
}

static void decode_refuses_what_is_not_strict_json(void **state)
{
	static const char *const cases[][2] = {
		{"\"seed\":", "\"seed\" "},
		{"0.01", "00.01"},
		{"0.01", ".01"},
		{"0.01", "1.e-2"},
		{"0.01", "+0.01"},
		{"as-shipped", "as\\u0000shipped"},
		{"as-shipped", "as\tshipped"},
		{"as-shipped", "as\xffshipped"},
		{"as-shipped", "as\xc0\x80"},
		{"as-shipped", "as\xed\xa0\x80"},
		{"\"mode\"", "'mode'"},
		{"0.01", "NaN"},
		{"\"panic\":\t{", "\"panic\":\t{{"},
		{"[\"make\", \"clean\"]", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"make\"]]]]]]]]]]]]"
					  "]]]]]]]]]]]]]]]]]]]]]]]]"},
	};
	struct plan *p = NULL;
	const char *why;
	char *json;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		json = changed(cases[i][0], cases[i][1]);
		why = "nothing";
		if (plan_decode(json, strlen(json), &p, &why) != -EBADMSG)
			fail_msg("%s was not refused", cases[i][1]);
		assert_string_equal(why, "JSON");
		free(json);
	}
	json = sample_read("plan.json");
	strcat(json, "x");
	assert_int_equal(plan_decode(json, strlen(json), &p, NULL), -EBADMSG);
	/* A NUL inside the given length is no end. */
	json[strlen(json) - 1] = '\0';
	assert_int_equal(plan_decode(json, strlen(json) + 1, &p, NULL), -EBADMSG);
	free(json);
}

static void decode_tells_a_newer_schema_and_size(void **state)
{
	char *json = changed("\"schema\":\t1", "\"schema\":\t2"), *big;
	struct plan *p = NULL;

	(void)state;
	assert_int_equal(plan_decode(json, strlen(json), &p, NULL), -EPROTONOSUPPORT);
	free(json);
	big = malloc(PLAN_BYTES_MAX + 1);
	assert_non_null(big);
	memset(big, ' ', PLAN_BYTES_MAX + 1);
	assert_int_equal(plan_decode(big, PLAN_BYTES_MAX + 1, &p, NULL), -E2BIG);
	free(big);
}

static void decode_refuses_every_cut(void **state)
{
	char *json = sample_read("plan.json"), *copy;
	size_t whole = strlen(json) - 1, len;
	struct plan *p = NULL;

	(void)state;
	assert_int_equal(json[whole], '\n');
	for (len = 0; len < whole; len++) {
		/* A copy of just that size, so that a sanitizer sees a read past the cut. */
		copy = malloc(len ? len : 1);
		assert_non_null(copy);
		memcpy(copy, json, len);
		if (plan_decode(copy, len, &p, NULL) != -EBADMSG)
			fail_msg("cut to %zu bytes: not refused", len);
		free(copy);
	}
	assert_int_equal(plan_decode(json, whole, &p, NULL), 0);
	plan_free(p);
	free(json);
}

/* A flipped byte may make another valid plan, but one that obeys the rules. */
static void decode_survives_flipped_bytes(void **state)
{
	static const unsigned char masks[] = {0x01, 0x02, 0x20, 0x80};
	char *json = sample_read("plan.json"), *again;
	size_t len = strlen(json), i, k, again_len;
	struct plan *p = NULL;
	int refused = 0;

	(void)state;
	for (i = 0; i < len; i++) {
		k = i % ARRAY_SIZE(masks);
		json[i] = (char)(json[i] ^ masks[k]);
		if (plan_decode(json, len, &p, NULL) == 0) {
			assert_int_equal(plan_encode(p, &again, &again_len), 0);
			free(again);
			plan_free(p);
		} else {
			refused++;
		}
		json[i] = (char)(json[i] ^ masks[k]);
	}
	assert_true(refused > (int)len / 4);
	free(json);
}

static void encode_refuses_what_decode_would(void **state)
{
	struct plan *p = sample_plan();
	const char *why = NULL;
	char *json = NULL;
	size_t len;

	(void)state;
	p->boots[2].trials[0].jobs = 0;
	assert_int_equal(plan_encode(p, &json, &len), -EBADMSG);
	assert_int_equal(plan_check(p, &why), -EBADMSG);
	assert_string_equal(why, "jobs");
	p->boots[2].trials[0].jobs = 2;
	p->entries[1].cmdline[0] = '\0';
	free(p->entries[2].cmdline);
	p->entries[2].cmdline = strdup("ro \xff");
	assert_int_equal(plan_encode(p, &json, &len), -EILSEQ);
	assert_null(json);
	plan_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decode_reads_every_field),
		cmocka_unit_test(decode_reads_workloads_loads_and_boots),
		cmocka_unit_test(commands_have_a_limit),
		cmocka_unit_test(encode_gives_the_same_text_again),
		cmocka_unit_test(absent_keys_have_their_meaning),
		cmocka_unit_test(seconds_of_the_bmcs_watchdog_are_an_entrys_own),
		cmocka_unit_test(decode_refuses_broken_rules),
		cmocka_unit_test(decode_refuses_what_is_not_strict_json),
		cmocka_unit_test(decode_tells_a_newer_schema_and_size),
		cmocka_unit_test(decode_refuses_every_cut),
		cmocka_unit_test(decode_survives_flipped_bytes),
		cmocka_unit_test(encode_refuses_what_decode_would),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
