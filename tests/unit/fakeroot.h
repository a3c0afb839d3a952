/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A temporary folder that plays a machine's root: filled (folder.h makes and removes it). Failures
 * fail the test. */
#ifndef RECOUNT_TESTS_FAKEROOT_H
#define RECOUNT_TESTS_FAKEROOT_H

#include <errno.h>
#include <string.h>

#include "tests/unit/folder.h"

#define FAKEROOT_PATH 256

/* @root/@path into @full, with the folders that lead there. */
static inline void fakeroot_path(char full[2 * FAKEROOT_PATH], const char *root, const char *path)
{
	int n = snprintf(full, 2 * FAKEROOT_PATH, "%s/%s", root, path);

	assert_true(n < 2 * FAKEROOT_PATH);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdir(full, 0755) < 0)
			assert_int_equal(errno, EEXIST);
		*p = '/';
	}
}

/* The file @root/@path with these @len bytes. */
static inline void fakeroot_put(const char *root, const char *path, const void *buf, size_t len)
{
	char full[2 * FAKEROOT_PATH];
	FILE *f;

	fakeroot_path(full, root, path);
	f = fopen(full, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(buf, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

/* The file @root/@path with this text. */
static inline void fakeroot_write(const char *root, const char *path, const char *text)
{
	fakeroot_put(root, path, text, strlen(text));
}

#endif
