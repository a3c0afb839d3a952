/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SHA-256 of bytes, files and folders. Folders are listed first and sorted: no file system promises
 * an order. */
#include "results/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <sha2.h>
#include <string.h>
#include <sys/stat.h>

struct list { /* paths from the folder on, in no order until sorted */
	char **names;
	size_t n, room;
};

static void cleanup_list(struct list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		free(l->names[i]);
	free(l->names);
}

static void cleanup_fts(FTS **fts)
{
	if (*fts)
		fts_close(*fts);
}

static void finish(SHA2_CTX *ctx, char hex[PLAN_SHA256])
{
	uint8_t sum[SHA256_DIGEST_LENGTH];
	size_t i;

	SHA256Final(sum, ctx);
	for (i = 0; i < sizeof(sum); i++)
		snprintf(hex + 2 * i, 3, "%02x", sum[i]);
}

void digest_bytes(const void *buf, size_t len, char hex[PLAN_SHA256])
{
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	SHA256Update(&ctx, buf, len);
	finish(&ctx, hex);
}

static int digest_fd(int fd, char hex[PLAN_SHA256])
{
	uint8_t buf[1 << 16];
	SHA2_CTX ctx;
	ssize_t n;

	SHA256Init(&ctx);
	for (;;) {
		n = read(fd, buf, sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		SHA256Update(&ctx, buf, n);
	}
	finish(&ctx, hex);
	return 0;
}

static int digest_at(int dir, const char *path, char hex[PLAN_SHA256])
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	/* Non-blocking: a pipe under this name must not hang the caller. */
	fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? digest_fd(fd, hex) : -EINVAL;
}

int digest_file(const char *path, char hex[PLAN_SHA256])
{
	return digest_at(AT_FDCWD, path, hex);
}

static int list_add(struct list *l, const char *name)
{
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 256;
		char **names = realloc(l->names, room * sizeof(*names));

		if (!names)
			return -ENOMEM;
		l->names = names;
		l->room = room;
	}
	l->names[l->n] = strdup(name);
	return l->names[l->n] ? (l->n++, 0) : -ENOMEM;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int is_object(const FTSENT *e)
{
	static const char *const ends[] = {".o", ".a", ".ko", ".so"};
	const char *dot = strrchr(e->fts_name, '.');
	size_t i;

	for (i = 0; e->fts_info == FTS_F && dot && i < ARRAY_SIZE(ends); i++)
		if (strcmp(dot, ends[i]) == 0)
			return 1;
	return 0;
}

static int is_any(const FTSENT *e)
{
	(void)e;
	return 1;
}

/* Names of everything below @path that @wanted says yes to, sorted bytewise. */
static int list_folder(const char *path, int (*wanted)(const FTSENT *), struct list *l)
{
	char *const paths[] = {(char *)path, NULL};
	_cleanup_(cleanup_fts) FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	size_t skip = strlen(path);
	FTSENT *e;
	int err;

	if (!fts)
		return -errno;
	while (errno = 0, (e = fts_read(fts))) {
		if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS)
			return -e->fts_errno;
		if (e->fts_level == 0 || e->fts_info == FTS_DP || !wanted(e))
			continue;
		err = list_add(l, e->fts_path + skip + strspn(e->fts_path + skip, "/"));
		if (err)
			return err;
	}
	if (errno)
		return -errno;
	if (l->n)
		qsort(l->names, l->n, sizeof(*l->names), by_name);
	return 0;
}

static int open_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* The folder that holds @path below @tree, no link on the way, and the last name in @path. */
static int open_parent(const char *tree, const char *path, const char **name)
{
	_cleanup_close_ int dir = open_folder(tree);
	const char *slash;

	while (dir >= 0 && (slash = strchr(path, '/'))) {
		_cleanup_free_ char *part = strndup(path, (size_t)(slash - path));
		int next;

		if (!part)
			return -ENOMEM;
		next = openat(dir, *part ? part : ".",
			      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		close(dir);
		dir = next;
		path = slash + 1;
	}
	*name = *path ? path : ".";
	return TAKE_FD(dir);
}

int digest_product(const char *tree, const char *product, char hex[PLAN_SHA256])
{
	_cleanup_(cleanup_list) struct list l = {0};
	_cleanup_close_ int parent = -1, dir = -1;
	_cleanup_free_ char *path = NULL;
	const char *name = product;
	char sum[PLAN_SHA256];
	SHA2_CTX ctx;
	size_t i;
	int err;

	parent = open_parent(tree, product, &name);
	if (parent < 0)
		return parent;
	dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* With O_NOFOLLOW a link is "not a directory" too: digest_at() tells it from a file. */
	if (dir < 0)
		return errno == ENOTDIR ? digest_at(parent, name, hex) : -errno;
	if (asprintf(&path, "%s/%s", tree, product) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	err = list_folder(path, is_object, &l);
	if (err)
		return err;
	if (l.n == 0)
		return -ENOENT;
	SHA256Init(&ctx);
	for (i = 0; i < l.n; i++) {
		err = digest_at(dir, l.names[i], sum);
		if (err)
			return err;
		SHA256Update(&ctx, (uint8_t *)l.names[i], strlen(l.names[i]) + 1);
		sum[PLAN_SHA256 - 1] = '\n';
		SHA256Update(&ctx, (uint8_t *)sum, PLAN_SHA256);
	}
	finish(&ctx, hex);
	return 0;
}

static int add_node(SHA2_CTX *ctx, int dir, const char *name)
{
	char head[16], content[4096] = "", type = 'o';
	struct stat st;
	ssize_t len = 0;
	int err = 0;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISREG(st.st_mode)) {
		type = 'f';
		err = digest_at(dir, name, content);
		len = PLAN_SHA256 - 1;
	} else if (S_ISDIR(st.st_mode)) {
		type = 'd';
	} else if (S_ISLNK(st.st_mode)) {
		type = 'l';
		len = readlinkat(dir, name, content, sizeof(content));
		if (len < 0)
			return -errno;
	}
	if (err)
		return err;
	snprintf(head, sizeof(head), "%c %04o ", type, st.st_mode & 07777);
	SHA256Update(ctx, (uint8_t *)head, strlen(head));
	SHA256Update(ctx, (const uint8_t *)name, strlen(name) + 1);
	SHA256Update(ctx, (uint8_t *)content, len);
	SHA256Update(ctx, (const uint8_t *)"\n", 1);
	return 0;
}

int digest_tree(const char *path, char hex[PLAN_SHA256])
{
	_cleanup_(cleanup_list) struct list l = {0};
	_cleanup_close_ int dir = -1;
	SHA2_CTX ctx;
	size_t i;
	int err;

	dir = open_folder(path);
	if (dir < 0)
		return dir;
	err = list_folder(path, is_any, &l);
	if (err)
		return err;
	SHA256Init(&ctx);
	for (i = 0; i < l.n; i++) {
		err = add_node(&ctx, dir, l.names[i]);
		if (err)
			return err;
	}
	finish(&ctx, hex);
	return 0;
}
