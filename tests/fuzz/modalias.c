/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The modaliases of a device, of one below it, and of another. covers: initramfs/modalias.c */
#include "tests/fuzz/fuzz.h"

#include "initramfs/modalias.h"

static int is_left_out(const char *alias)
{
	const char *class = strstr(alias, "bc");

	return !strncmp(alias, "pci:", 4) && class &&
	       (!strncmp(class, "bc02", 4) || !strncmp(class, "bc03", 4) ||
		!strncmp(class, "bc04", 4) || !strncmp(class, "bc0D", 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(cleanup_modalias) struct modalias_set *set = modalias_new();
	struct fuzz_input in = {data, size}, upper = fuzz_part(&in), lower = fuzz_part(&in);
	_cleanup_free_ char *first = fuzz_text(upper);
	const char *const *fresh;
	size_t n = 0;
	int next;

	REQUIRE(set);
	fuzz_put("devices/pci0/modalias", upper);
	fuzz_put("devices/pci0/0000/modalias", lower);
	fuzz_put("devices/virtio/modalias", in);
	next = fuzz_next_fd();
	REQUIRE(modalias_collect(set, fuzz_folder(), &fresh, &n) == 0);
	REQUIRE(fuzz_next_fd() == next && n <= 3);
	for (size_t i = 0; i < n; i++) {
		REQUIRE(*fresh[i] && !strchr(fresh[i], '\n') && !is_left_out(fresh[i]));
		for (size_t k = 0; k < i; k++)
			REQUIRE(strcmp(fresh[k], fresh[i]) != 0);
	}
	/* Nothing hangs on a device that is left out. */
	first[strcspn(first, "\n")] = '\0';
	REQUIRE(n <= 1 || !is_left_out(first) || strlen(first) > 4095);
	REQUIRE(modalias_collect(set, fuzz_folder(), &fresh, &n) == 0 && n == 0);
	return 0;
}
