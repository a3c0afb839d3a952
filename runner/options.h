/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What was typed: the options of all verbs, parsed and checked for form, not yet for fitness. */
#ifndef RECOUNT_RUNNER_OPTIONS_H
#define RECOUNT_RUNNER_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "results/macro.h"

#define OPTIONS_APPENDS_MAX 32

/* Exit codes of every verb. */
enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,	  /* typed wrongly */
	EXIT_REFUSED = 3, /* the machine or the plan is not fit */
};

struct options {	  /* strings are borrowed from argv; NULL or 0: not given */
	const char *root; /* "" or the folder under which the machine lies (no slash at its end) */
	const char *kernels; /* GLOB,… */
	const char *loads;   /* NAME,…, all of them known, none twice */
	unsigned rounds;
	unsigned home_every; /* rounds after which the machine comes home; 0: never between */
	unsigned jobs;
	const char *tree;
	const char *target;
	const char *product;
	const char *config; /* prepare: make target or file that configures the tree */
	const char *baseline;
	uint64_t seed; /* < 2^53 */
	int has_seed;
	const char *swap;
	struct {
		const char *label, *cmdline;
	} appends[OPTIONS_APPENDS_MAX];
	size_t n_appends;
	const char *store_dev, *arena_dev; /* format */
	int force, yes, no_reboot;
	int json;	   /* --format json */
	unsigned notice_s; /* the referee's notice before a reboot, default 60 */
	int bmc;	   /* the referee's: the campaign uses a BMC's watchdog */
	char *const *args; /* what follows the options, NULL-terminated */
	size_t n_args;
};

/* One verb of the command: the table in recount.c is the map of the program and makes its usage
 * text. */
struct verb {
	const char *name, *arguments, *help;
	const char *accepts; /* names of the long options it takes, blank-separated */
	size_t args_max;
	int (*run)(const struct options *o); /* exit code */
};

enum options_result {
	OPTIONS_RUN,	 /* go on */
	OPTIONS_HELP,	 /* --help was asked for */
	OPTIONS_VERSION, /* --version was asked for */
	OPTIONS_WRONG,	 /* refused; the reason was printed to standard error */
};

/* The defaults: all that is neither NULL nor 0. */
void options_init(struct options *o);

/*
 * Reads what stands before the verb: --root, --help, --version. *verb_index is that of the first
 * word which is no option (argc: there is none).
 */
enum options_result options_parse_global(int argc, char *argv[], struct options *o,
					 int *verb_index);

/* Reads what follows: argv[0] is the name of @verb. An option that the verb does not take is
 * refused by name. */
enum options_result options_parse_verb(const struct verb *verb, int argc, char *argv[],
				       struct options *o);

/* The options of @verb for people, one a line; NULL: the global ones. */
void options_print_help(FILE *out, const struct verb *verb);

/* Which of @n @names was meant by the mistyped @word; NULL: none is near. Borrowed. Pure. */
const char *options_nearest(const char *word, const char *const *names, size_t n);

int verb_kernels(const struct options *o);
int verb_check(const struct options *o);
int verb_plan(const struct options *o);
int verb_start(const struct options *o);
int verb_status(const struct options *o);
int verb_stop(const struct options *o);
int verb_resume(const struct options *o);
int verb_report(const struct options *o);
int verb_format(const struct options *o);
int verb_prepare(const struct options *o);
int verb_uninstall(const struct options *o);
int verb_referee(const struct options *o);

#endif
