/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --target and --product. covers: runner/target.c */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "runner/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	_cleanup_free_ char *target = fuzz_text_part(&in), *product = fuzz_text(in);
	struct plan_workload w = {0}, same = {0};
	const char *why = NULL;
	int r = target_parse(target, *product ? product : NULL, &w, &why);

	REQUIRE(r == 0 || (r == -EINVAL && why && *why));
	if (r == 0) {
		/* What is taken here must not be refused when the tree has been built. */
		w.name = strdup("kernel");
		w.dir = strdup("tree");
		memset(w.product_sha256, '0', PLAN_SHA256 - 1);
		memset(w.tree_sha256, '0', PLAN_SHA256 - 1);
		REQUIRE(plan_check_workload(&w, &why) == 0);
		REQUIRE(!fuzz_leaves(w.product) && strcmp(w.build[0], "make") == 0);
		REQUIRE(target_parse(target, *product ? product : NULL, &same, &why) == 0);
		REQUIRE(target_equal(&w, &same));
		REQUIRE(target_clean_parallel(&w, (unsigned)size + 1) == 0);
		REQUIRE(!strncmp(w.clean[1], "-j", 2) && !strcmp(w.clean[2], same.clean[1]));
		REQUIRE(plan_check_workload(&w, &why) == 0 && target_equal(&w, &same));
	}
	plan_workload_clear(&w);
	plan_workload_clear(&same);
	return 0;
}
