/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a dying kernel left in persistent storage: the dmesg records of /sys/fs/pstore, and of
 * /var/lib/systemd/pstore, where systemd-pstore.service moves them early in the next boot. Only
 * the referee asks. Formats: Documentation/ABI/testing/pstore, systemd-pstore.service(8).
 */
#ifndef RECOUNT_RUNNER_PSTORE_H
#define RECOUNT_RUNNER_PSTORE_H

#include <stddef.h>
#include <stdint.h>

#include "results/macro.h"

#define PSTORE_TEXT_MAX (1u << 20) /* what is longer is cut at its end */

struct pstore {
	char *text; /* panics and oopses, parts in the order of time; NULL: none */
	size_t len;
	char **files; /* the records that the text was made of */
	size_t n;
};

/*
 * Reads the records below @root ("" for the running machine) that are younger than @since_s (UTC)
 * and hold a panic or an oops. Older ones, and those that cannot be read as text, are left out and
 * left alone. Returns 0 also when there is none. Owned by caller, pstore_free().
 */
int pstore_find(const char *root, int64_t since_s, struct pstore *out) _must_check_;
void pstore_free(struct pstore *p);

/* Removes the records of @p, so that the storage has room for the next one; what cannot be removed
 * stays. */
void pstore_delete(const struct pstore *p);

#endif
