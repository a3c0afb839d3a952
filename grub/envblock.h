/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * GRUB's environment block: "# GRUB Environment Block\n", NAME=VALUE lines, '#' to the end, 512 or
 * more bytes. Format: GRUB manual, "Environment block", and what grub-editenv reads and writes.
 * The codec is pure; envblock_write() touches one existing file in place. Used for the store's own
 * block (grub/grubenv) and to read the distribution's.
 */
#ifndef RECOUNT_GRUB_ENVBLOCK_H
#define RECOUNT_GRUB_ENVBLOCK_H

#include <stddef.h>

#include "results/macro.h"

#define ENVBLOCK_BYTES 1024
#define ENVBLOCK_MIN   512
#define ENVBLOCK_MAX   65536

struct envblock { /* the bytes, always a well-formed block after envblock_decode() */
	char bytes[ENVBLOCK_MAX];
	size_t len;
};

/* An empty block of ENVBLOCK_BYTES. */
void envblock_init(struct envblock *b);

/*
 * Checks and takes @buf. 0 when strict and canonical; 1 when GRUB would read it but a writer must
 * repair it first (NUL fill, duplicate key, bytes behind the block, a line without '=' or without
 * end): then *b is the canonical rewrite (last value of a duplicate wins and lines that GRUB cannot
 * see, or sees cut at a NUL, are gone, as in GRUB; a length that trailing bytes spoilt is rounded
 * down to 512s). -EBADMSG when GRUB would call it invalid (wrong signature, CRLF, empty) or when it
 * is shorter than ENVBLOCK_MIN or longer than ENVBLOCK_MAX. @why, if given, gets a static text
 * unless 0 is returned. Comment lines and foreign keys are kept byte for byte and in place.
 */
int envblock_decode(const void *buf, size_t len, struct envblock *b, const char **why) _must_check_;

/* The value of @key, unescaped, into @value. -ENOENT, -ENAMETOOLONG. */
int envblock_get(const struct envblock *b, const char *key, char *value, size_t size) _must_check_;

/* Sets or removes (value NULL) @key; every other byte but the fill stays. -ENOSPC when full,
 * -EINVAL for a key that GRUB's format cannot hold. After an error *b is unchanged. */
int envblock_set(struct envblock *b, const char *key, const char *value) _must_check_;

/* Reads @path (links followed). As envblock_decode(); -ENOENT …, -EINVAL when it is no regular
 * file. */
int envblock_read(const char *path, struct envblock *b, const char **why) _must_check_;

/*
 * *Durable.* Writes the block over the existing file of the same size in place: open without
 * O_TRUNC, one pwrite, fsync, then reads it back past the page cache and compares (-EIO when it
 * differs). Never renames: GRUB does not replay journals. -EINVAL when the size differs.
 */
int envblock_write(const char *path, const struct envblock *b) _must_check_;

/*
 * *Durable.* Makes the file @path with @b when it does not exist or has another size: temporary
 * name, rename, fsync of file and folder (which is made when missing). GRUB sees the new file only
 * once the journal is empty: unmount the file system before the reboot.
 */
int envblock_create(const char *path, const struct envblock *b) _must_check_;

#endif
