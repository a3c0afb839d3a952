/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Amounts as people say them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "results/macro.h"
#include "runner/amount.h"

static void durations(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{-5, "0 s"},
		{0, "0 s"},
		{41700000000, "42 s"},
		{59499999999, "59 s"},
		{59500000000, "1 min 00 s"},
		{302000000000, "5 min 02 s"},
		{3599400000000, "59 min 59 s"},
		{3600000000000, "1 h 00 min"},
		{33600000000000, "9 h 20 min"},
	};
	char text[AMOUNT_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		amount_duration(text, cases[i].ns);
		assert_string_equal(text, cases[i].text);
	}
}

static void sizes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0 bytes"},		{999, "999 bytes"},    {1000, "1 kB"},
		{812345, "812 kB"},	{999499, "999 kB"},    {999500, "1.0 MB"},
		{9949999, "9.9 MB"},	{9950000, "10 MB"},    {14000000, "14 MB"},
		{3600000000, "3.6 GB"}, {UINT64_MAX, "18 EB"},
	};
	char text[AMOUNT_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		amount_size(text, cases[i].bytes);
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations),
		cmocka_unit_test(sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
