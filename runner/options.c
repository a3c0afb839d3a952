/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One table of options for all verbs: parsing and help come from it. */
#include "runner/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <sys/stat.h>

#include "grub/bootline.h"
#include "results/log.h"
#include "results/plan.h"
#include "runner/load.h"
#include "runner/planner.h"

enum kind { TEXT, FLAG, COUNT, PARSED };

struct rule {
	const char *name, *arg; /* arg NULL: it takes none */
	const char *help;
	enum kind kind;
	size_t offset;	   /* in struct options, unless PARSED */
	unsigned min, max; /* COUNT */
	int (*parse)(struct options *o, char *value);
};

static int parse_root(struct options *o, char *value)
{
	size_t len = strlen(value);
	struct stat st;

	if (stat(value, &st) || !S_ISDIR(st.st_mode)) {
		log_info("--root %s: no such folder", value);
		return -EINVAL;
	}
	while (len && value[len - 1] == '/')
		value[--len] = '\0';
	o->root = value;
	return 0;
}

static int parse_loads(struct options *o, char *value)
{
	_cleanup_free_ char *copy = strdup(value);
	char *rest = copy, *name;

	if (!copy)
		return log_errno(-ENOMEM, "take --loads");
	while ((name = strsep(&rest, ","))) {
		if (!load_is_known(name)) {
			log_info("--loads: there is no load \"%s\"; there are %s", name,
				 PLANNER_LOADS);
			return -EINVAL;
		}
		if (rest && *rest) {
			_cleanup_free_ char *padded = NULL, *needle = NULL;

			if (asprintf(&padded, ",%s,", rest) < 0 ||
			    asprintf(&needle, ",%s,", name) < 0)
				return log_errno(-ENOMEM, "take --loads");
			if (strstr(padded, needle)) {
				log_info("--loads: \"%s\" is named twice", name);
				return -EINVAL;
			}
		}
	}
	o->loads = value;
	return 0;
}

static int parse_seed(struct options *o, char *value)
{
	unsigned long long seed;
	char *end;

	errno = 0;
	seed = strtoull(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || seed >= UINT64_C(1) << 53) {
		log_info("--seed %s: not a whole number below 2^53", value);
		return -EINVAL;
	}
	o->seed = seed;
	o->has_seed = 1;
	return 0;
}

static int has_double_dash(const char *cmdline)
{
	const char *word;
	size_t len;

	while (bootline_next(&cmdline, &word, &len))
		if (len == 2 && !memcmp(word, "--", 2))
			return 1;
	return 0;
}

static int parse_append(struct options *o, char *value)
{
	char *equals = strchr(value, '=');

	if (!equals || equals == value || !equals[1] || strpbrk(value, "\n\r")) {
		log_info("--append %s: say LABEL='words for its command line', with the label of a "
			 "kernel (see recount kernels)",
			 value);
		return -EINVAL;
	}
	if (has_double_dash(equals + 1)) {
		log_info("--append %s: a -- would hide recount's own words from the kernel; leave "
			 "it "
			 "out",
			 value);
		return -EINVAL;
	}
	if (o->n_appends == OPTIONS_APPENDS_MAX) {
		log_info("--append: more than %d", OPTIONS_APPENDS_MAX);
		return -EINVAL;
	}
	*equals = '\0';
	o->appends[o->n_appends].label = value;
	o->appends[o->n_appends++].cmdline = equals + 1;
	return 0;
}

static int parse_format(struct options *o, char *value)
{
	if (strcmp(value, "text") != 0 && strcmp(value, "json") != 0) {
		log_info("--format %s: say text or json", value);
		return -EINVAL;
	}
	o->json = !strcmp(value, "json");
	return 0;
}

#define AT(field) offsetof(struct options, field)

