/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a test in grub.cfg comes to, as far as it can be told before GRUB runs. Pure. */
#ifndef RECOUNT_GRUB_CONDITION_H
#define RECOUNT_GRUB_CONDITION_H

#include "grub/script.h"

enum condition { CONDITION_NO, CONDITION_UNKNOWN, CONDITION_YES }; /* in this order */

enum condition condition_and(enum condition a, enum condition b);
enum condition condition_or(enum condition a, enum condition b);
enum condition condition_not(enum condition a);

/*
 * The value of "[ … ]" or "test …"; CONDITION_UNKNOWN for every other command, for file tests but
 * -s, -f and -e of a path that ends in /grubenv (@have_grubenv) and for unknown variables.
 */
enum condition condition_of(const struct script_command *c, int have_grubenv);

#endif
