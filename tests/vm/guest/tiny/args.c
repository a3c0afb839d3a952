/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counts arguments. */
#include "tiny.h"

int args_count(char **argv)
{
	int count = 0;

	while (argv[count])
		count++;
	return count;
}
