/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The boot archive: what is written, and what is refused on reading back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <archive.h>
#include <archive_entry.h>
#include <elf.h>

#include "initramfs/cpio.h"
#include "tests/unit/fakeroot.h"

/* The smallest thing that looks like a static program. */
struct program {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	char code[101]; /* odd: the archive must pad */
};

static const struct program program = {
	.ehdr =
		{
			.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				    EV_CURRENT},
			.e_type = ET_EXEC,
			.e_machine = EM_X86_64,
			.e_entry = 0x400078,
			.e_phoff = offsetof(struct program, phdr),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 1,
		},
	.phdr = {.p_type = PT_LOAD, .p_filesz = sizeof(struct program)},
	.code = "code",
};

struct fixture {
	char root[FAKEROOT_PATH];
	char path[2 * FAKEROOT_PATH];
};

static int set_up(void **state)
{
	static struct fixture f;

	sample_folder(f.root);
	fakeroot_path(f.path, f.root, "recount-init");
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	sample_folder_remove(((struct fixture *)*state)->root);
	return 0;
}

static int build(struct fixture *f, const void *content, size_t size, void **buf, size_t *len)
{
	fakeroot_put(f->root, "recount-init", content, size);
	return cpio_build(f->path, buf, len);
}

static char *good_archive(struct fixture *f, size_t *len)
{
	void *buf;

	assert_int_equal(build(f, &program, sizeof(program), &buf, len), 0);
	return buf;
}

static void expect_refused(const void *buf, size_t len, const char *reason)
{
	const char *why = NULL;

	assert_int_equal(cpio_check(buf, len, &why), -EBADMSG);
	assert_non_null(why);
	if (reason)
		assert_string_equal(why, reason);
}

static void archive_is_plain_newc_in_blocks(void **state)
{
	size_t len;
	char *a = good_archive(*state, &len), *trailer;

	assert_memory_equal(a, "070701", 6);
	assert_int_equal(len % 512, 0);
	assert_int_equal(cpio_check(a, len, NULL), 0);
	trailer = memmem(a, len, "TRAILER!!!", 10);
	assert_non_null(trailer);
	for (char *p = trailer + 10; p < a + len; p++)
		assert_int_equal(*p, 0);
	free(a);
}

static void equal_programs_give_equal_bytes(void **state)
{
	struct fixture *f = *state;
	size_t len, again_len;
	char *a = good_archive(f, &len), *again;

	chmod(f->path, 0600);
	again = good_archive(f, &again_len);
	assert_int_equal(len, again_len);
	assert_memory_equal(a, again, len);
	free(a);
	free(again);
}

static void another_reader_sees_one_root_owned_program(void **state)
{
	struct archive *r = archive_read_new();
	struct archive_entry *e;
	struct program copy;
	size_t len;
	char *a = good_archive(*state, &len);

	archive_read_support_format_cpio(r);
	assert_int_equal(archive_read_open_memory(r, a, len), ARCHIVE_OK);
	assert_int_equal(archive_read_next_header(r, &e), ARCHIVE_OK);
	assert_string_equal(archive_entry_pathname(e), "recount-init");
	assert_int_equal(archive_entry_mode(e), S_IFREG | 0755);
	assert_int_equal(archive_entry_uid(e), 0);
	assert_int_equal(archive_entry_gid(e), 0);
	assert_int_equal(archive_entry_mtime(e), 0);
	assert_int_equal(archive_entry_nlink(e), 1);
	assert_int_equal(archive_entry_size(e), sizeof(program));
	assert_int_equal(archive_read_data(r, &copy, sizeof(copy)), sizeof(copy));
	assert_memory_equal(&copy, &program, sizeof(program));
	assert_int_equal(archive_read_next_header(r, &e), ARCHIVE_EOF);
	archive_read_free(r);
	free(a);
}

static void programs_that_cannot_be_init_are_refused(void **state)
{
	struct fixture *f = *state;
	struct program bad;
	void *buf;
	size_t len;

	assert_int_equal(build(f, "#!/bin/sh\n", 10, &buf, &len), -EBADMSG);
	assert_int_equal(build(f, "", 0, &buf, &len), -EBADMSG);
	assert_int_equal(build(f, &program, sizeof(program) - 1, &buf, &len), -EBADMSG);
	assert_int_equal(build(f, &program, sizeof(program.ehdr), &buf, &len), -EBADMSG);
	bad = program;
	bad.phdr.p_type = PT_INTERP;
	assert_int_equal(build(f, &bad, sizeof(bad), &buf, &len), -EBADMSG);
	bad = program;
	bad.ehdr.e_machine = EM_AARCH64;
	assert_int_equal(build(f, &bad, sizeof(bad), &buf, &len), -EBADMSG);
	bad = program;
	bad.ehdr.e_type = ET_REL;
	assert_int_equal(build(f, &bad, sizeof(bad), &buf, &len), -EBADMSG);
	bad = program;
	bad.ehdr.e_phnum = 0;
	assert_int_equal(build(f, &bad, sizeof(bad), &buf, &len), -EBADMSG);
	/* This test is linked dynamically. */
	assert_int_equal(cpio_build("/proc/self/exe", &buf, &len), -EBADMSG);
	assert_int_equal(cpio_build("/nonexistent/recount-init", &buf, &len), -ENOENT);
	assert_int_equal(cpio_build(f->root, &buf, &len), -EBADMSG);
}

