/* SPDX-License-Identifier: GPL-3.0-or-later */
/* proc/self/mountinfo. covers: runner/mountinfo.c */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "runner/mountinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mountinfo m = {0};
	int next, r;

	fuzz_put("proc/self/mountinfo", (struct fuzz_input){data, size});
	next = fuzz_next_fd();
	r = mountinfo_read(fuzz_folder(), &m);
	REQUIRE(fuzz_next_fd() == next);
	/* Without the file the folder is taken for a mounted root of the running system. */
	REQUIRE(r == 0);
	for (size_t i = 0; i < m.n && i < 64; i++) {
		const struct mountinfo_entry *e = &m.entries[i], *found;

		REQUIRE(e->dir && e->point && e->fstype && e->source);
		found = mountinfo_of_device(&m, e->maj, e->min);
		REQUIRE(found && found <= e && found->maj == e->maj && found->min == e->min);
		found = mountinfo_find(&m, e->point);
		REQUIRE(found && strncmp(found->point, e->point, strlen(found->point)) == 0);
	}
	mountinfo_free(&m);
	return 0;
}
