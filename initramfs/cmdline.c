/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernel's own rules for splitting its command line. */
#include "initramfs/cmdline.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

struct word {
	const char *name, *value; /* value NULL: no "=" */
	size_t name_len, value_len;
};

static int is_space(char c)
{
	return isspace((unsigned char)c);
}

/* Splits off the next word of @p; returns where to go on. */
static const char *next_word(const char *p, struct word *w)
{
	const char *equals = NULL, *end;
	int in_quote = 0, quoted = 0;

	if (*p == '"') {
		in_quote = quoted = 1;
		p++;
	}
	for (end = p; *end && (in_quote || !is_space(*end)); end++) {
		/* An "=" at the very start of a word is part of the name, as in the kernel. */
		if (*end == '=' && !equals && end > p)
			equals = end;
		if (*end == '"')
			in_quote = !in_quote;
	}

	w->name = p;
	w->value = NULL;
	w->value_len = 0;
	w->name_len = (size_t)((equals ? equals : end) - p);
	if (equals) {
		w->value = equals + 1;
		w->value_len = (size_t)(end - w->value);
		if (w->value_len && *w->value == '"') {
			w->value++;
			w->value_len--;
			if (w->value_len && w->value[w->value_len - 1] == '"')
				w->value_len--;
		} else if (quoted && w->value_len && end[-1] == '"') {
			w->value_len--;
		}
	} else if (quoted && w->name_len && end[-1] == '"') {
		w->name_len--;
	}
	return end;
}

static char dashed(char c)
{
	return c == '_' ? '-' : c;
}

static int name_is(const struct word *w, const char *key)
{
	size_t i;

	if (strlen(key) != w->name_len)
		return 0;
	for (i = 0; i < w->name_len; i++)
		if (dashed(key[i]) != dashed(w->name[i]))
			return 0;
	return 1;
}

int cmdline_get(const char *cmdline, const char *key, char *value, size_t size)
{
	struct word found = {0}, w;
	const char *p = cmdline;

	for (;;) {
		while (is_space(*p))
			p++;
		if (!*p)
			break;
		p = next_word(p, &w);
		if (!w.value && w.name_len == 2 && memcmp(w.name, "--", 2) == 0)
			break;
		if (name_is(&w, key))
			found = w;
	}
	if (!found.name)
		return -ENOENT;
	if (found.value_len >= size)
		return -ENAMETOOLONG;
	if (found.value_len)
		memcpy(value, found.value, found.value_len);
	value[found.value_len] = '\0';
	return 0;
}
