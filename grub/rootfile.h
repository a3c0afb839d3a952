/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Files of a machine whose root lies below a folder: links are followed as that machine would
 * follow them, never out of the folder. Reads only.
 */
#ifndef RECOUNT_GRUB_ROOTFILE_H
#define RECOUNT_GRUB_ROOTFILE_H

#include <stddef.h>

#include "results/macro.h"

/*
 * Opens the absolute @path below @root ("" is this machine itself) for reading; @flags may add
 * O_PATH, O_DIRECTORY or O_NOFOLLOW. Returns a descriptor (close-on-exec) or -errno; -ENOSYS for
 * @root other than "" on kernels before 5.6 (openat2).
 */
int rootfile_open(const char *root, const char *path, int flags) _must_check_;

/*
 * All bytes of the file, with a NUL (not counted) behind them. -EFBIG when there are more than
 * @max, -EINVAL when it is no regular file. Owned by caller, free().
 */
int rootfile_read(const char *root, const char *path, size_t max, char **buf,
		  size_t *len) _must_check_;

#endif
