/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The superblock of ext2/3/4. covers: initramfs/ext4.c */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "initramfs/devices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ext4_facts facts, untouched, read;
	int r;

	memset(&facts, 0x55, sizeof(facts));
	memset(&untouched, 0x55, sizeof(untouched));
	r = ext4_facts_decode(data, size, &facts);
	REQUIRE(r == 0 || (r == -EBADMSG && !memcmp(&facts, &untouched, sizeof(facts))));
	REQUIRE(size >= EXT4_SUPER_BYTES || r == -EBADMSG);
	if (r == 0)
		REQUIRE(facts.clean >> 1 == 0 && facts.needs_recovery >> 1 == 0);
	/* The same bytes where they are on a disk. */
	if (size == EXT4_SUPER_BYTES) {
		uint8_t disk[2 * EXT4_SUPER_BYTES] = {0};
		const char *path;

		memcpy(disk + EXT4_SUPER_OFFSET, data, size);
		path = fuzz_file((struct fuzz_input){disk, sizeof(disk)});
		REQUIRE(device_ext4_facts(path, &read) == r);
		REQUIRE(r || read.incompat == facts.incompat);
	}
	return 0;
}
