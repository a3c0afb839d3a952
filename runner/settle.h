/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The referee's bookkeeping in the open store: what referee.h decides is written down here. Used by
 * `recount referee` and `resume`. Every step may be repeated after a power cut between any two of
 * its writes. Failures are logged.
 */
#ifndef RECOUNT_RUNNER_SETTLE_H
#define RECOUNT_RUNNER_SETTLE_H

#include "runner/referee.h"

struct settle { /* borrowed but for @campaign */
	struct store *store;
	const char *store_dir, *root;
	const struct plan *plan;
	const char *plan_sha256;
	struct campaign *campaign; /* loaded anew after everything that was written */
};

/* Loads the campaign. Free with settle_clear(). */
int settle_load(struct settle *s) _must_check_;
void settle_clear(struct settle *s);

/*
 * Judges the open attempt and books it. @token: recount.token of this boot's command line, or "".
 * The text of a panic goes into panic-N.txt before the attempt is booked, and out of the persistent
 * storage after it.
 */
int settle_open(struct settle *s, const char *token, struct referee_finding *out) _must_check_;

/*
 * Hashes kernel and initrd of all boots with unfinished cells (unchanged.h); the attempts that are
 * left to a changed one are booked as "changed", and it is named. A @finding of such a boot becomes
 * REFEREE_NONE. Returns the number of such entries. A file that cannot be read is an error: nothing
 * may be armed then.
 */
int settle_changed(struct settle *s, struct referee_finding *finding) _must_check_;

/* referee_next() with what the store says of arming again. */
enum referee_step settle_next(const struct settle *s, const struct referee_finding *finding,
			      const char *uname, int asked, unsigned *boot, unsigned *attempt);

/*
 * *Durable.* Writes rearmed-KK-N.json: an attempt which GRUB did not take is about to be armed
 * again, for the KKth time. -ETIME when that has happened @max times already.
 */
int settle_rearmed(struct settle *s, unsigned boot, unsigned attempt, unsigned max) _must_check_;

/* *Durable.* Writes campaigns/ID/report/report.txt (starting with @why it ended early, or "") and
 * report.json, and prints the first to standard output. */
int settle_report(struct settle *s, const char *why) _must_check_;

/* Prints the report of the loaded campaign to standard output (the console, for the referee): the
 * results as they are, when nothing can be written any more. */
void settle_last_words(const struct settle *s);

#endif
