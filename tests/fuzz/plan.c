/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan.json. covers: results/plan_json.c results/plan_check.c results/json.c results/json_write.c
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "results/plan.h"

/* A text that may stand on a command line, in a message or in a file name. */
static void require_text(const char *text)
{
	for (; *text; text++)
		REQUIRE((unsigned char)*text >= 0x20 && *text != 0x7f);
}

static void require_sha256(const char *hex)
{
	REQUIRE(strlen(hex) == 64 && strspn(hex, "0123456789abcdef") == 64);
}

/* Nothing that is named leads out of its folder, and nothing starts a program of its own. */
static void require_inside(const struct plan *p)
{
	REQUIRE(fuzz_is_name(p->id) && strlen(p->id) < 49);
	for (size_t i = 0; i < p->n_entries; i++) {
		const struct plan_entry *e = &p->entries[i];

		REQUIRE(fuzz_is_name(e->id) && fuzz_is_name(e->version));
		REQUIRE(fuzz_is_absolute(e->kernel));
		REQUIRE(!e->initrd || fuzz_is_absolute(e->initrd));
		require_text(e->label);
		require_text(e->cmdline);
		require_sha256(e->kernel_sha256);
	}
	for (size_t i = 0; i < p->n_workloads; i++) {
		const struct plan_workload *w = &p->workloads[i];

		REQUIRE(fuzz_is_name(w->name) && !fuzz_leaves(w->dir) && !fuzz_leaves(w->product));
		REQUIRE(w->clean[0] && w->build[0]);
		require_sha256(w->product_sha256);
	}
	for (size_t i = 0; i < p->n_loads; i++)
		REQUIRE(fuzz_is_name(p->loads[i].name));
	for (size_t i = 0; i < p->n_toolchain; i++)
		REQUIRE(fuzz_is_absolute(p->toolchain[i].name));
	for (size_t i = 0; i < p->n_panic; i++) {
		REQUIRE(fuzz_is_name(p->panic[i].name) && !strstr(p->panic[i].name, ".."));
		/* kernel.core_pattern and its like take a program. */
		REQUIRE(!strpbrk(p->panic[i].value, "|/"));
	}
}

static void require_counts(const struct plan *p)
{
	REQUIRE(p->n_boots >= 1 && p->n_boots <= PLAN_BOOTS_MAX);
	REQUIRE(p->build_uid != 0 && p->build_uid != UINT32_MAX);
	for (size_t i = 0; i < p->n_boots; i++) {
		const struct plan_boot *b = &p->boots[i];

		REQUIRE(b->boot == i && plan_find_entry(p, b->entry));
		REQUIRE(b->n_trials >= 1 && b->n_trials <= PLAN_TRIALS_MAX);
		for (size_t k = 0; k < b->n_trials; k++) {
			REQUIRE(plan_find_workload(p, b->trials[k].workload));
			REQUIRE(plan_find_load(p, b->trials[k].load));
			REQUIRE(b->trials[k].jobs >= 1 && b->trials[k].jobs <= PLAN_JOBS_MAX);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(cleanup_plan) struct plan *p = NULL, *again = NULL;
	_cleanup_free_ char *json = NULL, *same = NULL;
	const char *why = NULL;
	size_t len, same_len;
	int r = plan_decode((const char *)data, size, &p, &why);

	if (r) {
		REQUIRE(r == -EBADMSG || r == -EPROTONOSUPPORT || r == -E2BIG);
		REQUIRE(!p && why && *why);
		return 0;
	}
	require_inside(p);
	require_counts(p);
	REQUIRE(plan_encode(p, &json, &len) == 0 && strlen(json) == len);
	REQUIRE(plan_decode(json, len, &again, NULL) == 0);
	REQUIRE(plan_encode(again, &same, &same_len) == 0);
	REQUIRE(len == same_len && memcmp(json, same, len) == 0);
	return 0;
}
