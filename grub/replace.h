/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whole-file replacement for files that GRUB reads, and the folders they lie in. */
#ifndef RECOUNT_GRUB_REPLACE_H
#define RECOUNT_GRUB_REPLACE_H

#include <stddef.h>

#include "results/macro.h"

/*
 * *Durable.* Makes @path hold exactly @buf: temporary name in the same folder, write, fsync,
 * rename, fsync of the folder. A link is followed, not replaced; mode and owner of an existing
 * file are kept, a new one gets mode 0644. After a failure the old file is untouched.
 */
int replace_file(const char *path, const void *buf, size_t len) _must_check_;

/* *Durable.* Removes @path (the target of a link); 0 also when it is not there. */
int replace_remove(const char *path) _must_check_;

/* *Durable.* Makes the folder that @path lies in; 0 also when it exists. Only the last one. */
int replace_make_folder(const char *path) _must_check_;

#endif
