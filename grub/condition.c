/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Three-valued evaluation of tests in grub.cfg. */
#include "grub/condition.h"

#include <string.h>

/* The words of one test; a range of a command. */
struct range {
	const struct script_word *words;
	size_t n;
	int have_grubenv;
};

enum condition condition_and(enum condition a, enum condition b)
{
	return a < b ? a : b;
}

enum condition condition_or(enum condition a, enum condition b)
{
	return a > b ? a : b;
}

enum condition condition_not(enum condition a)
{
	return (enum condition)(CONDITION_YES - a);
}

static enum condition sure(int yes)
{
	return yes ? CONDITION_YES : CONDITION_NO;
}

static enum condition unary(const struct range *r)
{
	const char *op = r->words[0].text, *arg = r->words[1].text, *slash;

	if (strcmp(op, "-n") == 0)
		return sure(*arg != '\0');
	if (strcmp(op, "-z") == 0)
		return sure(*arg == '\0');
	slash = strrchr(arg, '/');
	if (slash && strcmp(slash, "/grubenv") == 0 &&
	    (strcmp(op, "-s") == 0 || strcmp(op, "-f") == 0 || strcmp(op, "-e") == 0))
		return sure(r->have_grubenv);
	return CONDITION_UNKNOWN;
}

/* One test without -a, -o and leading "!". */
static enum condition simple(const struct range *r)
{
	const struct script_word *w = r->words;

	for (size_t i = 0; i < r->n; i++)
		if (w[i].unknown && !(r->n == 2 && strchr(w[1].text, '/')))
			return CONDITION_UNKNOWN;
	if (r->n == 0)
		return CONDITION_NO;
	if (r->n == 1)
		return sure(*w[0].text != '\0');
	if (r->n == 2)
		return unary(r);
	if (r->n == 3 && (strcmp(w[1].text, "=") == 0 || strcmp(w[1].text, "==") == 0))
		return sure(strcmp(w[0].text, w[2].text) == 0);
	if (r->n == 3 && strcmp(w[1].text, "!=") == 0)
		return sure(strcmp(w[0].text, w[2].text) != 0);
	return CONDITION_UNKNOWN;
}

static enum condition primary(const struct range *r)
{
	struct range rest = *r;
	enum condition value;

	while (rest.n > 1 && strcmp(rest.words[0].text, "!") == 0) {
		rest.words++;
		rest.n--;
	}
	value = simple(&rest);
	return (r->n - rest.n) % 2 ? condition_not(value) : value;
}

/* Splits at @op and joins the parts with it; -a binds more tightly than -o. */
static enum condition joined(const struct range *r, const char *op)
{
	int or = strcmp(op, "-o") == 0;
	enum condition value = or ? CONDITION_NO : CONDITION_YES;
	size_t from = 0;

	for (size_t i = 0; i <= r->n; i++) {
		if (i < r->n && !(r->words[i].plain && strcmp(r->words[i].text, op) == 0))
			continue;
		struct range part = {r->words + from, i - from, r->have_grubenv};

		if (or)
			value = condition_or(value, joined(&part, "-a"));
		else
			value = condition_and(value, primary(&part));
		from = i + 1;
	}
	return value;
}

enum condition condition_of(const struct script_command *c, int have_grubenv)
{
	struct range r = {c->words + 1, c->n - 1, have_grubenv};

	if (c->n && strcmp(c->words[0].text, "[") == 0 &&
	    strcmp(c->words[c->n - 1].text, "]") == 0 && c->n >= 2)
		r.n--;
	else if (!c->n || strcmp(c->words[0].text, "test") != 0)
		return CONDITION_UNKNOWN;
	return joined(&r, "-o");
}
