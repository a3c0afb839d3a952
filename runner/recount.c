/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The command: its table of verbs is the map of the program and makes the usage text. */
#include <stdio.h>
#include <string.h>

#include "results/log.h"
#include "runner/options.h"

#define CHOICE "kernels loads rounds home-every jobs tree target product baseline seed swap append"

static const struct verb verbs[] = {
	{"kernels", "", "what could be booted here, and why the rest cannot", "kernels", 0,
	 verb_kernels},
	{"format", "--store DEV --arena DEV", "make the two partitions that recount needs",
	 "store arena force", 0, verb_format},
	{"prepare", "--tree SRC", "put a tree into the arena and prove that it builds",
	 "tree target product config jobs", 0, verb_prepare},
	{"check", "", "every obstacle with its remedy; changes nothing", CHOICE, 0, verb_check},
	{"plan", "", "print the whole plan with a time estimate; changes nothing", CHOICE, 0,
	 verb_plan},
	{"start", "", "check, plan, install, arm, ask, reboot", CHOICE " yes no-reboot notice", 0,
	 verb_start},
	{"status", "", "how far the campaign is", "", 0, verb_status},
	{"stop", "", "disarm; the results stay", "", 0, verb_stop},
	{"resume", "[ID]", "go on after a stop", "yes no-reboot notice", 1, verb_resume},
	{"report", "[DIR] [ID]", "the table, of the store or of a folder with its content",
	 "format baseline", 2, verb_report},
	{"uninstall", "", "leave the machine as it was; the results stay", "", 0, verb_uninstall},
	{"referee", "", "run by the system at every normal boot", "notice no-reboot bmc", 0,
	 verb_referee},
};

static void print_usage(FILE *out)
{
	char left[64];

	fputs("usage: recount [--root DIR] VERB [OPTIONS]\n"
	      "Boots the machine's kernels in random order, times builds in each, reports.\n\n",
	      out);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		snprintf(left, sizeof(left), "%s %s", verbs[i].name,
			 strlen(verbs[i].arguments) > 10 ? "" : verbs[i].arguments);
		fprintf(out, "  %-19s %s\n", left, verbs[i].help);
	}
	fputs("\n", out);
	options_print_help(out, NULL);
	fputs("  --help, --version\n\nrecount VERB --help tells the options of a verb.\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage, 3 refused: machine or plan not fit.\n",
	      out);
}

static void print_verb_help(FILE *out, const struct verb *verb)
{
	fprintf(out, "usage: recount %s%s%s%s\n%s\n\n", verb->name,
		*verb->accepts ? " [OPTIONS]" : "", *verb->arguments ? " " : "", verb->arguments,
		verb->help);
	options_print_help(out, verb);
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static void say_unknown(const char *word)
{
	const char *names[ARRAY_SIZE(verbs)], *near;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		names[i] = verbs[i].name;
	near = options_nearest(word, names, ARRAY_SIZE(verbs));
	log_info("there is no verb \"%s\"%s%s%s", word, near ? "; \"" : "", near ? near : "",
		 near ? "\" is near" : "");
	log_info("see recount%s%s --help", near ? " " : "", near ? near : "");
}

/* Asked for on the command line: 0; a result that could not be printed is a failure. */
static int printed(void)
{
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : EXIT_DONE;
}

int main(int argc, char *argv[])
{
	struct options o;
	const struct verb *verb;
	enum options_result result;
	int i, r;

	options_init(&o);
	result = options_parse_global(argc, argv, &o, &i);
	if (result == OPTIONS_RUN && i >= argc) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	verb = result == OPTIONS_RUN ? find_verb(argv[i]) : NULL;
	if (result == OPTIONS_RUN && !verb) {
		say_unknown(argv[i]);
		return EXIT_USAGE;
	}
	if (verb)
		result = options_parse_verb(verb, argc - i, argv + i, &o);
	switch (result) {
	case OPTIONS_HELP:
		if (verb)
			print_verb_help(stdout, verb);
		else
			print_usage(stdout);
		return printed();
	case OPTIONS_VERSION:
		puts("recount " RECOUNT_VERSION);
		return printed();
	case OPTIONS_WRONG:
		return EXIT_USAGE;
	case OPTIONS_RUN:
		break;
	}
	r = verb->run(&o);
	return r == EXIT_DONE ? printed() : r;
}
