/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measures a text. */
#include <string.h>

#include "tiny.h"

int text_length(const char *text)
{
	return (int)strlen(text);
}
