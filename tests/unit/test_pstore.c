/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Panic records in a fake root: found by age and content, joined in order, removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "runner/pstore.h"
#include "tests/unit/fakeroot.h"

#define ARMED 1000000
#define TOKEN "2026-11-30-a-0001-1-0badcafe"

static int setup(void **state)
{
	char *root = calloc(1, FAKEROOT_PATH);

	assert_non_null(root);
	sample_folder(root);
	*state = root;
	return 0;
}

static int teardown(void **state)
{
	sample_folder_remove(*state);
	free(*state);
	return 0;
}

static void put(const char *root, const char *path, int64_t mtime_s, const char *text)
{
	char full[2 * FAKEROOT_PATH];
	struct timespec times[2] = {{.tv_sec = mtime_s}, {.tv_sec = mtime_s}};

	fakeroot_write(root, path, text);
	fakeroot_path(full, root, path);
	assert_int_equal(utimensat(AT_FDCWD, full, times, 0), 0);
}

static int exists(const char *root, const char *path)
{
	char full[2 * FAKEROOT_PATH];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	return access(full, F_OK) == 0;
}

static void nothing_there_is_no_panic(void **state)
{
	struct pstore p;

	assert_int_equal(pstore_find(*state, ARMED, TOKEN, &p), 0);
	assert_null(p.text);
	assert_int_equal(p.n, 0);
	pstore_free(&p);
}

static void parts_are_joined_in_order_of_time(void **state)
{
	struct pstore p;
	const char *first, *last;

	/* part 1 is the end of the log */
	put(*state, "sys/fs/pstore/dmesg-efi-101", ARMED + 5, "Panic#1 Part1\nthe end\n");
	put(*state, "sys/fs/pstore/dmesg-efi-102", ARMED + 5, "Panic#1 Part2\nthe middle\n");
	put(*state, "sys/fs/pstore/dmesg-efi-110", ARMED + 5, "Panic#1 Part10\nthe start");
	assert_int_equal(pstore_find(*state, ARMED, TOKEN, &p), 0);
	assert_non_null(p.text);
	assert_int_equal(p.n, 3);
	assert_int_equal(p.len, strlen(p.text));
	first = strstr(p.text, "the start");
	last = strstr(p.text, "the end");
	assert_true(first && last && first < strstr(p.text, "the middle"));
	assert_true(strstr(p.text, "the middle") < last);
	pstore_free(&p);
}

static void case_57_only_younger_panics_are_taken_and_deleted(void **state)
{
	struct pstore p;

	put(*state, "sys/fs/pstore/dmesg-ramoops-0", ARMED + 5, "Panic#1 Part1\nnew\n");
	put(*state, "sys/fs/pstore/dmesg-ramoops-1", ARMED - 5, "Panic#1 Part1\nold\n");
	put(*state, "sys/fs/pstore/dmesg-ramoops-2", ARMED + 5, "Restart#1 Part1\nordinary\n");
	put(*state, "sys/fs/pstore/console-ramoops-0", ARMED + 5, "Kernel panic - somewhere\n");
	assert_int_equal(pstore_find(*state, ARMED, TOKEN, &p), 0);
	assert_non_null(p.text);
	assert_non_null(strstr(p.text, "new"));
	assert_null(strstr(p.text, "old"));
	assert_null(strstr(p.text, "ordinary"));
	pstore_delete(&p);
	pstore_free(&p);
	assert_false(exists(*state, "sys/fs/pstore/dmesg-ramoops-0"));
	assert_true(exists(*state, "sys/fs/pstore/dmesg-ramoops-1"));
	assert_true(exists(*state, "sys/fs/pstore/dmesg-ramoops-2"));
	assert_true(exists(*state, "sys/fs/pstore/console-ramoops-0"));
}

static void what_systemd_moved_away_is_found_once(void **state)
{
	struct pstore p;
	const char *at = "var/lib/systemd/pstore/165/001/";
	char path[128];

	snprintf(path, sizeof(path), "%sdmesg.txt", at);
	put(*state, path, ARMED + 9, "Panic#1 Part2\nstart\nPanic#1 Part1\nKernel panic - end\n");
	snprintf(path, sizeof(path), "%sdmesg-efi-1", at);
	put(*state, path, ARMED + 9, "Panic#1 Part1\nKernel panic - end\n");
	assert_int_equal(pstore_find(*state, ARMED, TOKEN, &p), 0);
	assert_int_equal(p.n, 2);
	assert_non_null(p.text);
	assert_null(strstr(strstr(p.text, "Kernel panic") + 1, "Kernel panic"));
	pstore_delete(&p);
	pstore_free(&p);
	assert_false(exists(*state, "var/lib/systemd/pstore/165/001"));
	assert_true(exists(*state, "var/lib/systemd/pstore"));
}

/* A dying kernel's clock may be in 1970, or in local time; its command line is not. */
static void case_57_text_with_the_token_counts_whatever_the_clock_was(void **state)
{
	struct pstore p;

	put(*state, "sys/fs/pstore/dmesg-efi-1", 60,
	    "Panic#1 Part1\nCommand line: recount.token=" TOKEN " rdinit=/recount-init\nours\n");
	put(*state, "sys/fs/pstore/dmesg-efi-2", ARMED + 5,
	    "Panic#1 Part1\nCommand line: recount.token=" TOKEN "7 ro\nanother's\n");
	put(*state, "sys/fs/pstore/dmesg-efi-3", ARMED + 5,
	    "Panic#1 Part1\nCommand line: recount.token=x\n");
	assert_int_equal(pstore_find(*state, ARMED, TOKEN, &p), 0);
	assert_int_equal(p.n, 1);
	assert_non_null(strstr(p.text, "ours"));
	assert_null(strstr(p.text, "another's"));
	pstore_delete(&p);
	pstore_free(&p);
	assert_false(exists(*state, "sys/fs/pstore/dmesg-efi-1"));
	assert_true(exists(*state, "sys/fs/pstore/dmesg-efi-2"));
	assert_true(exists(*state, "sys/fs/pstore/dmesg-efi-3"));
	/* an attempt whose token is not known has none of them */
	assert_int_equal(pstore_find(*state, ARMED, "", &p), 0);
	assert_int_equal(p.n, 0);
	pstore_free(&p);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(nothing_there_is_no_panic),
		CASE(parts_are_joined_in_order_of_time),
		CASE(case_57_only_younger_panics_are_taken_and_deleted),
		CASE(what_systemd_moved_away_is_found_once),
		CASE(case_57_text_with_the_token_counts_whatever_the_clock_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
