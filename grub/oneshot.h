/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The guarded one-shot: the text of the block in custom.cfg, its installation between markers, and
 * the three keys next_entry, recount_token, recount_taken in the store's own environment block.
 * No file of the distribution is edited.
 */
#ifndef RECOUNT_GRUB_ONESHOT_H
#define RECOUNT_GRUB_ONESHOT_H

#include <stddef.h>

#include "results/macro.h"

#define ONESHOT_CMDLINE_MAX 2047 /* bytes that x86 kernels read; what is longer is cut off */

struct oneshot_entry {
	const char *id; /* ^recount-[a-z0-9_-]+$ */
	const char *title;
	const char *fs_uuid; /* file system that holds kernel and initrd */
	const char *kernel;  /* as GRUB sees it on that file system */
	const char *initrd;  /* the same, several with blanks between, or NULL */
	const char *cmdline; /* complete but for recount.token, which GRUB adds in front */
};

/*
 * The block's text without markers: guard, then one top-level entry per kernel. The guard takes
 * whatever next_entry the store's block holds, once: it clears it, writes recount_taken, and picks
 * the entry only when the cleared key reads back empty and the value was one of @entries' ids.
 * Every other case leaves GRUB's own default. An entry that fails reboots after 5 s. Only commands
 * of Debian's signed GRUB image are used. @unrestricted: the menu has a password. Owned by caller,
 * free(). -EINVAL for no entries, an id that is there twice, and an id, UUID, path, title or
 * command line that GRUB's syntax could misread or the kernel would get changed (quotes other than
 * double ones, backslashes, control characters, a recount.token= of its own); -E2BIG for a command
 * line over ONESHOT_CMDLINE_MAX. Pure.
 */
int oneshot_block(const char *store_uuid, const struct oneshot_entry *entries, size_t n,
		  int unrestricted, char **text) _must_check_;

/*
 * Puts @text between markers into @path (DIR/custom.cfg), replacing an earlier block, keeping every
 * other byte, mode and owner. What is needed to undo it byte for byte (the file did not exist; it
 * had no final newline) is written in the opening marker. -EBADMSG, nothing changed, when only one
 * of the markers is there; -EINVAL when @text has markers of its own or no final newline. *Durable*
 * (temporary name, fsync, rename), but GRUB sees it only once the file system's journal is written
 * back: by checkpoint_make(), or by an ordinary shutdown.
 */
int oneshot_install(const char *path, const char *text) _must_check_;

/* Undoes it byte for byte; removes the file if it did not exist before and nobody has added to it.
 * 0 also when there is no block; -EBADMSG, nothing changed, when only one of the markers is there.
 * *Durable.* */
int oneshot_uninstall(const char *path) _must_check_;

/* Is there a block in @path: 1, 0 or -errno. */
int oneshot_installed(const char *path) _must_check_;

struct oneshot_state { /* "" when a key is unset */
	char next_entry[64];
	char token[96], taken[96];
};

/* The three keys of the block at @grubenv. A damaged block or a value that is too long is
 * -EBADMSG; one that only needs repair is read as GRUB reads it. */
int oneshot_read(const char *grubenv, struct oneshot_state *out) _must_check_;

/*
 * *Durable.* Arms: next_entry and recount_token in one in-place write, read back. A damaged block
 * or a missing file is made anew first. recount_taken is kept. -EINVAL for an @id that is not
 * ^recount-[a-z0-9_-]+$ or a @token with other characters than letters, digits, '.', '_', '-';
 * -ENOSPC when the block has no room for what GRUB will write into it.
 */
int oneshot_arm(const char *grubenv, const char *id, const char *token) _must_check_;

/* *Durable.* Clears next_entry and recount_token, so that GRUB boots the machine's default. 0 also
 * when there is no block; a damaged one is made anew. */
int oneshot_disarm(const char *grubenv) _must_check_;

#endif
