/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A program to put into recount.cpio, or ('C' first) such an archive read back.
 * covers: initramfs/cpio.c
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "initramfs/cpio.h"

static void build(struct fuzz_input program)
{
	_cleanup_free_ void *archive = NULL;
	const char *path = fuzz_file(program);
	size_t len = 0;
	int next = fuzz_next_fd(), r = cpio_build(path, &archive, &len);

	REQUIRE(fuzz_next_fd() == next);
	REQUIRE(r == 0 || (r == -EBADMSG && !archive));
	if (r)
		return;
	REQUIRE(cpio_check(archive, len, NULL) == 0);
	REQUIRE(memmem(archive, len, program.data, program.size));
	/* Every archive that is cut short is told from a whole one. */
	for (size_t cut = 512; cut < len; cut += 512)
		REQUIRE(cpio_check(archive, cut, NULL) == -EBADMSG || len - cut <= 512);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *why = NULL;
	int r;

	if (!size || *data != 'C') {
		build((struct fuzz_input){data, size});
		return 0;
	}
	r = cpio_check(data + 1, size - 1, &why);
	REQUIRE((r == 0 && !why) || (r == -EBADMSG && why));
	REQUIRE(r || (size - 1) % 512 == 0);
	return 0;
}
