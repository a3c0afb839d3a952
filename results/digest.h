/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SHA-256 (libmd) as 64 hex digits: of bytes, of a file, of a product. */
#ifndef RECOUNT_RESULTS_DIGEST_H
#define RECOUNT_RESULTS_DIGEST_H

#include <stddef.h>

#include "results/plan.h"

/* The hash of @len bytes. Pure. */
void digest_bytes(const void *buf, size_t len, char hex[PLAN_SHA256]);

/* The hash of the file @path. -EINVAL when it is not a plain file, -ELOOP for a link. */
int digest_file(const char *path, char hex[PLAN_SHA256]) _must_check_;

/*
 * The hash of what a build made in @tree: of the file @product; or, when @product is a folder, of
 * the sorted list "NAME\0HASH\n" of the object files (*.o, *.a, *.ko, *.so) below it. -ENOENT when
 * there is no such file or no object file. Never follows links, not on the way to the product
 * either: -ENOTDIR, -ELOOP. A tree could lead root to any file with one.
 */
int digest_product(const char *tree, const char *product, char hex[PLAN_SHA256]) _must_check_;

/*
 * The hash of a tree: sorted list "TYPE MODE NAME\0CONTENT\n" of everything below @path. TYPE is f,
 * d, l or o (anything else); MODE four octal digits; CONTENT a file's hash, a link's target or
 * nothing. Object files and *.cmd, *.d are part of it if present, so hash a clean tree.
 */
int digest_tree(const char *path, char hex[PLAN_SHA256]) _must_check_;

#endif
