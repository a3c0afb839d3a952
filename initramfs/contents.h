/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is on block devices: libblkid's low-level probe (no cache, no configuration). A disk that
 * does not answer holds whoever reads it, for ever and against SIGKILL, so that each device is read
 * by a child of its own, and one dead disk hides no other.
 */
#ifndef RECOUNT_INITRAMFS_CONTENTS_H
#define RECOUNT_INITRAMFS_CONTENTS_H

#include "initramfs/devices.h"

/* An empty card reader or a disk that spins up takes seconds. */
#define CONTENTS_WAIT_MS 10000

/*
 * Fills in uuid, label, type, usage, partuuid, ambivalent and error of the @n @devices, all at the
 * same time. One that does not answer within CONTENTS_WAIT_MS is said so once in the log and gets
 * -ETIMEDOUT; its child goes on, and a later call takes the answer when there is one, without
 * waiting again. The children belong to the caller's nearest subreaper.
 */
void contents_read(struct device *devices, size_t n);

#endif
