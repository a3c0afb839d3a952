/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Setting a campaign off: what `start` and `resume` do once everything is checked and agreed to.
 * Failures are logged.
 */
#ifndef RECOUNT_RUNNER_LAUNCH_H
#define RECOUNT_RUNNER_LAUNCH_H

#include <stdint.h>

#include "results/plan.h"
#include "runner/machine.h"

struct launch { /* all borrowed */
	const struct options *options;
	const struct machine *machine;
	struct store *store; /* open at STORE_DIR */
	const struct plan *plan;
	const char *plan_sha256;
	unsigned boot, attempt; /* to be armed */
	unsigned *bmc_s;	/* as of arm_boot(): for launch_reboot(), or NULL */
	const void *archive;	/* recount.cpio, of install_archive_build() */
	size_t archive_len;
};

/*
 * *Durable.* Installs the boot files on the store, the block and the unit outside, makes the
 * campaign the active one and arms the boot as the very last step. What fails half-way is undone:
 * nothing stays outside the store and no campaign is active. *@arming, if given, becomes 1 when it
 * came as far as the last step: an attempt may then be written down.
 */
int launch_install(const struct launch *l, int *arming) _must_check_;

/* The text of the plan's block for custom.cfg. Owned by caller, free(). */
int launch_block(const struct machine *m, const struct plan *plan, const char *plan_sha256,
		 char **text) _must_check_;

/* Bytes that the campaign can need on the store, its archive included. Pure. */
uint64_t launch_store_bytes(const struct plan *plan, size_t archive_len);

/* 0: the BMC's watchdog may still be counting from another boot, and would reset a trial: refused,
 * with its reason. Else 1. */
int launch_bmc_is_quiet(const struct options *o) _must_check_;

/* Asks @question ("[y/N]" is added): 1 yes, 0 no. --yes answers for the person; without a terminal
 * nobody can, which is -ENOTTY. */
int launch_confirm(const struct options *o, const char *question) _must_check_;

/* 1: the reboot follows at once; 0: it is left to a person. Pure. */
int launch_reboots(const struct options *o);

/* Reboots the machine, with the BMC's watchdog armed for @bmc_s (0: not), or says that it is to be
 * rebooted. Exit code. The store must be closed. */
int launch_reboot(const struct options *o, const char *id, unsigned bmc_s);

#endif
