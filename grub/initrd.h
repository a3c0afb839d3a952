/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Is an initrd whole? Read at plan time, so that a full /boot is found before any reboot. */
#ifndef RECOUNT_GRUB_INITRD_H
#define RECOUNT_GRUB_INITRD_H

#include "results/macro.h"

/*
 * Reads the whole initrd at @path: a chain of uncompressed cpio archives and one compressed
 * stream, decompressed to its end by libarchive, whose last file must be cpio's TRAILER!!!. A
 * bootconfig behind it is allowed, and so are zero bytes (not after lz4 and zstd without checksum).
 * 0, or -EBADMSG with *why (static, reads after "its initrd …") for an empty, truncated or unknown
 * one, or one that unpacks to more than 4 GiB. No program is started. Limits: a method that
 * libarchive cannot decompress itself (lzo) is only known by its first bytes; another archive
 * behind the compressed one is taken for damage, or not looked at; a wrong byte that decodes to
 * another one is only found by the methods whose check libarchive tests (xz, bzip2). Formats: the
 * kernel's Documentation/driver-api/early-userspace/buffer-format.rst and lib/decompress.c.
 */
int initrd_check(const char *path, const char **why) _must_check_;

/* The same for an open file, read from its first byte; @fd is borrowed. */
int initrd_check_fd(int fd, const char **why) _must_check_;

#endif
