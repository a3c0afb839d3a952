/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Summary statistics against certified values. */
#include "tests/unit/sample.h"

#include <errno.h>
#include <math.h>

#include "results/stat.h"

static void is_near(double got, double want, double relative)
{
	if (!(fabs(got - want) <= relative * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

/* NIST StRD, univariate, Lew.dat: beam deflections, certified mean and standard deviation. */
static const double lew[] = {
	-213, -564, -35,  -15,	141,  115,  -420, -360, 203,  -338, -431, 194,	-220, -513, 154,
	-125, -559, 92,	  -21,	-579, -52,  99,	  -543, -175, 162,  -457, -346, 204,  -300, -474,
	164,  -107, -572, -8,	83,   -541, -224, 180,	-420, -374, 201,  -236, -531, 83,   27,
	-564, -112, 131,  -507, -254, 199,  -311, -495, 143,  -46,  -579, -90,	136,  -472, -338,
	202,  -287, -477, 169,	-124, -568, 17,	  48,	-568, -135, 162,  -430, -422, 172,  -74,
	-577, -13,  92,	  -534, -243, 194,  -355, -465, 156,  -81,  -578, -64,	139,  -449, -384,
	193,  -198, -538, 110,	-44,  -577, -6,	  66,	-552, -164, 161,  -460, -344, 205,  -281,
	-504, 134,  -28,  -576, -118, 156,  -437, -381, 200,  -220, -540, 83,	11,   -568, -160,
	172,  -414, -408, 188,	-125, -572, -32,  139,	-492, -321, 205,  -262, -504, 142,  -83,
	-574, 0,    48,	  -571, -106, 137,  -501, -266, 190,  -391, -406, 194,	-186, -553, 83,
	-13,  -577, -49,  103,	-515, -280, 201,  300,	-506, 131,  -45,  -578, -80,  138,  -462,
	-361, 201,  -211, -554, 32,   74,   -533, -235, 187,  -372, -442, 182,	-147, -566, 25,
	68,   -535, -244, 194,	-351, -463, 174,  -125, -570, 15,   72,	  -550, -190, 172,  -424,
	-385, 198,  -218, -536, 96,
};

static void summary_of_lew_is_the_certified_one(void **state)
{
	struct stat_summary s;

	(void)state;
	assert_int_equal(ARRAY_SIZE(lew), 200);
	assert_int_equal(stat_summarise(lew, ARRAY_SIZE(lew), &s), 0);
	assert_int_equal(s.n, 200);
	is_near(s.mean, -177.435, 1e-13);
	is_near(s.stddev, 277.332168044316, 1e-13);
	is_near(s.cv, 277.332168044316 / -177.435, 1e-13);
	assert_true(s.median == -162.0);
	assert_true(s.min == -579 && s.max == 300);
}

/* NIST StRD NumAcc3: 1000000.2, then 1000000.1 and 1000000.3 in turn, 1001 values. */
static void summary_of_numacc3_keeps_its_digits(void **state)
{
	double x[1001];
	struct stat_summary s;
	size_t i;

	(void)state;
	x[0] = 1000000.2;
	for (i = 1; i < ARRAY_SIZE(x); i++)
		x[i] = i % 2 ? 1000000.1 : 1000000.3;
	assert_int_equal(stat_summarise(x, ARRAY_SIZE(x), &s), 0);
	is_near(s.mean, 1000000.2, 1e-14);
	is_near(s.stddev, 0.1, 1e-8);
	assert_true(s.median == 1000000.2);
}

static void median_of_an_even_count_is_between(void **state)
{
	const double x[] = {9, 1, 4, 2};
	struct stat_summary s;

	(void)state;
	assert_int_equal(stat_summarise(x, 4, &s), 0);
	assert_true(s.median == 3 && s.min == 1 && s.max == 9 && s.mean == 4);
	is_near(s.stddev, sqrt(38.0 / 3), 1e-14);
	assert_true(x[0] == 9 && x[3] == 2);
}

static void one_value_has_no_spread(void **state)
{
	const double x[] = {7};
	struct stat_summary s;

	(void)state;
	assert_int_equal(stat_summarise(x, 1, &s), 0);
	assert_true(s.n == 1 && s.mean == 7 && s.median == 7 && s.min == 7 && s.max == 7);
	assert_true(isnan(s.stddev) && isnan(s.cv));
}

static void mean_of_zero_has_no_cv(void **state)
{
	const double x[] = {-1, 1};
	struct stat_summary s;

	(void)state;
	assert_int_equal(stat_summarise(x, 2, &s), 0);
	is_near(s.stddev, sqrt(2), 1e-14);
	assert_true(isnan(s.cv));
}

static void nothing_and_nonsense_are_refused(void **state)
{
	const double nan[] = {1, NAN}, infinite[] = {INFINITY, 1};
	struct stat_summary s = {.n = 99};

	(void)state;
	assert_int_equal(stat_summarise(nan, 0, &s), -EINVAL);
	assert_int_equal(stat_summarise(nan, 2, &s), -EINVAL);
	assert_int_equal(stat_summarise(infinite, 2, &s), -EINVAL);
	assert_int_equal(s.n, 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(summary_of_lew_is_the_certified_one),
		cmocka_unit_test(summary_of_numacc3_keeps_its_digits),
		cmocka_unit_test(median_of_an_even_count_is_between),
		cmocka_unit_test(one_value_has_no_spread),
		cmocka_unit_test(mean_of_zero_has_no_cv),
		cmocka_unit_test(nothing_and_nonsense_are_refused),
	};

	return cmocka_run_group_tests_name("stat", tests, NULL, NULL);
}
