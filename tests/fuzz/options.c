/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Words behind `recount`, each with a newline at its end. covers: runner/options.c */
#include "tests/fuzz/fuzz.h"

#include "results/log.h"
#include "results/plan.h"
#include "runner/options.h"

#define WORDS_MAX 64

static const struct verb verbs[] = {
	{"start", "", "",
	 "kernels loads rounds jobs baseline seed swap append yes no-reboot format", 0, NULL},
	{"prepare", "", "", "tree target product config jobs store arena force notice", 2, NULL},
	{"stop", "", "", "", 0, NULL},
};

static void require_ranges(const struct options *o, const struct verb *verb)
{
	REQUIRE(o->rounds >= 1 && o->rounds <= 1000 && o->jobs <= PLAN_JOBS_MAX);
	REQUIRE(o->seed < UINT64_C(1) << 53 && o->notice_s <= 86400);
	REQUIRE(o->n_appends <= OPTIONS_APPENDS_MAX);
	for (size_t i = 0; i < o->n_appends; i++)
		REQUIRE(*o->appends[i].label && *o->appends[i].cmdline);
	REQUIRE(o->root && (!verb || o->n_args <= verb->args_max));
	REQUIRE(!o->tree || *o->tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *nowhere;
	_cleanup_free_ char *text = fuzz_text((struct fuzz_input){data, size});
	char name[] = "recount", *argv[WORDS_MAX + 2] = {name}, *rest = text;
	const struct verb *verb;
	enum options_result r;
	struct options o;
	int argc = 1, at = 0;

	if (!nowhere) {
		nowhere = fopen("/dev/null", "we");
		REQUIRE(nowhere);
		log_to(fileno(nowhere));
	}
	while (argc <= WORDS_MAX && rest && *rest)
		argv[argc++] = strsep(&rest, "\n");
	verb = &verbs[size % ARRAY_SIZE(verbs)];
	options_init(&o);
	r = options_parse_global(argc, argv, &o, &at);
	REQUIRE(at >= 1 && at <= argc);
	if (r == OPTIONS_HELP)
		options_print_help(nowhere, size % 2 ? verb : NULL);
	if (r != OPTIONS_RUN || at >= argc)
		return 0;
	require_ranges(&o, NULL);
	r = options_parse_verb(verb, argc - at, argv + at, &o);
	if (r == OPTIONS_RUN)
		require_ranges(&o, verb);
	return 0;
}
