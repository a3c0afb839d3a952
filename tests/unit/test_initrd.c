/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whole and broken initrds, each compressed by libarchive and cut at many lengths. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "grub/initrd.h"
#include "tests/unit/folder.h"

#define ROOM (4u << 20)

static unsigned char early[4096], main_cpio[ROOM], packed[ROOM], whole[ROOM];
static size_t early_len, main_len;

static int check(const void *bytes, size_t len, const char **why)
{
	int fd = memfd_create("initrd", MFD_CLOEXEC), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	r = initrd_check_fd(fd, why);
	close(fd);
	return r;
}

static void expect_bad(const void *bytes, size_t len, const char *text)
{
	const char *why = "";

	assert_int_equal(check(bytes, len, &why), -EBADMSG);
	if (text)
		assert_string_equal(why, text);
}

static void expect_good(const void *bytes, size_t len)
{
	const char *why = "";
	int r = check(bytes, len, &why);

	if (r)
		print_error("%s\n", why);
	assert_int_equal(r, 0);
}

/* A newc archive with one file of @n random bytes, so that compression leaves something. */
static size_t make_cpio(unsigned char *out, size_t room, const char *name, size_t n)
{
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();
	unsigned seed = 7;
	size_t used = 0;

	assert_int_equal(archive_write_set_format_cpio_newc(a), ARCHIVE_OK);
	assert_int_equal(archive_write_open_memory(a, out, room, &used), ARCHIVE_OK);
	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_size(e, (la_int64_t)n);
	archive_entry_set_perm(e, 0755);
	assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)rand_r(&seed);

		assert_int_equal(archive_write_data(a, &c, 1), 1);
	}
	archive_entry_free(e);
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	archive_write_free(a);
	return used;
}

/* The raw bytes @in through one filter of libarchive. */
static size_t pack(const char *filter, const unsigned char *in, size_t len)
{
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();
	size_t used = 0;

	assert_int_equal(archive_write_add_filter_by_name(a, filter), ARCHIVE_OK);
	assert_int_equal(archive_write_set_format_raw(a), ARCHIVE_OK);
	archive_write_set_bytes_in_last_block(a, 1);
	assert_int_equal(archive_write_open_memory(a, packed, sizeof(packed), &used), ARCHIVE_OK);
	archive_entry_set_filetype(e, AE_IFREG);
	assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
	assert_int_equal(archive_write_data(a, in, len), (la_ssize_t)len);
	archive_entry_free(e);
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	archive_write_free(a);
	return used;
}

/*
 * lz4 -l: the magic, then blocks of a length and an LZ4 block. Stored as literals only, which every
 * decoder takes (LZ4 block format).
 */
static size_t pack_lz4_legacy(const unsigned char *in, size_t len)
{
	unsigned char *p = packed + 8;
	uint32_t bytes;
	size_t rest;

	memcpy(packed, "\x02\x21\x4c\x18", 4);
	*p++ = 0xf0;
	for (rest = len - 15; rest >= 255; rest -= 255)
		*p++ = 255;
	*p++ = (unsigned char)rest;
	memcpy(p, in, len);
	p += len;
	bytes = (uint32_t)(p - packed - 8);
	memcpy(packed + 4, &bytes, 4);
	return (size_t)(p - packed);
}

static void try_packed(size_t len)
{
	/* Alone, behind microcode, and behind microcode and padding. */
	expect_good(packed, len);
	memcpy(whole, early, early_len);
	memcpy(whole + early_len, packed, len);
	expect_good(whole, early_len + len);
	memset(whole + early_len, 0, 512);
	memcpy(whole + early_len + 512, packed, len);
	expect_good(whole, early_len + 512 + len);
	/* Cut everywhere: near the head, in the middle, near the end. */
	for (size_t cut = 1; cut < len; cut += cut < 32 || cut + 16 > len ? 1 : len / 40 + 1)
		expect_bad(packed, cut, NULL);
	expect_bad(whole, early_len + 512 + len / 2, NULL);
}

