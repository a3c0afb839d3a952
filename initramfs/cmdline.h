/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Words of a kernel command line, read as the kernel reads them
 * (Documentation/admin-guide/kernel-parameters.rst; next_arg() in lib/cmdline.c). PID 1 takes its
 * orders from /proc/cmdline only: its argv and environment carry strangers' words, and dotted
 * names never reach them. Pure, no logging.
 */
#ifndef RECOUNT_INITRAMFS_CMDLINE_H
#define RECOUNT_INITRAMFS_CMDLINE_H

#include <stddef.h>

#include "results/macro.h"

/*
 * The value of @key ("recount.token") in @cmdline into @value, which holds @size bytes. Quotes
 * around a word or a value are taken off, "-" and "_" in names are equal, the last of several
 * counts, words after "--" belong to init and are not looked at. "" when the word has no "=".
 * 0, -ENOENT, or -ENAMETOOLONG; @value is written on success only.
 */
int cmdline_get(const char *cmdline, const char *key, char *value, size_t size) _must_check_;

#endif
