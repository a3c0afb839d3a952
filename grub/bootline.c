/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Words of a kernel command line, to GRUB and back. */
#include "grub/bootline.h"

#include <errno.h>
#include <string.h>

int bootline_next(const char **pos, const char **word, size_t *len)
{
	const char *p = *pos + strspn(*pos, " \t\n");
	int quoted = 0;

	*word = p;
	for (; *p && (quoted || !strchr(" \t\n", *p)); p++)
		quoted ^= *p == '"';
	*len = (size_t)(p - *word);
	*pos = p;
	return *len > 0;
}

void bootline_print_arg(FILE *f, const char *arg, int first)
{
	int blank = strchr(arg, ' ') != NULL;

	if (!first)
		fputc(' ', f);
	if (blank)
		fputc('"', f);
	for (; *arg; arg++) {
		if (strchr("\\'\"", *arg))
			fputc('\\', f);
		fputc(*arg, f);
	}
	if (blank)
		fputc('"', f);
}

int bootline_arg(const char *word, size_t len, char *arg, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)word[i];

		if (c == '\\' || c == '\'' || c < ' ' || c == 0x7f)
			return -EINVAL;
		n += c != '"';
	}
	if (n >= size)
		return -ENAMETOOLONG;
	for (size_t i = 0; i < len; i++)
		if (word[i] != '"')
			*arg++ = word[i];
	*arg = '\0';
	return 0;
}
