/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The tree of menu titles, and which of them GRUB's variable `default` means. Rules of GRUB 2.06
 * (normal/menu.c): what begins with a digit is a number, also "6.1-old"; everything else is an id
 * or a title; '>' goes into a submenu, ">>" is a '>' of the name. Pure.
 */
#ifndef RECOUNT_GRUB_MENU_DEFAULT_H
#define RECOUNT_GRUB_MENU_DEFAULT_H

#include <stddef.h>

#include "results/macro.h"

#define MENU_TOP ((size_t)-1)

struct menu_node {
	size_t parent;	 /* a submenu's node, or MENU_TOP */
	size_t index;	 /* among its siblings */
	size_t entry;	 /* set by the caller; MENU_TOP: a submenu */
	int conditional; /* may not be there when GRUB runs */
	char *title, *id;
};

struct menu_nodes {
	struct menu_node *nodes;
	size_t n;
};

/* Adds a node; *@path is its numeric path, "1>2", owned by caller. */
int menu_nodes_add(struct menu_nodes *t, size_t parent, const char *title, const char *id,
		   int conditional, size_t *node, char **path) _must_check_;

/* The entry that @word means. -ENOENT when it names none, or a number whose meaning depends on
 * entries that may not be there. */
int menu_nodes_resolve(const struct menu_nodes *t, const char *word, size_t *entry) _must_check_;

void menu_nodes_free(struct menu_nodes *t);

#endif
