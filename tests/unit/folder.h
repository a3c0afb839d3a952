/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A temporary folder of a test's own. Failures fail the test. */
#ifndef RECOUNT_TESTS_FOLDER_H
#define RECOUNT_TESTS_FOLDER_H

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SAMPLE_FOLDER sizeof("/dev/shm/recount-test-XXXXXX")

/* A new folder in memory where there is such a place: the store's many fsyncs then cost nothing. */
static inline void sample_folder(char path[SAMPLE_FOLDER])
{
	snprintf(path, SAMPLE_FOLDER, "%s/recount-test-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(path));
}

static inline int sample_remove_one(const char *path, const struct stat *st, int type,
				    struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	return remove(path);
}

static inline void sample_folder_remove(const char *path)
{
	assert_int_equal(nftw(path, sample_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

#endif
