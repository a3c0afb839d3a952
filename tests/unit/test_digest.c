/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SHA-256 of bytes, files, products and trees. */
#include "tests/unit/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "results/digest.h"

/* FIPS 180-2, appendix B. */
#define SHA_ABC	  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define SHA_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static char folder[SAMPLE_FOLDER], path[4096];

static const char *at(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void put(const char *name, const char *text)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, 0644), 0);
	close(fd);
}

static void put_folder(const char *name)
{
	assert_int_equal(mkdir(at(name), 0755), 0);
	assert_int_equal(chmod(at(name), 0755), 0);
}

static int setup(void **state)
{
	(void)state;
	sample_folder(folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sample_folder_remove(folder);
	return 0;
}

static void known_bytes_have_their_known_hash(void **state)
{
	char hex[PLAN_SHA256];

	(void)state;
	digest_bytes("abc", 3, hex);
	assert_string_equal(hex, SHA_ABC);
	digest_bytes("", 0, hex);
	assert_string_equal(hex, SHA_EMPTY);
	put("f", "abc");
	assert_int_equal(digest_file(at("f"), hex), 0);
	assert_string_equal(hex, SHA_ABC);
	put("f", "");
	assert_int_equal(digest_file(at("f"), hex), 0);
	assert_string_equal(hex, SHA_EMPTY);
}

static void a_long_file_is_read_to_its_end(void **state)
{
	char hex[PLAN_SHA256], *text = malloc(1000001);

	(void)state;
	assert_non_null(text);
	memset(text, 'a', 1000000);
	text[1000000] = '\0';
	put("million", text);
	free(text);
	assert_int_equal(digest_file(at("million"), hex), 0);
	/* FIPS 180-2, appendix B.3 */
	assert_string_equal(hex,
			    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void what_is_no_file_is_refused(void **state)
{
	char hex[PLAN_SHA256] = "before";

	(void)state;
	put("f", "abc");
	assert_int_equal(symlink("f", at("link")), 0);
	assert_int_equal(mkfifo(at("pipe"), 0600), 0);
	assert_int_equal(digest_file(at("none"), hex), -ENOENT);
	assert_int_equal(digest_file(at("link"), hex), -ELOOP);
	assert_int_equal(digest_file(at("pipe"), hex), -EINVAL);
	assert_int_equal(digest_file(folder, hex), -EINVAL);
	assert_int_equal(digest_product(folder, "none", hex), -ENOENT);
	assert_int_equal(digest_product(folder, "link", hex), -ELOOP);
	assert_int_equal(digest_tree(at("f"), hex), -ENOTDIR);
	assert_string_equal(hex, "before");
}

static void a_products_hash_is_that_of_its_sorted_objects(void **state)
{
	static const char list[] = "a/x.ko\0" SHA_EMPTY "\n"
				   "b.o\0" SHA_ABC "\n"
				   "lib.a\0" SHA_ABC "\n"
				   "z.so\0" SHA_EMPTY "\n";
	char hex[PLAN_SHA256], want[PLAN_SHA256];

	(void)state;
	put("z.so", "");
	put("b.o", "abc");
	put("lib.a", "abc");
	put("b.c", "source");
	put("notes.o.txt", "x");
	put_folder("a");
	put("a/x.ko", "");
	put_folder("dir.o");
	assert_int_equal(symlink("b.o", at("link.o")), 0);
	digest_bytes(list, sizeof(list) - 1, want);
	assert_int_equal(digest_product(folder, ".", hex), 0);
	assert_string_equal(hex, want);
	assert_int_equal(digest_product(folder, "b.o", hex), 0);
	assert_string_equal(hex, SHA_ABC);
	assert_int_equal(digest_product(folder, "dir.o", hex), -ENOENT);
	/* A slash at the end, as in "init/", changes nothing. */
	assert_int_equal(digest_product(folder, "./", hex), 0);
	assert_string_equal(hex, want);
	assert_int_equal(digest_product(folder, "a//x.ko", hex), 0);
	assert_string_equal(hex, SHA_EMPTY);
}

static void a_product_behind_a_link_is_refused(void **state)
{
	char outside[SAMPLE_FOLDER], hex[PLAN_SHA256] = "before", secret[64];
	int fd;

	(void)state;
	sample_folder(outside);
	snprintf(secret, sizeof(secret), "%s/secret.o", outside);
	fd = open(secret, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	put_folder("a");
	assert_int_equal(symlink(outside, at("out")), 0);
	assert_int_equal(symlink(outside, at("a/out")), 0);
	assert_int_equal(symlink(secret, at("secret.o")), 0);
	assert_int_equal(digest_product(folder, "out", hex), -ELOOP);
	assert_int_equal(digest_product(folder, "out/", hex), -ENOTDIR);
	assert_int_equal(digest_product(folder, "out/secret.o", hex), -ENOTDIR);
	assert_int_equal(digest_product(folder, "a/out/secret.o", hex), -ENOTDIR);
	assert_int_equal(digest_product(folder, "a/out/.", hex), -ENOTDIR);
	assert_int_equal(digest_product(folder, "secret.o", hex), -ELOOP);
	assert_int_equal(digest_product(folder, "none/secret.o", hex), -ENOENT);
	assert_string_equal(hex, "before");
	sample_folder_remove(outside);
}

static void a_trees_hash_tells_every_change(void **state)
{
	/* Bytewise: "a" comes first, and '-' before '/'. */
	static const char list[] = "d 0755 a\0\n"
				   "l 0777 a-link\0a/f\n"
				   "f 0644 a/f\0" SHA_ABC "\n";
	char hex[PLAN_SHA256], want[PLAN_SHA256], other[PLAN_SHA256];

	(void)state;
	put_folder("a");
	put("a/f", "abc");
	assert_int_equal(symlink("a/f", at("a-link")), 0);
	digest_bytes(list, sizeof(list) - 1, want);
	assert_int_equal(digest_tree(folder, hex), 0);
	assert_string_equal(hex, want);
	assert_int_equal(chmod(at("a/f"), 0600), 0);
	assert_int_equal(digest_tree(folder, other), 0);
	assert_string_not_equal(other, want);
	assert_int_equal(chmod(at("a/f"), 0644), 0);
	put("a/f", "abd");
	assert_int_equal(digest_tree(folder, other), 0);
	assert_string_not_equal(other, want);
	put("a/f", "abc");
	assert_int_equal(digest_tree(folder, other), 0);
	assert_string_equal(other, want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(known_bytes_have_their_known_hash, setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_file_is_read_to_its_end, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_file_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_products_hash_is_that_of_its_sorted_objects,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_product_behind_a_link_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_trees_hash_tells_every_change, setup, teardown),
	};

	return cmocka_run_group_tests_name("digest", tests, NULL, NULL);
}
