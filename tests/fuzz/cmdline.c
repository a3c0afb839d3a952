/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A key, and the kernel's command line. covers: initramfs/cmdline.c */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "initramfs/cmdline.h"

static int is_plain(const char *key)
{
	return *key && strspn(key, "abcdefghijklmnopqrstuvwxyz._") == strlen(key);
}

static size_t quotes(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '"';
	return n;
}

/* A word of ours before or behind the text is found there, whatever the text is. */
static void add_word(const char *key, const char *text)
{
	_cleanup_free_ char *line = NULL;
	char value[16];

	if (!is_plain(key))
		return;
	if (cmdline_get(text, key, value, sizeof(value)) == -ENOENT) {
		REQUIRE(asprintf(&line, "%s=first %s", key, text) > 0);
		REQUIRE(cmdline_get(line, key, value, sizeof(value)) == 0);
		REQUIRE(strcmp(value, "first") == 0);
		free(line);
	}
	REQUIRE(asprintf(&line, "%s %s=last", text, key) > 0);
	if (quotes(text) % 2 == 0 && !strstr(text, "--")) {
		REQUIRE(cmdline_get(line, key, value, sizeof(value)) == 0);
		REQUIRE(strcmp(value, "last") == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	_cleanup_free_ char *key = fuzz_text_part(&in), *text = fuzz_text(in);
	_cleanup_free_ char *value = malloc(size + 1);
	char tiny[3] = "!!";
	int r, r2;

	REQUIRE(value);
	r = cmdline_get(text, key, value, size + 1);
	REQUIRE(r == 0 || r == -ENOENT);
	r2 = cmdline_get(text, key, tiny, sizeof(tiny));
	if (r == 0 && strlen(value) < sizeof(tiny))
		REQUIRE(r2 == 0 && strcmp(tiny, value) == 0);
	else
		REQUIRE(r2 == (r ? r : -ENAMETOOLONG) && strcmp(tiny, "!!") == 0);
	add_word(key, text);
	return 0;
}
