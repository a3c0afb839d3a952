/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counts words. */
#include <ctype.h>

#include "tiny.h"

int word_count(const char *text)
{
	int count = 0, inside = 0;

	for (; *text; text++) {
		if (isspace((unsigned char)*text))
			inside = 0;
		else if (!inside++)
			count++;
	}
	return count;
}
