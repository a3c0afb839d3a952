/* SPDX-License-Identifier: GPL-3.0-or-later */
/* prepared/manifest.json: there and back, replaced as a whole, never unreadable. */
#include "tests/unit/sample.h"

#include <errno.h>

#include "results/prepared.h"

static char folder[SAMPLE_FOLDER];
static struct store *store;
static struct plan *plan;
static struct prepared p;

/* What @p owns is the sample plan's. */
static int setup(void **state)
{
	(void)state;
	sample_folder(folder);
	assert_int_equal(store_open(folder, &store), 0);
	plan = sample_plan();
	p = (struct prepared){
		.workload = plan->workloads[0],
		.jobs = 4,
		.build_uid = 65534,
		.arena_uuid = plan->arena_uuid,
		.toolchain = plan->toolchain,
		.n_toolchain = plan->n_toolchain,
	};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	plan_free(plan);
	store_close(store);
	sample_folder_remove(folder);
	return 0;
}

static void manifest_goes_to_the_store_and_back(void **state)
{
	struct prepared *back = NULL;

	(void)state;
	assert_int_equal(prepared_load(store, &back), -ENOENT);
	assert_int_equal(prepared_save(store, &p), 0);
	p.jobs = 2;
	assert_int_equal(prepared_save(store, &p), 0);
	assert_int_equal(prepared_load(store, &back), 0);
	assert_int_equal(back->jobs, 2);
	assert_int_equal(back->build_uid, 65534);
	assert_string_equal(back->arena_uuid, plan->arena_uuid);
	assert_string_equal(back->workload.name, "kernel");
	assert_string_equal(back->workload.build[2], "init/");
	assert_null(back->workload.build[3]);
	assert_string_equal(back->workload.tree_sha256, plan->workloads[0].tree_sha256);
	assert_true(back->workload.build_ns == INT64_C(13000000000));
	assert_int_equal(back->n_toolchain, 2);
	assert_string_equal(back->toolchain[1].name, "/usr/bin/make");
	assert_string_equal(back->toolchain[1].value, plan->toolchain[1].value);
	prepared_free(back);
}

static void removed_manifest_is_nothing_prepared(void **state)
{
	struct prepared *back = NULL;

	(void)state;
	assert_int_equal(prepared_save(store, &p), 0);
	assert_int_equal(prepared_remove(store), 0);
	assert_int_equal(prepared_load(store, &back), -ENOENT);
	assert_int_equal(prepared_remove(store), 0);
}

static void what_could_not_be_read_is_not_written(void **state)
{
	struct prepared *back = NULL;

	(void)state;
	p.jobs = 0;
	assert_int_equal(prepared_save(store, &p), -EBADMSG);
	p.jobs = 1;
	p.build_uid = 0;
	assert_int_equal(prepared_save(store, &p), -EBADMSG);
	p.build_uid = 1;
	p.arena_uuid = "../x";
	assert_int_equal(prepared_save(store, &p), -EBADMSG);
	p.arena_uuid = plan->arena_uuid;
	p.workload.dir = "..";
	assert_int_equal(prepared_save(store, &p), -EBADMSG);
	p.workload.dir = "a/../../b";
	assert_int_equal(prepared_save(store, &p), -EBADMSG);
	p.workload.dir = "/etc";
	assert_int_equal(prepared_save(store, &p), -EBADMSG);
	p.workload.dir = plan->workloads[0].dir;
	p.workload.product_sha256[0] = '\0';
	assert_int_equal(prepared_save(store, &p), -EBADMSG);
	assert_int_equal(prepared_load(store, &back), -ENOENT);
}

static void decode_refuses_every_cut_and_survives_flips(void **state)
{
	struct prepared *back = NULL;
	char *json, *copy;
	size_t i, whole;

	(void)state;
	assert_int_equal(prepared_encode(&p, &json), 0);
	whole = strlen(json) - 1;
	for (i = 0; i < whole; i++) {
		copy = malloc(i ? i : 1);
		assert_non_null(copy);
		memcpy(copy, json, i);
		if (prepared_decode(copy, i, &back) != -EBADMSG)
			fail_msg("cut to %zu bytes: not refused", i);
		free(copy);
	}
	for (i = 0; i < 8 * whole; i++) {
		json[i / 8] = (char)(json[i / 8] ^ (1 << i % 8));
		if (prepared_decode(json, whole, &back) == 0)
			prepared_free(back);
		json[i / 8] = (char)(json[i / 8] ^ (1 << i % 8));
	}
	assert_int_equal(prepared_decode(json, whole, &back), 0);
	prepared_free(back);
	free(json);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(manifest_goes_to_the_store_and_back),
		TEST(removed_manifest_is_nothing_prepared),
		TEST(what_could_not_be_read_is_not_written),
		TEST(decode_refuses_every_cut_and_survives_flips),
	};

	return cmocka_run_group_tests_name("prepared", tests, NULL, NULL);
}
