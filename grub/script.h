/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * GRUB's shell language cut into commands: quotes, backslashes, comments and variables are
 * resolved, nothing is run. Source: GRUB manual, "Writing full configuration files directly".
 * Used by the menu reader alone.
 */
#ifndef RECOUNT_GRUB_SCRIPT_H
#define RECOUNT_GRUB_SCRIPT_H

#include <stddef.h>

#include "results/macro.h"

#define SCRIPT_BYTES_MAX 16384 /* of one command, variables resolved */

struct script_word {
	char *text;
	int plain;   /* no quote, backslash or variable in it: may be a keyword */
	int unknown; /* a variable whose value cannot be known is in it */
};

struct script_command {
	struct script_word *words;
	size_t n;
};

/* Value of the variable @name (borrowed, "" when unset); sets *@unknown when it cannot be known
 * before GRUB runs. */
typedef const char *script_lookup(void *data, const char *name, int *unknown);

struct script {
	const char *pos; /* NUL-terminated text, borrowed */
	script_lookup *lookup;
	void *data;
};

/*
 * The next command: 1 with @out (replaced; owned by caller, script_command_free()), 0 at the end,
 * -EBADMSG for an open quote, -E2BIG for a command of more than SCRIPT_BYTES_MAX bytes (variables
 * that hold each other twice grow without end). if, elif, while, until, then, else, do, "{" and "}"
 * are commands of one word, but a "{" behind other words is the last word of their command.
 */
int script_next(struct script *s, struct script_command *out) _must_check_;
void script_command_free(struct script_command *c);

#endif
