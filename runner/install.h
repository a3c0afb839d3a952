/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a campaign needs besides its plan, and its complete removal. Outside the store: a block in
 * custom.cfg (grub/oneshot.h) and the referee's systemd unit, enabled for multi-user.target. On the
 * store: recount.cpio and grub/grubenv. Used by start, resume, stop, uninstall and the referee.
 * @root is "" or the folder under which the machine lies. Failures are logged.
 */
#ifndef RECOUNT_RUNNER_INSTALL_H
#define RECOUNT_RUNNER_INSTALL_H

#include <stddef.h>

#include "results/macro.h"

#define INSTALL_UNIT "recount-referee.service"
#define INSTALL_PATH 64 /* /boot/grub/custom.cfg */

/*
 * *Durable.* The block @text into custom.cfg of GRUB's folder @grub_dir (as in menu.dir), where on
 * the running machine GRUB sees it from then on, even if the power goes; then the unit, which runs
 * this very program and tells it, with @uses_bmc, that a BMC's watchdog may be counting. What is
 * there already is replaced. -EEXIST when a unit of that name is not ours, -ENOENT when the machine
 * has no /etc/systemd/system. After a failure call install_outside_remove().
 */
int install_outside(const char *root, const char *grub_dir, const char *text, unsigned notice_s,
		    int uses_bmc) _must_check_;

/*
 * *Durable.* Undoes it byte for byte: a file or folder that did not exist before is gone. 0 also
 * when there is nothing, or only a part of it. Whatever fails, the rest is removed all the same.
 * The unit goes last: it finishes at the next boot what a power cut stopped.
 */
int install_outside_remove(const char *root) _must_check_;

/* Is anything of it there: 1 or 0. */
int install_outside_present(const char *root);

/* 1: the unit is there, and says that its campaign uses a BMC's watchdog; else 0. */
int install_uses_bmc(const char *root);

/* *Durable.* Removes the block alone: whatever the key says then, GRUB does not look at it. 0 also
 * when there is none. */
int install_block_remove(const char *root) _must_check_;

/* What the next boot needs and is not there, for people (static): the block, or recount.cpio in the
 * mounted store @store_dir. NULL: nothing is missing. */
const char *install_missing(const char *root, const char *store_dir);

/* custom.cfg below @root with only one of the block's two markers in it, for people: 1 with its
 * path in @path. Nobody but a person can mend it. 0: there is none. */
int install_block_damaged(const char *root, char path[INSTALL_PATH]);

/* The boot archive of the recount-init that lies beside this program or in LIBEXECDIR. Owned by
 * caller, free(). */
int install_archive_build(void **buf, size_t *len) _must_check_;

/*
 * *Durable.* recount.cpio and grub/grubenv in the mounted store @store_dir. An archive with the
 * same bytes is left alone, as is a block that can be read.
 */
int install_store(const char *store_dir, const void *archive, size_t len) _must_check_;

/* *Durable.* Removes the two; 0 also when they are not there. */
int install_store_remove(const char *store_dir) _must_check_;

/* The text of the unit; @made_wants: the folder for its link did not exist. Owned by caller,
 * free(). -EINVAL when @program cannot be written in a unit. Pure. */
int install_unit_text(const char *program, unsigned notice_s, int uses_bmc, int made_wants,
		      char **text) _must_check_;

#endif