static void every_cut_is_noticed(void **state)
{
	size_t len;
	char *a = good_archive(*state, &len);

	for (size_t cut = 0; cut < len; cut++) {
		/* A copy of its own size, so that a sanitizer sees any read beyond it. */
		char *part = malloc(cut ? cut : 1);

		memcpy(part, a, cut);
		expect_refused(part, cut, NULL);
		free(part);
	}
	free(a);
}

static void put_field(char *header, int field, const char *hex)
{
	memcpy(header + 6 + 8 * field, hex, 8);
}

static void wrong_headers_are_refused_by_name(void **state)
{
	static const struct {
		int field;
		const char *hex, *reason;
	} wrong[] = {
		{1, "000081A4", "recount-init is not a regular file of mode 0755"},
		{1, "000041ED", "recount-init is not a regular file of mode 0755"},
		{2, "000003E8", "recount-init does not belong to user 0"},
		{4, "00000002", "recount-init has several links"},
		{6, "00000000", "recount-init is empty"},
		{6, "FFFFFFFF", "cut short"},
		{11, "0000000C", "holds something other than recount-init"},
		{11, "0000000G", "not an uncompressed newc archive"},
	};
	size_t len;
	char *a = good_archive(*state, &len);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char *bad = malloc(len);

		memcpy(bad, a, len);
		put_field(bad, wrong[i].field, wrong[i].hex);
		expect_refused(bad, len, wrong[i].reason);
		free(bad);
	}
	memcpy(a, "070702", 6);
	expect_refused(a, len, "not an uncompressed newc archive");
	free(a);
}

static void size_and_tail_are_checked(void **state)
{
	size_t len;
	char *a = good_archive(*state, &len), *longer = calloc(1, len + 512);

	memcpy(longer, a, len);
	expect_refused(longer, len + 4, "size is not a multiple of 512");
	assert_int_equal(cpio_check(longer, len + 512, NULL), 0);
	longer[len + 511] = 1;
	expect_refused(longer, len + 512, "bytes after TRAILER!!!");
	free(longer);
	free(a);
}

/* An archive by libarchive with these names, folders where the name ends in "/". */
static char *foreign_archive(const char *const *names, int gzip, size_t *len)
{
	struct archive *a = archive_write_new();
	char *buf = calloc(1, 16384);

	archive_write_set_format_cpio_newc(a);
	if (gzip)
		archive_write_add_filter_gzip(a);
	archive_write_set_bytes_per_block(a, 512);
	archive_write_set_bytes_in_last_block(a, 512);
	assert_int_equal(archive_write_open_memory(a, buf, 16384, len), ARCHIVE_OK);
	for (; *names; names++) {
		struct archive_entry *e = archive_entry_new();
		int folder = (*names)[strlen(*names) - 1] == '/';

		archive_entry_set_pathname(e, *names);
		archive_entry_set_mode(e, folder ? S_IFDIR | 0755 : S_IFREG | 0755);
		archive_entry_set_nlink(e, 1);
		archive_entry_set_size(e, folder ? 0 : sizeof(program));
		assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
		if (!folder)
			archive_write_data(a, &program, sizeof(program));
		archive_entry_free(e);
	}
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	archive_write_free(a);
	return buf;
}

static void expect_names_refused(const char *const *names)
{
	size_t len;
	char *a = foreign_archive(names, 0, &len);

	expect_refused(a, len, "holds something other than recount-init");
	free(a);
}

static void foreign_names_are_refused(void **state)
{
	size_t len;
	char *a;

	(void)state;
	/* A lib/ of ours would replace the distribution's link of that name. */
	expect_names_refused((const char *const[]){"lib/", "recount-init", NULL});
	expect_names_refused((const char *const[]){"recount-init", "lib/", NULL});
	expect_names_refused((const char *const[]){"recount-init", "recount-init", NULL});
	expect_names_refused((const char *const[]){"init", NULL});
	expect_names_refused((const char *const[]){NULL});

	/* The same archive with the right name alone is good, and compressed it is not. */
	a = foreign_archive((const char *const[]){"recount-init", NULL}, 0, &len);
	assert_int_equal(cpio_check(a, len, NULL), 0);
	free(a);
	a = foreign_archive((const char *const[]){"recount-init", NULL}, 1, &len);
	expect_refused(a, len, "not an uncompressed newc archive");
	free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(archive_is_plain_newc_in_blocks),
		cmocka_unit_test(equal_programs_give_equal_bytes),
		cmocka_unit_test(another_reader_sees_one_root_owned_program),
		cmocka_unit_test(programs_that_cannot_be_init_are_refused),
		cmocka_unit_test(every_cut_is_noticed),
		cmocka_unit_test(wrong_headers_are_refused_by_name),
		cmocka_unit_test(size_and_tail_are_checked),
		cmocka_unit_test(foreign_names_are_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
