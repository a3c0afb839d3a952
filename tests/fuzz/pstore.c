/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two records of pstore, and one that systemd has moved and joined. covers: runner/pstore.c */
#include "tests/fuzz/fuzz.h"

#include "runner/pstore.h"

#define TOKEN "2026-11-30-a-0001-1-0badcafe"

static const char *const names[] = {"sys/fs/pstore/dmesg-efi-1", "sys/fs/pstore/dmesg-efi-2",
				    "var/lib/systemd/pstore/1/dmesg.txt",
				    "var/lib/systemd/pstore/1/dmesg-efi-3"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct pstore p = {0}, none = {0};
	int next;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		fuzz_put(names[i], fuzz_part(&in));
	next = fuzz_next_fd();
	REQUIRE(pstore_find(fuzz_folder(), 0, TOKEN, &p) == 0);
	REQUIRE(fuzz_next_fd() == next);
	REQUIRE(p.n <= ARRAY_SIZE(names) && !p.n == !p.text && p.len <= PSTORE_TEXT_MAX);
	for (size_t i = 0; i < p.n; i++)
		REQUIRE(!strncmp(p.files[i], fuzz_folder(), strlen(fuzz_folder())));
	REQUIRE(!p.text || !strncmp(p.text, "== dmesg", 8));
	pstore_delete(&p);
	for (size_t i = 0; i < p.n; i++)
		REQUIRE(access(p.files[i], F_OK) < 0);
	/* What was told is gone, what was not is still there and still says nothing. */
	REQUIRE(pstore_find(fuzz_folder(), 0, TOKEN, &none) == 0 && none.n == 0 && !none.text);
	pstore_free(&p);
	return 0;
}
