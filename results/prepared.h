/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * prepared/manifest.json on the store: what `recount prepare` found out about the tree in the
 * arena, the workload and the toolchain. Every plan is drawn from it. Replaced as a whole by the
 * next `prepare`.
 */
#ifndef RECOUNT_RESULTS_PREPARED_H
#define RECOUNT_RESULTS_PREPARED_H

#include "results/plan.h"
#include "results/store.h"

struct prepared {
	struct plan_workload workload; /* with product_sha256, tree_sha256, build_ns */
	unsigned jobs;		       /* of the timed build */
	unsigned build_uid;
	char *arena_uuid;
	struct plan_pair *toolchain; /* path and SHA-256 */
	size_t n_toolchain;
};

/* The rules are the plan's. -EBADMSG when one is broken (also of the encoder: what could not be
 * read again is not written), -EPROTONOSUPPORT (newer schema), -E2BIG, -ENOMEM. Pure. */
int prepared_decode(const char *json, size_t len, struct prepared **out) _must_check_;
int prepared_encode(const struct prepared *p, char **json) _must_check_;
void prepared_free(struct prepared *p);
static inline void cleanup_prepared(struct prepared **p)
{
	prepared_free(*p);
}

/* -ENOENT when nothing was prepared; -EBADMSG when damaged. Owned by caller, prepared_free(). */
int prepared_load(struct store *s, struct prepared **out) _must_check_;
/* *Durable.* */
int prepared_save(struct store *s, const struct prepared *p) _must_check_;
/* *Durable.* From then on nothing is prepared; 0 also when nothing was. */
int prepared_remove(struct store *s) _must_check_;

#endif
