/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Makes what was written to a file system visible to GRUB, which replays no journal. After a rename
 * and fsync an XFS, or an ext4 with data=journal, has it in the journal alone, and sync(2) does not
 * change that: after a power cut GRUB would read the old file, and the new one a boot too late.
 */
#ifndef RECOUNT_GRUB_CHECKPOINT_H
#define RECOUNT_GRUB_CHECKPOINT_H

#include "results/macro.h"

/*
 * Freezes the file system that @path (a file or folder) lies on and thaws it at once, which empties
 * its journal into it. It is thawed too when this process is killed meanwhile. One that cannot be
 * frozen (vfat) has no journal: it is synced, and that is 0 as well. -EBUSY: another program keeps
 * it frozen. -EPERM: not root.
 */
int checkpoint_make(const char *path) _must_check_;

#endif
