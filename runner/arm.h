/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Arming a boot: attempt-N.json first, then next_entry and recount_token in one in-place write.
 * Done by `start`, the referee and recount-init, all through this. The store must be unmounted
 * before the reboot, since GRUB does not replay its journal.
 */
#ifndef RECOUNT_RUNNER_ARM_H
#define RECOUNT_RUNNER_ARM_H

#include "results/campaign.h"

/*
 * Arms @boot, @attempt of @plan in the store @s opened at the folder @store_dir. An attempt that
 * is written down already is armed again with its own token. The token into @token. For how many
 * seconds the BMC's watchdog is to be armed as well (bmc.h), which is left to the caller because
 * nothing may come between that and the reboot, into *@bmc_s: 0, not at all. NULL: it is left to a
 * person to reboot, some day, so it cannot be armed. *Durable.* Logs failures.
 */
int arm_boot(struct store *s, const char *store_dir, const struct plan *plan,
	     const char *plan_sha256, unsigned boot, unsigned attempt, char token[RECORD_TOKEN],
	     unsigned *bmc_s) _must_check_;

/* Writes @text as the new file @path on the store. -EEXIST, which is not logged. *Durable.* */
int arm_put_text(struct store *s, const char *path, const char *text) _must_check_;

/* Books an attempt as failed: failed-N.json with @reason and @evidence (file name or ""). 0 also
 * when it is booked already. Logs failures. */
int arm_book_failure(struct store *s, const struct plan *plan, unsigned boot, unsigned attempt,
		     const char *reason, const char *evidence) _must_check_;

/* The number of the next attempt in the order of arming: one more than there are. Logs failures. */
int arm_sequence(struct store *s, const struct plan *plan, unsigned *out) _must_check_;

/* Now, as 2026-11-30T22:51:59Z. */
void arm_utc(char text[32]);

#endif
