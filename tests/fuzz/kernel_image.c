/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The header of a bzImage. covers: grub/kernel_image.c */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "grub/kernels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char version[256], tiny[4] = "!!!";
	int r = kernel_image_version(data, size, version, sizeof(version)), r2;

	REQUIRE(r == 0 || r == -EBADMSG || r == -ENAMETOOLONG);
	r2 = kernel_image_version(data, size, tiny, sizeof(tiny));
	if (r) {
		REQUIRE(r2 == r && strcmp(tiny, "!!!") == 0);
		return 0;
	}
	REQUIRE(strlen(version) < 4 ? r2 == 0 && strcmp(tiny, version) == 0
				    : r2 == -ENAMETOOLONG && strcmp(tiny, "!!!") == 0);
	/* It becomes part of file names, and of commands that people are told to type. */
	REQUIRE(fuzz_is_name(version) && *version != '-');
	REQUIRE(!strpbrk(version, " \t'\"\\$`;&|<>(){}*?[]#!"));
	/* The text is there, at its place in the image. */
	REQUIRE(memmem(data + 0x200, size - 0x200, version, strlen(version)));
	return 0;
}
