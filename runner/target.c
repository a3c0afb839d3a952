/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Turns --target into commands. */
#include "runner/target.h"

#include <errno.h>
#include <string.h>

#define BLANKS " \t"

int target_is_part(const char *target)
{
	return !strncmp(target, "-C", 2) && strchr(BLANKS, target[2]);
}

/* @words, then the blank-separated words of @text, as an argv; NULL: no memory. */
static char **make_argv(const char *const *words, size_t n_words, const char *text)
{
	_cleanup_free_ char *copy = strdup(text);
	char **argv = calloc(n_words + strlen(text) + 2, sizeof(*argv));
	char *rest = copy, *word;
	int complete = argv && copy;
	size_t n = 0;

	while (complete && n < n_words) {
		argv[n] = strdup(words[n]);
		complete = argv[n++] != NULL;
	}
	while (complete && (word = strsep(&rest, BLANKS))) {
		if (!*word)
			continue;
		argv[n] = strdup(word);
		complete = argv[n++] != NULL;
	}
	if (complete)
		return argv;
	while (n > 0)
		free(argv[--n]);
	free(argv);
	return NULL;
}

static size_t count(char *const *argv)
{
	size_t n = 0;

	while (argv[n])
		n++;
	return n;
}

static int make_commands(const char *target, struct plan_workload *w)
{
	static const char *const make[] = {"make"};
	_cleanup_free_ char *clean = NULL;

	w->build = make_argv(make, 1, target);
	if (!w->build)
		return -ENOMEM;
	if (count(w->build) > PLAN_ARGS_MAX)
		return -E2BIG;
	if (!w->build[1] || (target_is_part(target) && !w->build[2]))
		return -EINVAL;
	if (asprintf(&clean, "%s%s clean", target_is_part(target) ? "-C " : "",
		     target_is_part(target) ? w->build[2] : "") < 0)
		return -ENOMEM;
	w->clean = make_argv(make, 1, clean);
	return w->clean ? 0 : -ENOMEM;
}

/* Where a target's product is; of one that is not known, all object files count. */
static const char *usual_product(const char *target, const struct plan_workload *w)
{
	size_t len = strlen(w->build[1]);

	if (target_is_part(target))
		return w->build[2];
	if (w->build[2])
		return ".";
	if (!strcmp(w->build[1], "vmlinux"))
		return "vmlinux";
	if (!strcmp(w->build[1], "bzImage"))
		return "arch/x86/boot/bzImage";
	return w->build[1][len - 1] == '/' ? w->build[1] : ".";
}

int target_parse(const char *target, const char *product, struct plan_workload *w, const char **why)
{
	size_t len;
	int r;

	target += strspn(target, BLANKS);
	*why = *target ? "-C needs a folder of the tree" : "it holds no word";
	r = make_commands(target, w);
	if (r == -E2BIG) {
		*why = "it holds too many words for one command; name fewer targets";
		return -EINVAL;
	}
	if (r < 0)
		return r;
	/* What the plan would refuse is refused before the tree is built. */
	*why = "it holds a control character, or a word that is too long";
	if (!plan_is_command(w->build) || !plan_is_command(w->clean))
		return -EINVAL;
	if (!product)
		product = usual_product(target, w);
	*why = "the product must be a path inside the tree";
	if (!plan_is_inside(product))
		return -EINVAL;
	w->product = strdup(product);
	if (!w->product)
		return -ENOMEM;
	len = strlen(w->product);
	while (len > 1 && w->product[len - 1] == '/')
		w->product[--len] = '\0';
	return 0;
}

char **target_insert(char *const *argv, char *word)
{
	size_t n = count(argv);
	char **longer = calloc(n + 2, sizeof(*longer));

	if (!longer)
		return NULL;
	longer[0] = argv[0];
	longer[1] = word;
	memcpy(&longer[2], &argv[1], (n - 1) * sizeof(*longer));
	return longer;
}

int target_clean_parallel(struct plan_workload *w, unsigned jobs)
{
	char **argv, *word;

	if (asprintf(&word, "-j%u", jobs) < 0)
		return -ENOMEM;
	argv = target_insert(w->clean, word);
	if (!argv) {
		free(word);
		return -ENOMEM;
	}
	free(w->clean);
	w->clean = argv;
	return 0;
}

static int argv_equal(char *const *a, char *const *b)
{
	size_t i;

	for (i = 0; a[i] && b[i]; i++)
		if (strcmp(a[i], b[i]) != 0)
			return 0;
	return !a[i] && !b[i];
}

int target_equal(const struct plan_workload *a, const struct plan_workload *b)
{
	return argv_equal(a->build, b->build) && !strcmp(a->product, b->product);
}
