/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the tests of results/ share: golden files (compared whole, rewritten when UPDATE_GOLDEN=1),
 * a store in a temporary folder, and a small plan: golden/plan.json, with three entries, two loads,
 * two rounds and a canary, 7 boots of 2 trials. Its rounds boot 6.12.117 6.1.0-57 7.3-rc2
 * | 6.1.0-57 7.3-rc2 6.12.117, the first with io before none, the second with none before io.
 */
#ifndef RECOUNT_TESTS_SAMPLE_H
#define RECOUNT_TESTS_SAMPLE_H

#include <string.h>

#include "results/macro.h"
#include "results/plan.h"
#include "tests/unit/folder.h"

#define SAMPLE_ID "2026-11-30-a"

static inline void sample_golden_path(char path[4096], const char *name)
{
	const char *self = __FILE__, *slash = strrchr(self, '/');

	snprintf(path, 4096, "%.*sgolden/%s", slash ? (int)(slash - self + 1) : 0, self, name);
}

/* The text of golden/NAME; free(). */
static inline char *sample_read(const char *name)
{
	char path[4096], *text = calloc(1, 1 << 20);
	FILE *f;

	sample_golden_path(path, name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("no golden file %s: make update-golden", path);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

/* Is @text, byte for byte, what golden/NAME holds? */
static inline void sample_is_golden(const char *name, const char *text)
{
	const char *update = getenv("UPDATE_GOLDEN");
	char path[4096], *want;
	FILE *f;

	if (update && strcmp(update, "1") == 0) {
		sample_golden_path(path, name);
		f = fopen(path, "w");
		assert_non_null(f);
		assert_true(fputs(text, f) >= 0);
		assert_int_equal(fclose(f), 0);
	}
	want = sample_read(name);
	assert_string_equal(text, want);
	free(want);
}

static inline struct plan *sample_plan(void)
{
	char *json = sample_read("plan.json");
	struct plan *plan = NULL;
	const char *why = "";

	if (plan_decode(json, strlen(json), &plan, &why) != 0)
		fail_msg("golden/plan.json: %s", why);
	free(json);
	return plan;
}

#endif
