/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The text indexes of a /lib/modules/VERSION folder (modules.dep, modules.alias, modules.softdep,
 * modules.builtin; depmod(8), modules.dep(5)) for kernels whose .bin indexes are missing or
 * damaged, where libkmod finds nothing. Only modules.c uses it. Says what to load; loads nothing.
 */
#ifndef RECOUNT_INITRAMFS_MODINDEX_H
#define RECOUNT_INITRAMFS_MODINDEX_H

#include <stddef.h>

#include "results/macro.h"

struct modindex;

/* Reads the text files in @dir; only modules.dep must be there (-ENOENT). -EFBIG: it is larger than
 * 16 MiB; one of the others that is counts as missing. A path with ".." in it is passed over. Owned
 * by caller, modindex_free(). */
int modindex_open(const char *dir, struct modindex **out) _must_check_;
void modindex_free(struct modindex *index);

static inline void cleanup_modindex(struct modindex **index)
{
	modindex_free(*index);
}

/* True when libkmod can use the .bin indexes in @dir: modules.dep.bin and modules.alias.bin exist
 * and start with the index magic. */
int modindex_has_bin(const char *dir);

/* Paths of module files. Borrowed from the index, array owned: free(paths). */
struct modindex_list {
	const char **paths;
	size_t n;
	unsigned depth; /* of modindex_resolve() at work; 0 outside */
};

/*
 * Appends to @list what must be loaded for @alias, a modalias or a module's name, in the order of
 * loading and each file once: for every module that matches, its soft dependencies "pre", its
 * dependencies, itself, its soft dependencies "post". Paths are relative to the folder, or
 * absolute, as modules.dep has them. Modules that are built in need nothing. -ENOENT when nothing
 * matches, neither a file nor a built-in module; -ELOOP when dependencies go 64 deep.
 */
int modindex_resolve(const struct modindex *index, const char *alias,
		     struct modindex_list *list) _must_check_;

#endif
