/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The store: a folder (the mounted RECOUNT partition, or a copy of it) that holds plans, results
 * and the one-shot key. The state is the files; there is no other state. Every file is written to
 * a temporary name, fsynced, renamed, and its folder fsynced; nothing is ever overwritten except
 * `active`, what goes through store_replace(), and grub/grubenv (which belongs to grub/). Used by
 * recount-init, the referee and every command. Does not mount anything.
 */
#ifndef RECOUNT_RESULTS_STORE_H
#define RECOUNT_RESULTS_STORE_H

#include <stddef.h>

#include "results/plan.h"
#include "results/record.h"

#define STORE_ID 49 /* campaign id and NUL */

struct store;

/* Opens the folder @dir. -ENOTDIR, -ENOENT … Owned by caller, store_close(). */
int store_open(const char *dir, struct store **out) _must_check_;
void store_close(struct store *s);
static inline void cleanup_store(struct store **s)
{
	store_close(*s);
}

/*
 * Durable new file at @path (relative, folders are made): temporary name, write, fsync, rename,
 * fsync of the folder and of each folder made. -EEXIST when there is one already and @path is not
 * "active". -EINVAL for absolute or empty paths and for names that start with a dot. A link in the
 * way is never followed: -ELOOP or -ENOTDIR. After any failure or power cut either the
 * whole file is there or none; a leftover temporary file is ignored and replaced.
 */
int store_put(struct store *s, const char *path, const void *buf, size_t len) _must_check_;

/* The same for what is made anew as a whole (`prepare`, a report): an earlier file gives way, and
 * after a power cut either the old one or the new one is there, whole. */
int store_replace(struct store *s, const char *path, const void *buf, size_t len) _must_check_;

/* The bytes of @path, NUL-terminated beyond @len. -ENOENT, -E2BIG over @max, -EINVAL when it is not
 * a plain file. Caller frees. */
int store_get(struct store *s, const char *path, size_t max, char **buf, size_t *len) _must_check_;

/* Removes @path durably; 0 also when it is not there. */
int store_remove(struct store *s, const char *path) _must_check_;

/* Names in the folder @path, sorted, without those that start with a dot. n = 0 when there is no
 * such folder. Owned by caller, store_names_free(). */
int store_list(struct store *s, const char *path, char ***names, size_t *n) _must_check_;
void store_names_free(char **names, size_t n);

/* The active campaign's id in @id; -ENOENT when none is active; -EBADMSG when damaged. */
int store_active(struct store *s, char id[STORE_ID]) _must_check_;
int store_activate(struct store *s, const char *id) _must_check_;
int store_deactivate(struct store *s) _must_check_;

/* Ids of all campaigns, sorted. Owned by caller, store_names_free(). */
int store_campaigns(struct store *s, char ***ids, size_t *n) _must_check_;

/* campaigns/ID/plan.json decoded; @sha256 (may be NULL) gets the hash of its bytes. Errors of
 * store_get() and plan_decode(); -EBADMSG also when it is the plan of another id. @why, if given,
 * is what plan_decode() names, or NULL when the file could not be read. */
int store_plan(struct store *s, const char *id, struct plan **out, char sha256[PLAN_SHA256],
	       const char **why) _must_check_;

/* Path of a boot's file: campaigns/ID/boots/0007/STEM-N.json into @buf; for trials STEM is
 * "trial-03". @ext without dot, e.g. "json". */
void store_boot_path(char buf[256], const char *id, unsigned boot, const char *stem,
		     unsigned attempt, const char *ext);

#endif
