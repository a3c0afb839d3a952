/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the fuzz targets share. A target is one file that feeds one parser of outside input and
 * requires what its header promises; the comment "covers:" names the files of which the corpus must
 * reach 80 % of the lines. An input of several parts has the byte FUZZ_CUT between them. Files that
 * a parser wants by path lie in a folder in memory, or in a memfd.
 */
#ifndef RECOUNT_TESTS_FUZZ_H
#define RECOUNT_TESTS_FUZZ_H

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "results/macro.h"

#define FUZZ_CUT  0x1c /* "file separator" */
#define FUZZ_PATH 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property of the product; when it does not hold the input is a finding. */
#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct fuzz_input {
	const uint8_t *data;
	size_t size;
};

/* The bytes up to the next cut, which are taken off @in; all that is left when there is none. */
static inline struct fuzz_input fuzz_part(struct fuzz_input *in)
{
	const uint8_t *cut = in->size ? memchr(in->data, FUZZ_CUT, in->size) : NULL;
	struct fuzz_input part = {in->data, cut ? (size_t)(cut - in->data) : in->size};
	size_t used = part.size + (cut ? 1 : 0);

	in->data += used;
	in->size -= used;
	return part;
}

/* The same bytes in memory of exactly their size, NUL behind them: no read beyond stays unseen. */
static inline char *fuzz_text(struct fuzz_input in)
{
	char *text = malloc(in.size + 1);

	REQUIRE(text);
	if (in.size)
		memcpy(text, in.data, in.size);
	text[in.size] = '\0';
	return text;
}

static inline char *fuzz_text_part(struct fuzz_input *in)
{
	return fuzz_text(fuzz_part(in));
}

/* The path of a file that holds @in; the same file each time. */
static inline const char *fuzz_file(struct fuzz_input in)
{
	static char path[32];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		REQUIRE(fd >= 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	REQUIRE(ftruncate(fd, 0) == 0);
	REQUIRE(pwrite(fd, in.data, in.size, 0) == (ssize_t)in.size);
	return path;
}

/* A folder in $TMPDIR; the same one each time. Who runs the target removes it. */
static inline const char *fuzz_folder(void)
{
	static char path[FUZZ_PATH];
	const char *tmp = getenv("TMPDIR");

	if (!*path) {
		snprintf(path, sizeof(path), "%s/fuzz-XXXXXX", tmp ? tmp : "/tmp");
		REQUIRE(mkdtemp(path));
	}
	return path;
}

/* The file @name in the folder, with the folders that lead there; an empty part is no file. */
static inline void fuzz_put(const char *name, struct fuzz_input in)
{
	char path[2 * FUZZ_PATH];
	int n = snprintf(path, sizeof(path), "%s/%s", fuzz_folder(), name), fd;

	REQUIRE(n < (int)sizeof(path));
	for (char *p = path + strlen(fuzz_folder()) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
	if (!in.size) {
		unlink(path);
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	REQUIRE(fd >= 0);
	REQUIRE(write(fd, in.data, in.size) == (ssize_t)in.size);
	close(fd);
}

/* The lowest free descriptor: the same before and after what must not keep any. */
static inline int fuzz_next_fd(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	REQUIRE(fd >= 0);
	close(fd);
	return fd;
}

/* Would @path, taken from a file, leave the folder that it is relative to? */
static inline int fuzz_leaves(const char *path)
{
	char *copy = fuzz_text((struct fuzz_input){(const uint8_t *)path, strlen(path)});
	char *rest = copy, *name;
	int leaves = *path == '/';

	while ((name = strsep(&rest, "/")))
		leaves |= strcmp(name, "..") == 0;
	free(copy);
	return leaves;
}

/* Is @path absolute, with no ".." in it? */
static inline int fuzz_is_absolute(const char *path)
{
	return *path == '/' && !fuzz_leaves(path + strspn(path, "/"));
}

/* May @name, taken from a file, be a name in a folder and a word on a terminal? */
static inline int fuzz_is_name(const char *name)
{
	for (const char *p = name; *p; p++)
		if (*p == '/' || (unsigned char)*p < 0x20 || *p == 0x7f)
			return 0;
	return *name && *name != '.';
}

#endif