static const struct rule rules[] = {
	{"kernels", "GLOB,…", "only kernels whose label, version or image matches", TEXT,
	 AT(kernels), 0, 0, NULL},
	{"loads", "NAME,…", "the loads: " PLANNER_LOADS " (default: all)", PARSED, 0, 0, 0,
	 parse_loads},
	{"rounds", "N", "how often every kernel is booted (default 6)", COUNT, AT(rounds), 1, 1000,
	 NULL},
	{"home-every", "ROUNDS", "come home to the default after every so many rounds", COUNT,
	 AT(home_every), 1, 1000, NULL},
	{"jobs", "N", "make -jN (default: the number of CPUs)", COUNT, AT(jobs), 1, PLAN_JOBS_MAX,
	 NULL},
	{"tree", "SRC", "folder or archive of the source; or a folder of the arena", TEXT, AT(tree),
	 0, 0, NULL},
	{"target", "'WORDS'", "what make builds: vmlinux, init/, \"-C tools/lib/api\"", TEXT,
	 AT(target), 0, 0, NULL},
	{"product", "PATH", "the file, or the folder of object files, that the target makes", TEXT,
	 AT(product), 0, 0, NULL},
	{"config", "TARGET|FILE", "configures the tree: defconfig, tinyconfig, or a .config file",
	 TEXT, AT(config), 0, 0, NULL},
	{"baseline", "LABEL", "the kernel that the others are compared with", TEXT, AT(baseline), 0,
	 0, NULL},
	{"seed", "N", "the order of boots is drawn from it (default: a random one)", PARSED, 0, 0,
	 0, parse_seed},
	{"swap", "DEV", "swap partition for the mem load", TEXT, AT(swap), 0, 0, NULL},
	{"append", "LABEL='WORDS'", "an extra entry: that kernel with more on its command line",
	 PARSED, 0, 0, 0, parse_append},
	{"store", "DEV", "partition that becomes the store; all on it is lost", TEXT, AT(store_dev),
	 0, 0, NULL},
	{"arena", "DEV", "partition that becomes the arena; all on it is lost", TEXT, AT(arena_dev),
	 0, 0, NULL},
	{"force", NULL, "also where there is something already", FLAG, AT(force), 0, 0, NULL},
	{"yes", NULL, "do not ask before the reboot", FLAG, AT(yes), 0, 0, NULL},
	{"no-reboot", NULL, "arm, but leave the reboot to the person", FLAG, AT(no_reboot), 0, 0,
	 NULL},
	{"format", "text|json", "for people (default) or for programs", PARSED, 0, 0, 0,
	 parse_format},
	{"notice", "SECONDS", "how long a reboot is announced before (default 60)", COUNT,
	 AT(notice_s), 0, 86400, NULL},
	{"bmc", NULL, "the campaign uses a BMC's watchdog: stop it first", FLAG, AT(bmc), 0, 0,
	 NULL},
	{"root", "DIR", "the machine lies below DIR, as in a rescue system", PARSED, 0, 0, 0,
	 parse_root},
};

/* Values of getopt_long() beside the indexes into the table. */
enum { KEY_HELP = 1000, KEY_VERSION };

void options_init(struct options *o)
{
	*o = (struct options){.root = "", .rounds = 6, .notice_s = 60};
}

static int is_global(const struct rule *rule)
{
	return !strcmp(rule->name, "root");
}

