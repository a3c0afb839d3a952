/* SPDX-License-Identifier: GPL-3.0-or-later */
/* prepared/manifest.json. covers: results/prepared.c */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "results/prepared.h"

static void require_inside(const struct prepared *p)
{
	REQUIRE(!fuzz_leaves(p->workload.dir) && !fuzz_leaves(p->workload.product));
	REQUIRE(p->workload.clean[0] && p->workload.build[0]);
	REQUIRE(p->jobs >= 1 && p->jobs <= PLAN_JOBS_MAX && p->build_uid != 0);
	REQUIRE(fuzz_is_name(p->arena_uuid));
	for (size_t i = 0; i < p->n_toolchain; i++)
		REQUIRE(fuzz_is_absolute(p->toolchain[i].name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(cleanup_prepared) struct prepared *p = NULL, *again = NULL;
	_cleanup_(cleanup_store) struct store *s = NULL;
	_cleanup_free_ char *json = NULL, *same = NULL;
	int r = prepared_decode((const char *)data, size, &p);

	if (r) {
		REQUIRE(!p && (r == -EBADMSG || r == -EPROTONOSUPPORT || r == -E2BIG));
		return 0;
	}
	require_inside(p);
	REQUIRE(store_open(fuzz_folder(), &s) == 0);
	REQUIRE(prepared_save(s, p) == 0);
	REQUIRE(prepared_load(s, &again) == 0);
	REQUIRE(prepared_encode(p, &json) == 0 && prepared_encode(again, &same) == 0);
	REQUIRE(strcmp(json, same) == 0);
	REQUIRE(prepared_remove(s) == 0);
	REQUIRE(prepared_load(s, &p) == -ENOENT);
	return 0;
}
