/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Words of the kernel command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "initramfs/cmdline.h"

static void expect(const char *cmdline, const char *key, const char *value)
{
	char got[64] = "untouched";
	int r = cmdline_get(cmdline, key, got, sizeof(got));

	if (value) {
		assert_int_equal(r, 0);
		assert_string_equal(got, value);
	} else {
		assert_int_equal(r, -ENOENT);
		assert_string_equal(got, "untouched");
	}
}

static void finds_our_words_among_strangers(void **state)
{
	const char *line = "quiet splash foo=bar recount.token=7 -- --help\n";

	(void)state;
	expect(line, "recount.token", "7");
	expect(line, "recount.run", NULL);
	expect(line, "recount", NULL);
	expect(line, "token", NULL);
	expect(line, "splash", "");
	expect(line, "foo", "bar");
}

static void last_of_several_counts(void **state)
{
	(void)state;
	expect("recount.token=a recount.token=b", "recount.token", "b");
	expect("recount.token=a recount.token", "recount.token", "");
	expect("recount.token=a recount.token=", "recount.token", "");
}

static void words_behind_two_dashes_belong_to_init(void **state)
{
	(void)state;
	expect("recount.token=a -- recount.token=b", "recount.token", "a");
	expect("-- recount.token=b", "recount.token", NULL);
	expect("--quiet recount.token=b", "recount.token", "b");
}

static void quotes_are_taken_off(void **state)
{
	(void)state;
	expect("a=\"b c\" d=e", "a", "b c");
	expect("\"a=b c\" d=e", "a", "b c");
	expect("a=b\" \"c d=e", "a", "b\" \"c");
	expect("x=\"recount.token=9\" y", "recount.token", NULL);
	expect("\"quiet\" d", "quiet", "");
	expect("a=\"", "a", "");
	expect("a=\"b c", "a", "b c");
	expect("\"", "a", NULL);
}

static void dash_and_underscore_are_equal_in_names(void **state)
{
	(void)state;
	expect("nmi-watchdog=panic", "nmi_watchdog", "panic");
	expect("a_b=c-d_e", "a-b", "c-d_e");
}

static void value_may_hold_equals_signs(void **state)
{
	(void)state;
	expect("root=UUID=12-34 ro", "root", "UUID=12-34");
	expect("=x root=y", "root", "y");
}

static void too_long_a_value_is_refused_unwritten(void **state)
{
	char got[4] = "abc";

	(void)state;
	assert_int_equal(cmdline_get("k=wxyz", "k", got, sizeof(got)), -ENAMETOOLONG);
	assert_string_equal(got, "abc");
	assert_int_equal(cmdline_get("k=xyz", "k", got, sizeof(got)), 0);
	assert_string_equal(got, "xyz");
}

static void empty_lines_hold_nothing(void **state)
{
	(void)state;
	expect("", "a", NULL);
	expect("  \t\n ", "a", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_our_words_among_strangers),
		cmocka_unit_test(last_of_several_counts),
		cmocka_unit_test(words_behind_two_dashes_belong_to_init),
		cmocka_unit_test(quotes_are_taken_off),
		cmocka_unit_test(dash_and_underscore_are_equal_in_names),
		cmocka_unit_test(value_may_hold_equals_signs),
		cmocka_unit_test(too_long_a_value_is_refused_unwritten),
		cmocka_unit_test(empty_lines_hold_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
