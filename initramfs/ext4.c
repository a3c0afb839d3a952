/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The facts in an ext superblock. */
#include "initramfs/ext4.h"

#include <errno.h>

#define MAGIC	 0xef53
#define VALID	 0x1
#define ERROR	 0x2
#define RECOVER	 0x4
#define AT_MAGIC 0x38
#define AT_STATE 0x3a

static uint32_t le32_at(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static unsigned le16_at(const unsigned char *p)
{
	return p[0] | (unsigned)p[1] << 8;
}

int ext4_facts_decode(const void *buf, size_t len, struct ext4_facts *out)
{
	const unsigned char *sb = buf;

	if (len < EXT4_SUPER_BYTES || le16_at(sb + AT_MAGIC) != MAGIC)
		return -EBADMSG;
	out->compat = le32_at(sb + 0x5c);
	out->incompat = le32_at(sb + 0x60);
	out->ro_compat = le32_at(sb + 0x64);
	out->needs_recovery = !!(out->incompat & RECOVER);
	out->clean = (le16_at(sb + AT_STATE) & (VALID | ERROR)) == VALID;
	return 0;
}
