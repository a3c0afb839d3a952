/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Order and short forms of kernel versions. */
#include "grub/version.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* The weight of a non-digit: '~' before the end, the end before letters, letters before the rest;
 * "-rc" weighs like '~'. */
static int weight(const char *s)
{
	if (*s == '~' || (strncmp(s, "-rc", 3) == 0 && isdigit((unsigned char)s[3])))
		return -1;
	if (!*s || isdigit((unsigned char)*s))
		return 0;
	return isalpha((unsigned char)*s) ? *s : *s + 256;
}

int version_compare(const char *a, const char *b)
{
	while (*a || *b) {
		size_t la, lb;
		int d;

		while ((*a && !isdigit((unsigned char)*a)) || (*b && !isdigit((unsigned char)*b))) {
			d = weight(a) - weight(b);
			if (d)
				return d;
			a += *a != '\0';
			b += *b != '\0';
		}
		a += strspn(a, "0");
		b += strspn(b, "0");
		la = strspn(a, "0123456789");
		lb = strspn(b, "0123456789");
		if (la != lb)
			return la < lb ? -1 : 1;
		d = memcmp(a, b, la);
		if (d)
			return d;
		a += la;
		b += lb;
	}
	return 0;
}

static void cut(char *s, size_t at)
{
	s[at] = '\0';
}

/* Cuts "SEPWORD" off the end, once, when WORD is one of @words; 1 when it did. */
static int cut_word(char *s, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(s), w = strlen(words[i]);

		if (len > w + 1 && strcmp(s + len - w, words[i]) == 0 &&
		    strchr("-._", s[len - w - 1])) {
			cut(s, len - w - 1);
			return 1;
		}
	}
	return 0;
}

/* Cuts trailing "-word" parts that begin with a letter, but no "-rcN". */
static void cut_flavours(char *s)
{
	char *dash;

	while ((dash = strrchr(s, '-')) && dash > s && isalpha((unsigned char)dash[1]) &&
	       !(strncmp(dash, "-rc", 3) == 0 && isdigit((unsigned char)dash[3])))
		cut(s, (size_t)(dash - s));
}

/* Cuts "+deb12", ".fc40", ".el9_4" and the like, wherever they stand. */
static void cut_marks(char *s)
{
	static const char *const marks[] = {"+deb", "+rpt", "+bpo", ".fc", ".el"};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		char *p = strstr(s, marks[i]);
		size_t len = strlen(marks[i]);

		if (!p || p == s || !isdigit((unsigned char)p[len]))
			continue;
		len += strspn(p + len, "0123456789._");
		memmove(p, p + len, strlen(p + len) + 1);
	}
}

int version_short(const char *version, int level, char *out, size_t size)
{
	static const char *const machines[] = {"amd64", "x86_64", "686", "686-pae"};
	char *p;

	if (strlen(version) >= size)
		return -ENAMETOOLONG;
	strcpy(out, version);
	if (level >= VERSION_SHORT_LEVELS - 1)
		return 0;
	cut_word(out, machines, ARRAY_SIZE(machines));
	if (level < 2)
		cut_flavours(out);
	if (level < 1) {
		cut_marks(out);
		p = strstr(out, ".0-rc");
		if (p)
			memmove(p, p + 2, strlen(p + 2) + 1);
	}
	return 0;
}