static void compressed(void **state)
{
	static const char *const filters[] = {"gzip", "bzip2", "xz", "lzma", "zstd"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
		try_packed(pack(filters[i], main_cpio, main_len));
}

static void lz4_legacy(void **state)
{
	size_t len = pack_lz4_legacy(main_cpio, main_len);

	(void)state;
	expect_good(packed, len);
	for (size_t cut = 1; cut < len; cut += len / 50)
		expect_bad(packed, cut, NULL);
}

/* A kernel has no decoder for the framed format. */
static void lz4_frames_are_refused(void **state)
{
	(void)state;
	expect_bad(packed, pack("lz4", main_cpio, main_len),
		   "is in no format that a kernel can unpack");
}

static void uncompressed(void **state)
{
	(void)state;
	expect_good(main_cpio, main_len);
	memcpy(whole, early, early_len);
	memcpy(whole + early_len, main_cpio, main_len);
	expect_good(whole, early_len + main_len);
	for (size_t cut = 1; cut < main_len - 1024; cut += main_len / 50)
		expect_bad(main_cpio, cut, "is cut short");
	whole[early_len + 200] ^= 0xff;
	expect_good(whole, early_len + main_len);
	whole[early_len + 54] = 'x';
	expect_bad(whole, early_len + main_len, "is damaged");
}

static void empty_junk_and_zeros(void **state)
{
	(void)state;
	expect_bad("", 0, "is empty (0 bytes)");
	expect_bad("<html>404 Not Found</html>", 26, "is in no format that a kernel can unpack");
	memset(whole, 0, 4096);
	expect_bad(whole, 4096, "is cut short");
	/* Compressed, but no cpio archive. */
	memset(whole, 'x', 4096);
	expect_bad(packed, pack("gzip", whole, 4096), "is in no format that a kernel can unpack");
}

/* A full /boot can cut an initrd exactly behind its microcode. */
static void microcode_alone_is_cut_short(void **state)
{
	(void)state;
	expect_bad(early, early_len, "is cut short");
}

static void decompressed_archive_without_end(void **state)
{
	(void)state;
	expect_bad(packed, pack("gzip", main_cpio, main_len / 2), "is cut short");
}

static void wrong_bytes_inside(void **state)
{
	size_t len = pack("xz", main_cpio, main_len);

	(void)state;
	packed[len / 2] ^= 1;
	expect_bad(packed, len, NULL);
}

static void bootconfig_and_zeros_behind(void **state)
{
	static const char *const filters[] = {"gzip", "xz", "zstd"};
	static const char config[] = "a.b = 1\n";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		size_t len = pack(filters[i], main_cpio, main_len);
		uint32_t size = sizeof(config) - 1;

		memcpy(whole, packed, len);
		memset(whole + len, 0, 512);
		if (strcmp(filters[i], "zstd") != 0)
			expect_good(whole, len + 512 - len % 4);
		memcpy(whole + len, config, size);
		memcpy(whole + len + size, &size, 4);
		memset(whole + len + size + 4, 0x11, 4);
		memcpy(whole + len + size + 8, "#BOOTCONFIG\n", 12);
		expect_good(whole, len + size + 20);
	}
}

/* libarchive knows formats that it leaves to programs; no bytes in a stream may ask for one. */
static void no_program_is_started(void **state)
{
	static const char *const programs[] = {"lrzip", "grzip", "lzop"};
	static const unsigned char inner[][24] = {
		{'L', 'R', 'Z', 'I', 0, 6},
		{'G', 'R', 'Z', 'i', 'p', 'I', 'I', 0, 2, 4, ':', ')'},
		{0x89, 'L', 'Z', 'O', 0, 13, 10, 26, 10, 0x10, 0x30, 0x20, 0xa0},
	};
	char dir[SAMPLE_FOLDER], path[64], marker[64];
	char *old = strdup(getenv("PATH"));
	FILE *f;

	(void)state;
	sample_folder(dir);
	snprintf(marker, sizeof(marker), "%s/started", dir);
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, programs[i]);
		f = fopen(path, "w");
		assert_non_null(f);
		fprintf(f, "#!/bin/sh\n: >%s\n", marker);
		assert_int_equal(fclose(f), 0);
		assert_int_equal(chmod(path, 0755), 0);
	}
	assert_int_equal(setenv("PATH", dir, 1), 0);
	for (size_t i = 0; i < ARRAY_SIZE(inner); i++)
		expect_bad(packed, pack("gzip", inner[i], sizeof(inner[i])), NULL);
	assert_int_equal(setenv("PATH", old, 1), 0);
	assert_int_equal(access(marker, F_OK), -1);
	free(old);
	sample_folder_remove(dir);
}

static void by_path(void **state)
{
	char path[] = "/tmp/recount-initrd-XXXXXX";
	const char *why = NULL;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(initrd_check(path, &why), -EBADMSG);
	assert_string_equal(why, "is empty (0 bytes)");
	assert_int_equal(write(fd, main_cpio, main_len), (ssize_t)main_len);
	assert_int_equal(initrd_check(path, &why), 0);
	close(fd);
	unlink(path);
	assert_int_equal(initrd_check(path, &why), -ENOENT);
	assert_int_equal(initrd_check("/tmp", &why), -EINVAL);
}

static int set_up(void **state)
{
	(void)state;
	early_len = make_cpio(early, sizeof(early), "kernel/x86/microcode/GenuineIntel.bin", 700);
	main_len = make_cpio(main_cpio, 200000, "init", 100000);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compressed),
		cmocka_unit_test(lz4_legacy),
		cmocka_unit_test(lz4_frames_are_refused),
		cmocka_unit_test(uncompressed),
		cmocka_unit_test(empty_junk_and_zeros),
		cmocka_unit_test(microcode_alone_is_cut_short),
		cmocka_unit_test(decompressed_archive_without_end),
		cmocka_unit_test(wrong_bytes_inside),
		cmocka_unit_test(bootconfig_and_zeros_behind),
		cmocka_unit_test(no_program_is_started),
		cmocka_unit_test(by_path),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
