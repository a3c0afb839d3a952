/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds a number in a list. */
#include "tiny.h"

int list_find(const int *list, int length, int wanted)
{
	for (int i = 0; i < length; i++) {
		if (list[i] == wanted)
			return i;
	}
	return -1;
}
