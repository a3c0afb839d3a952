/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The records of a campaign; the first byte says which. covers: results/record.c results/json.c */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "results/record.h"

/* Decodes, encodes, decodes and encodes: both texts must be equal. @check is for what was read. */
#define THERE_AND_BACK(kind, check)                                                                \
	static int kind(const char *json, size_t len)                                              \
	{                                                                                          \
		_cleanup_free_ char *text = NULL, *same = NULL;                                    \
		struct kind##_record r, back;                                                      \
		int err;                                                                           \
                                                                                                   \
		memset(&r, 0x55, sizeof(r));                                                       \
		back = r;                                                                          \
		err = kind##_decode(json, len, &r);                                                \
		if (err) {                                                                         \
			REQUIRE(memcmp(&r, &back, sizeof(r)) == 0);                                \
			return err;                                                                \
		}                                                                                  \
		check(&r);                                                                         \
		REQUIRE(kind##_encode(&r, &text) == 0);                                            \
		REQUIRE(strlen(text) <= RECORD_BYTES_MAX);                                         \
		REQUIRE(kind##_decode(text, strlen(text), &back) == 0);                            \
		REQUIRE(kind##_encode(&back, &same) == 0);                                         \
		REQUIRE(strcmp(text, same) == 0);                                                  \
		return 0;                                                                          \
	}

/* What is printed to a terminal must not be able to steer it. */
static void require_words(const char *text)
{
	for (; *text; text++)
		REQUIRE((unsigned char)*text >= 0x20 && *text != 0x7f);
}

static void check_attempt(const struct attempt_record *r)
{
	REQUIRE(r->attempt >= 1 && r->attempt <= RECORD_ATTEMPT_MAX && r->boot < PLAN_BOOTS_MAX);
	require_words(r->token);
	require_words(r->entry);
	require_words(r->armed_utc);
}

static void check_reached(const struct reached_record *r)
{
	REQUIRE(r->reached_monotonic_ns >= 0);
	require_words(r->token);
}

static void check_done(const struct done_record *r)
{
	REQUIRE(r->done_monotonic_ns >= 0);
	require_words(r->token);
}

static void check_failed(const struct failed_record *r)
{
	require_words(r->reason);
	REQUIRE(!*r->evidence || fuzz_is_name(r->evidence));
}

static void check_trial(const struct trial_record *r)
{
	REQUIRE(r->trial >= 1 && r->trial <= PLAN_TRIALS_MAX);
	REQUIRE(r->n_voids <= RECORD_VOIDS_MAX);
	REQUIRE((r->status == TRIAL_VOID) <= (r->n_voids > 0));
	REQUIRE(r->status != TRIAL_OK || (r->wall_ns > 0 && r->n_voids == 0));
	REQUIRE(r->user_ns >= ABSENT && r->psi.io_full_ns >= ABSENT);
	for (unsigned i = 0; i < r->n_voids; i++)
		require_words(r->voids[i]);
	require_words(r->entry);
	require_words(r->workload);
	require_words(r->load);
	require_words(r->arena_restore);
	require_words(r->arena_fstype);
	require_words(r->load_result.unit);
}

THERE_AND_BACK(attempt, check_attempt)
THERE_AND_BACK(reached, check_reached)
THERE_AND_BACK(done, check_done)
THERE_AND_BACK(failed, check_failed)
THERE_AND_BACK(trial, check_trial)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const kinds[])(const char *json, size_t len) = {trial, attempt, reached, done,
								     failed};
	int r;

	if (!size)
		return 0;
	r = kinds[*data % ARRAY_SIZE(kinds)]((const char *)data + 1, size - 1);
	REQUIRE(r == 0 || r == -EBADMSG || r == -EPROTONOSUPPORT || r == -E2BIG);
	return 0;
}
