/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Words of a kernel command line as the kernel reads it: separated by blanks, a double quote turns
 * the meaning of blanks off and on, no escapes (lib/cmdline.c, next_arg()). Pure.
 */
#ifndef RECOUNT_GRUB_BOOTLINE_H
#define RECOUNT_GRUB_BOOTLINE_H

#include <stddef.h>
#include <stdio.h>

#include "results/macro.h"

/* Steps to the next word at or behind *@pos: 1 with *@word (borrowed, quotes included) and *@len,
 * 0 at the end. */
int bootline_next(const char **pos, const char **word, size_t *len);

/* Prints the GRUB argument @arg as GRUB hands it to the kernel: with a blank in it, in double
 * quotes; a backslash before each \ ' ". A blank goes before it unless it is the @first. */
void bootline_print_arg(FILE *f, const char *arg, int first);

/*
 * The GRUB argument that makes GRUB hand over @word (@len bytes): without its double quotes. Into
 * @arg. -EINVAL for a backslash, a single quote or a control character, which GRUB would change;
 * -ENAMETOOLONG.
 */
int bootline_arg(const char *word, size_t len, char *arg, size_t size) _must_check_;

#endif
