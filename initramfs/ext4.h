/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The superblock of ext2, ext3 and ext4: what a mount would find. Pure. */
#ifndef RECOUNT_INITRAMFS_EXT4_H
#define RECOUNT_INITRAMFS_EXT4_H

#include <stddef.h>
#include <stdint.h>

#include "results/macro.h"

#define EXT4_SUPER_OFFSET 1024 /* from the start of the partition */
#define EXT4_SUPER_BYTES  1024

/* Feature words, and whether the journal needs recovery or the file system was not cleanly
 * unmounted (fs/ext4/ext4.h). */
struct ext4_facts {
	uint32_t compat, incompat, ro_compat;
	int needs_recovery; /* incompat RECOVER */
	int clean;	    /* s_state has VALID and not ERROR */
};

/* Reads the superblock in @buf. -EBADMSG when it is none, or cut short. */
int ext4_facts_decode(const void *buf, size_t len, struct ext4_facts *out) _must_check_;

#endif
