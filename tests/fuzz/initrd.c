/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An initrd: chains of cpio archives and a compressed stream. covers: grub/initrd.c */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "grub/initrd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t zeros[8];
	const char *path = fuzz_file((struct fuzz_input){data, size}), *why = NULL, *same = NULL;
	int next = fuzz_next_fd(), fd, r = initrd_check(path, &why);

	REQUIRE(r == 0 || (r == -EBADMSG && why));
	REQUIRE((r == 0) == !why);
	fd = open(path, O_RDWR | O_CLOEXEC);
	REQUIRE(fd >= 0);
	REQUIRE(initrd_check_fd(fd, &same) == r && same == why);
	/* Zeros behind an archive that is no stream are padding. */
	if (r == 0 && memcmp(data, "07070", 5) == 0 && size % 4 == 0 &&
	    memmem(data + size - 12, 12, "TRAILER!!!", 10)) {
		REQUIRE(pwrite(fd, zeros, sizeof(zeros), (off_t)size) == sizeof(zeros));
		REQUIRE(initrd_check_fd(fd, &same) == 0);
	}
	close(fd);
	REQUIRE(fuzz_next_fd() == next);
	return 0;
}
