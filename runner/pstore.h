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
 * Loads into the running kernel what the records come through, where the system has not done it
 * (systemd-pstore does): efi_pstore on an EFI machine, ramoops when @cmdline, that of the kernel
 * which went down, gave it a place. Nothing happens when there is no such module.
 */
void pstore_load_drivers(const char *cmdline);

/*
 * Reads the records below @root ("" for the running machine) that hold a panic or an oops of the
 * attempt with @token. A text with "recount.token=" on it (the kernel's command line) says itself
 * whether it is one, whatever the dying kernel's clock was; any other counts when it is younger
 * than @since_s (UTC). The rest, and what cannot be read as text, is left out and left alone.
 * Returns 0 also when there is none. Owned by caller, pstore_free().
 */
int pstore_find(const char *root, int64_t since_s, const char *token,
		struct pstore *out) _must_check_;
void pstore_free(struct pstore *p);

/* Removes the records of @p, so that the storage has room for the next one; what cannot be removed
 * stays. */
void pstore_delete(const struct pstore *p);

#endif
