/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What --target says, as commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "runner/target.h"

static void expect_argv(char *const *argv, const char *words)
{
	char line[256] = "";

	for (size_t i = 0; argv[i]; i++) {
		strcat(line, i ? " " : "");
		strcat(line, argv[i]);
	}
	assert_string_equal(line, words);
}

static void becomes_commands(void **state)
{
	static const struct {
		const char *target, *product, *clean, *build, *made;
	} cases[] = {
		{"vmlinux", NULL, "make clean", "make vmlinux", "vmlinux"},
		{" bzImage ", NULL, "make clean", "make bzImage", "arch/x86/boot/bzImage"},
		{"init/", NULL, "make clean", "make init/", "init"},
		{"-C lib/api", NULL, "make -C lib/api clean", "make -C lib/api", "lib/api"},
		{"-C lib/api/ all", NULL, "make -C lib/api/ clean", "make -C lib/api/ all",
		 "lib/api"},
		{"all", NULL, "make clean", "make all", "."},
		{"vmlinux modules", NULL, "make clean", "make vmlinux modules", "."},
		{"V=1 vmlinux", "vmlinux", "make clean", "make V=1 vmlinux", "vmlinux"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct plan_workload w = {0};
		const char *why;

		assert_int_equal(target_parse(cases[i].target, cases[i].product, &w, &why), 0);
		expect_argv(w.clean, cases[i].clean);
		expect_argv(w.build, cases[i].build);
		assert_string_equal(w.product, cases[i].made);
		plan_workload_clear(&w);
	}
}

static void refuses_with_a_reason(void **state)
{
	static const char *const cases[][3] = {
		{"", NULL, "no word"},
		{" \t", NULL, "no word"},
		{"-C", NULL, "needs a folder"},
		{"-C  ", NULL, "needs a folder"},
		{"-C ../other", NULL, "inside the tree"},
		{"vmlinux", "/boot/vmlinuz", "inside the tree"},
		{"vmlinux", "../vmlinux", "inside the tree"},
		{"vmlinux", "a/..", "inside the tree"},
		{"vmlinux", "a\nb", "inside the tree"},
		{"all\x1b[2J", NULL, "control character"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct plan_workload w = {0};
		const char *why = NULL;

		assert_int_equal(target_parse(cases[i][0], cases[i][1], &w, &why), -EINVAL);
		assert_non_null(strstr(why, cases[i][2]));
		plan_workload_clear(&w);
	}
}

static void refuses_more_words_than_a_plan_may_hold(void **state)
{
	struct plan_workload w = {0};
	char target[2 * PLAN_ARGS_MAX + 1] = "";
	const char *why = NULL;

	(void)state;
	for (size_t i = 1; i < PLAN_ARGS_MAX; i++)
		strcat(target, "a ");
	assert_int_equal(target_parse(target, NULL, &w, &why), 0);
	plan_workload_clear(&w);
	strcat(target, "a");
	assert_int_equal(target_parse(target, NULL, &w, &why), -EINVAL);
	assert_non_null(strstr(why, "too many words"));
	plan_workload_clear(&w);
}

static void only_part_of_a_tree_needs_no_config(void **state)
{
	(void)state;
	assert_true(target_is_part("-C lib/api"));
	assert_false(target_is_part("vmlinux"));
	assert_false(target_is_part("-Cool"));
}

static void clean_runs_in_parallel(void **state)
{
	struct plan_workload w = {0}, same = {0};
	const char *why;

	(void)state;
	assert_int_equal(target_parse("vmlinux", NULL, &w, &why), 0);
	assert_int_equal(target_parse("vmlinux", NULL, &same, &why), 0);
	assert_int_equal(target_clean_parallel(&w, 4), 0);
	assert_string_equal(w.clean[0], "make");
	assert_string_equal(w.clean[1], "-j4");
	assert_string_equal(w.clean[2], "clean");
	assert_null(w.clean[3]);
	assert_true(target_equal(&w, &same)); /* --target says nothing of it */
	plan_workload_clear(&w);
	plan_workload_clear(&same);
}

static void tells_whether_two_are_the_same(void **state)
{
	struct plan_workload a = {0}, b = {0}, c = {0};
	const char *why;

	(void)state;
	assert_int_equal(target_parse("init/", NULL, &a, &why), 0);
	assert_int_equal(target_parse(" init/", NULL, &b, &why), 0);
	assert_int_equal(target_parse("init/", "vmlinux", &c, &why), 0);
	assert_true(target_equal(&a, &b));
	assert_false(target_equal(&a, &c));
	plan_workload_clear(&a);
	plan_workload_clear(&b);
	plan_workload_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(becomes_commands),
		cmocka_unit_test(refuses_with_a_reason),
		cmocka_unit_test(refuses_more_words_than_a_plan_may_hold),
		cmocka_unit_test(only_part_of_a_tree_needs_no_config),
		cmocka_unit_test(clean_runs_in_parallel),
		cmocka_unit_test(tells_whether_two_are_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