static int takes(const struct verb *verb, const struct rule *rule)
{
	size_t len = strlen(rule->name);
	const char *at;

	if (is_global(rule))
		return 1;
	for (at = verb ? verb->accepts : NULL; at && (at = strstr(at, rule->name)); at += len)
		if ((at == verb->accepts || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return 1;
	return 0;
}

static int apply(struct options *o, const struct rule *rule, char *value)
{
	char *field = (char *)o + rule->offset, *end;
	unsigned long number;

	switch (rule->kind) {
	case TEXT:
		if (!*value) {
			log_info("--%s: the value is empty", rule->name);
			return -EINVAL;
		}
		*(const char **)field = value;
		return 0;
	case FLAG:
		*(int *)field = 1;
		return 0;
	case COUNT:
		errno = 0;
		number = strtoul(value, &end, 10);
		if (*value < '0' || *value > '9' || *end || errno || number < rule->min ||
		    number > rule->max) {
			log_info("--%s %s: not a whole number from %u to %u", rule->name, value,
				 rule->min, rule->max);
			return -EINVAL;
		}
		*(unsigned *)field = (unsigned)number;
		return 0;
	case PARSED:
		return rule->parse(o, value);
	}
	return -EINVAL;
}

static void say_unknown(const struct verb *verb, const char *word)
{
	const char *names[ARRAY_SIZE(rules)], *near;
	_cleanup_free_ char *name = strdup(word + strspn(word, "-"));
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (takes(verb, &rules[i]))
			names[n++] = rules[i].name;
	if (name)
		name[strcspn(name, "=")] = '\0';
	near = name ? options_nearest(name, names, n) : NULL;
	log_info("recount%s%s: there is no option %s%s%s%s", verb ? " " : "",
		 verb ? verb->name : "", word, near ? "; --" : "", near ? near : "",
		 near ? " is near" : "");
}

static void say_see(const struct verb *verb)
{
	log_info("see recount%s%s --help", verb ? " " : "", verb ? verb->name : "");
}

/* The whole table goes to getopt, so that an option of another verb is known for what it is. */
static enum options_result parse(const struct verb *verb, const char *shorts, int argc,
				 char *argv[], struct options *o)
{
	struct option longs[ARRAY_SIZE(rules) + 3] = {0};
	int key;

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		longs[i] = (struct option){rules[i].name,
					   rules[i].arg ? required_argument : no_argument, NULL,
					   (int)i};
	longs[ARRAY_SIZE(rules)] = (struct option){"help", no_argument, NULL, KEY_HELP};
	longs[ARRAY_SIZE(rules) + 1] = (struct option){"version", no_argument, NULL, KEY_VERSION};
	optind = 0; /* makes getopt start anew */
	opterr = 0;
	while ((key = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (key == KEY_HELP || key == 'h')
			return OPTIONS_HELP;
		if (key == KEY_VERSION || key == 'V')
			return OPTIONS_VERSION;
		if (key == ':') {
			log_info("%s: a value is missing", argv[optind - 1]);
			return OPTIONS_WRONG;
		}
		if (key == '?') {
			say_unknown(verb, argv[optind - 1]);
			return OPTIONS_WRONG;
		}
		if (!takes(verb, &rules[key])) {
			log_info("recount%s%s takes no --%s", verb ? " " : "",
				 verb ? verb->name : "", rules[key].name);
			return OPTIONS_WRONG;
		}
		if (apply(o, &rules[key], optarg) < 0)
			return OPTIONS_WRONG;
	}
	return OPTIONS_RUN;
}

enum options_result options_parse_global(int argc, char *argv[], struct options *o, int *verb_index)
{
	enum options_result result = parse(NULL, "+:hV", argc, argv, o);

	if (result == OPTIONS_WRONG)
		say_see(NULL);
	*verb_index = optind;
	return result;
}

enum options_result options_parse_verb(const struct verb *verb, int argc, char *argv[],
				       struct options *o)
{
	enum options_result result = parse(verb, ":hV", argc, argv, o);

	o->args = argv + optind;
	o->n_args = (size_t)(argc - optind);
	if (result == OPTIONS_RUN && o->n_args > verb->args_max) {
		log_info("recount %s: \"%s\" is one word too many", verb->name,
			 o->args[verb->args_max]);
		result = OPTIONS_WRONG;
	}
	if (result == OPTIONS_WRONG)
		say_see(verb);
	return result;
}

void options_print_help(FILE *out, const struct verb *verb)
{
	char left[64];

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		if (!takes(verb, &rules[i]))
			continue;
		snprintf(left, sizeof(left), "--%s%s%s", rules[i].name, rules[i].arg ? " " : "",
			 rules[i].arg ? rules[i].arg : "");
		/* "…" is three bytes wide and one column. */
		fprintf(out, "  %-*s  %s\n", strstr(left, "…") ? 24 : 22, left, rules[i].help);
	}
}

/* Levenshtein distance, for words shorter than the row. */
static size_t distance(const char *a, const char *b)
{
	size_t row[32], len = strlen(b);

	if (len >= ARRAY_SIZE(row))
		return len;
	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < len; j++) {
			size_t best = diagonal + (a[i] != b[j]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j + 1] + 1 < best)
				best = row[j + 1] + 1;
			diagonal = row[j + 1];
			row[j + 1] = best;
		}
	}
	return row[len];
}

const char *options_nearest(const char *word, const char *const *names, size_t n)
{
	const char *best = NULL;
	size_t best_distance = strlen(word) / 3 + 2;

	for (size_t i = 0; i < n; i++) {
		size_t d = distance(word, names[i]);

		if (d < best_distance) {
			best_distance = d;
			best = names[i];
		}
	}
	return best;
}
