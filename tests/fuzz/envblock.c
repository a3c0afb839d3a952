/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GRUB's environment block, after a key and a value to set in it. covers: grub/envblock.c */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "grub/envblock.h"

#define SIGNATURE_LEN 25

/* The index behind the line at @pos of a well-formed block; by the format's rule, told anew. */
static size_t behind_line(const struct envblock *b, size_t pos)
{
	int escaped = 0;

	for (; pos < b->len; pos++) {
		if (!escaped && b->bytes[pos] == '\n')
			return pos + 1;
		escaped = !escaped && b->bytes[pos] == '\\';
	}
	return b->len;
}

static int is_line_of(const char *line, size_t len, const char *key)
{
	size_t n = strlen(key);

	return len > n && memcmp(line, key, n) == 0 && line[n] == '=';
}

/* All lines but those of @key, and the fill, as they stand; @out has room for a block. */
static size_t foreign_lines(const struct envblock *b, const char *key, char *out)
{
	size_t pos = SIGNATURE_LEN, end = b->len, n = 0, next;

	while (end > pos && b->bytes[end - 1] == '#')
		end--;
	for (; pos < end; pos = next) {
		next = behind_line(b, pos);
		if (is_line_of(b->bytes + pos, next - pos, key))
			continue;
		memcpy(out + n, b->bytes + pos, next - pos);
		n += next - pos;
	}
	return n;
}

static void require_well_formed(const struct envblock *b)
{
	static struct envblock again;
	const char *why = "unset";

	REQUIRE(b->len >= ENVBLOCK_MIN && b->len <= ENVBLOCK_MAX);
	REQUIRE(envblock_decode(b->bytes, b->len, &again, &why) == 0 && !why);
	REQUIRE(again.len == b->len && memcmp(again.bytes, b->bytes, b->len) == 0);
}

static void require_foreign_kept(const struct envblock *before, const struct envblock *after,
				 const char *key)
{
	static char a[ENVBLOCK_MAX], b[ENVBLOCK_MAX];
	size_t n = foreign_lines(before, key, a);

	REQUIRE(before->len == after->len);
	REQUIRE(foreign_lines(after, key, b) == n && memcmp(a, b, n) == 0);
}

static void set_and_unset(const struct envblock *before, const char *key, const char *value)
{
	static struct envblock b;
	static char got[ENVBLOCK_MAX + 1];
	char tiny[2] = "!";
	int r, had = envblock_get(before, key, got, sizeof(got));

	b = *before;
	REQUIRE(had == 0 || had == -ENOENT);
	r = envblock_set(&b, key, value);
	if (r) {
		REQUIRE(r == -ENOSPC || r == -EINVAL);
		REQUIRE(b.len == before->len && memcmp(b.bytes, before->bytes, b.len) == 0);
		return;
	}
	require_well_formed(&b);
	require_foreign_kept(before, &b, key);
	REQUIRE(envblock_get(&b, key, got, sizeof(got)) == 0 && strcmp(got, value) == 0);
	r = envblock_get(&b, key, tiny, sizeof(tiny));
	REQUIRE(strlen(value) < 2 ? r == 0 : r == -ENAMETOOLONG && *tiny == '!');
	REQUIRE(envblock_set(&b, key, NULL) == 0);
	REQUIRE(envblock_get(&b, key, got, sizeof(got)) == -ENOENT);
	require_well_formed(&b);
	require_foreign_kept(before, &b, key);
}

static void write_and_read(const struct envblock *b)
{
	static struct envblock back, empty;
	char path[FUZZ_PATH + 32];

	snprintf(path, sizeof(path), "%s/grub/grubenv", fuzz_folder());
	REQUIRE(envblock_create(path, b) == 0);
	REQUIRE(envblock_write(path, b) == 0);
	REQUIRE(envblock_read(path, &back, NULL) == 0);
	REQUIRE(back.len == b->len && memcmp(back.bytes, b->bytes, b->len) == 0);
	envblock_init(&empty);
	REQUIRE(envblock_write(path, &empty) == (b->len == empty.len ? 0 : -EINVAL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct envblock b;
	struct fuzz_input in = {data, size};
	_cleanup_free_ char *key = fuzz_text_part(&in), *value = fuzz_text_part(&in);
	const char *why = NULL;
	int r = envblock_decode(in.data, in.size, &b, &why);

	if (r < 0) {
		REQUIRE(r == -EBADMSG && why);
		return 0;
	}
	REQUIRE((r == 0) == !why);
	if (r == 0)
		REQUIRE(b.len == in.size && memcmp(b.bytes, in.data, b.len) == 0);
	require_well_formed(&b);
	set_and_unset(&b, key, value);
	if (in.data[in.size - 1] == '#' && in.size <= ENVBLOCK_BYTES)
		write_and_read(&b);
	return 0;
}
