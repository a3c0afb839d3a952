/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * recount.cpio: the boot archive that GRUB loads in front of the distribution's initrd.
 * Uncompressed newc (Documentation/driver-api/early-userspace/buffer-format.rst) written by
 * libarchive, holding one file, /recount-init, mode 0755, owner 0, time 0: equal input gives equal
 * bytes. Its size is a multiple of 512, so that what GRUB loads behind it is aligned. It holds no
 * folder: a lib/ of ours would replace the distribution's link of that name. Only `recount` links
 * this. Pure but for reading the program; no logging.
 */
#ifndef RECOUNT_INITRAMFS_CPIO_H
#define RECOUNT_INITRAMFS_CPIO_H

#include <stddef.h>

#include "results/macro.h"

#define CPIO_INIT_NAME "recount-init" /* the one member's name */

/*
 * The archive with the program @init_path in it. Owned by caller, free(). -EBADMSG when @init_path
 * is not a whole static ELF program for x86-64; else the error of open() or read(), -ENOMEM, -EFBIG
 * (over 64 MiB).
 */
int cpio_build(const char *init_path, void **buf, size_t *len) _must_check_;

/*
 * Checks an archive read back, as strictly as the kernel needs it: newc, uncompressed, size a
 * multiple of 512, exactly one member recount-init (regular, 0755, uid 0, one link, a whole static
 * program), TRAILER!!! after it, then zeros only. 0, or -EBADMSG with a text in *why (static,
 * borrowed; @why may be NULL). Pure.
 */
int cpio_check(const void *buf, size_t len, const char **why) _must_check_;

#endif
