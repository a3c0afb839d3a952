/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Three kernel versions, and their order. covers: grub/version.c */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "grub/version.h"

static int sign(int v)
{
	return (v > 0) - (v < 0);
}

static void shorten(const char *version)
{
	char out[128];

	for (int level = 0; level < VERSION_SHORT_LEVELS; level++) {
		int r = version_short(version, level, out, sizeof(out));

		REQUIRE(r == (strlen(version) < sizeof(out) ? 0 : -ENAMETOOLONG));
		if (r == 0)
			REQUIRE(strlen(out) <= strlen(version) && (*out || !*version));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	_cleanup_free_ char *a = fuzz_text_part(&in), *b = fuzz_text_part(&in);
	_cleanup_free_ char *c = fuzz_text(in);
	int ab = sign(version_compare(a, b)), bc = sign(version_compare(b, c));

	REQUIRE(version_compare(a, a) == 0);
	REQUIRE(sign(version_compare(b, a)) == -ab);
	/* qsort() may do anything with an order that goes round in a circle. */
	if (ab == bc || !bc)
		REQUIRE(sign(version_compare(a, c)) == ab);
	shorten(a);
	return 0;
}
