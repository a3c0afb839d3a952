/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parser behind menu_read(); see grub/menu.h. Pure. */
#ifndef RECOUNT_GRUB_MENU_PARSE_H
#define RECOUNT_GRUB_MENU_PARSE_H

#include "grub/envblock.h"
#include "grub/menu.h"

/*
 * Fills entries, default and flags of @m from the text of grub.cfg and the block that its load_env
 * loads. On failure what was filled stays, for menu_free().
 */
int menu_parse(struct menu *m, const char *cfg, const struct envblock *env,
	       int have_grubenv) _must_check_;

#endif
