/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The distribution's own GRUB menu, read for facts: which entry is the default, and with which
 * command line, initrds and file system it boots each kernel. Reads grub.cfg as grub-mkconfig
 * writes it (menuentry, submenu, linux, initrd, search --fs-uuid, set, if with string tests), not
 * the whole shell language; what it cannot resolve it says so. Nothing is written.
 */
#ifndef RECOUNT_GRUB_MENU_H
#define RECOUNT_GRUB_MENU_H

#include <stddef.h>

#include "results/macro.h"

struct menu_entry {
	char *title, *id;		  /* id: from --id or $menuentry_id_option, or NULL */
	char *path;			  /* numeric path in the menu: "0", "1>2" */
	char *submenu_title, *submenu_id; /* of the enclosing submenu, or NULL */
	char *linux_path;   /* as GRUB sees it: /boot/vmlinuz-6.1, or /vmlinuz-6.1 with a separate
			       /boot; NULL when the entry boots no Linux */
	char *cmdline;	    /* the linux line's other words as the kernel gets them: GRUB's quotes
			       resolved, a word with a blank in double quotes; NULL likewise */
	char *initrd_paths; /* the initrd line's words, blank-separated, or NULL */
	char *fs_uuid;	    /* of the last search --fs-uuid in the entry. NULL when there is none
			       (grub-mkconfig found no UUID): the caller then takes the UUID of the
			       file system that holds the image file */
	int recovery;	    /* boots single user / recovery / rescue */
};

struct menu {
	struct menu_entry *entries; /* in the order of the menu; other systems' too */
	size_t n;
	int sources_custom_cfg; /* grub.cfg sources custom.cfg (41_custom) */
	int superusers;	  /* a password protects the menu (grub.cfg, custom.cfg or user.cfg) */
	int boot_counter; /* the environment block has boot_counter (greenboot) */
	int bls; /* grub.cfg runs blscfg (Fedora): kernels are in /boot/loader/entries, not here;
		    n may be 0 and default_entry is NULL */
	/* Borrowed. NULL: could not be resolved; also where GRUB would silently boot the first
	 * entry because the default names one that is gone. */
	const struct menu_entry *default_entry;
	char *default_word; /* what the default says: "0", an id, a title; for messages */
	char *cfg_path;	    /* the grub.cfg read, without @root */
	char *dir;	    /* its folder, where custom.cfg belongs, e.g. /boot/grub */
};

/*
 * Finds /boot/grub/grub.cfg or /boot/grub2/grub.cfg below @root and reads it with its grubenv
 * (saved_entry when GRUB_DEFAULT=saved; a pending next_entry does not count). -ENOENT; -EBADMSG
 * for an open quote or block; -EFBIG over 4 MiB; -E2BIG for more than 4096 entries, or variables,
 * or a command of more than SCRIPT_BYTES_MAX. Owned by caller, menu_free().
 */
int menu_read(const char *root, struct menu **out) _must_check_;
void menu_free(struct menu *m);
static inline void cleanup_menu(struct menu **m)
{
	menu_free(*m);
}

/* The first ordinary (not recovery) entry that boots the image @file_name (last component), or
 * NULL. */
const struct menu_entry *menu_find_kernel(const struct menu *m, const char *file_name);

/*
 * The command line of a recount entry: @cmdline (from the menu) without quiet, splash,
 * crashkernel=, resume=, recount.*, rdinit=, panic=, BOOT_IMAGE=, with @append (may be NULL) at the
 * end, but before a "--", behind which the kernel reads no parameters. Owned by caller. Quoted
 * values stay whole.
 */
int menu_cmdline(const char *cmdline, const char *append, char **out) _must_check_;

#endif
