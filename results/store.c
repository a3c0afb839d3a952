/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The store's files: whole or not there, found by walking folder descriptors from its root. */
#include "results/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "results/digest.h"

#define PATH_BYTES 256
#define TMP_PREFIX ".tmp-"

struct store {
	int root;
};

/* A file's folder, open, and its last name. */
struct spot {
	int dir;
	char name[PATH_BYTES];
};

static void cleanup_spot(struct spot *s)
{
	cleanup_close(&s->dir);
}

int store_open(const char *dir, struct store **out)
{
	struct store *s = malloc(sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->root < 0) {
		err = -errno;
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	close(s->root);
	free(s);
}

/* Names that start with a dot are ".", ".." and our temporary files. */
static int is_name(const char *name)
{
	return name[0] != '\0' && name[0] != '/' && name[0] != '.';
}

/* A relative path of such names. */
static int is_path(const char *path)
{
	const char *name = path;

	while (is_name(name)) {
		name += strcspn(name, "/");
		if (*name == '\0')
			return name - path < PATH_BYTES;
		name++;
	}
	return 0;
}

static int sync_dir(int dir)
{
	return fsync(dir) < 0 ? -errno : 0;
}

/* The folder @name in @dir, opened. With @make it is made when it is not there; *durable*. */
static int open_dir(int dir, const char *name, int make)
{
	int fd, err;

	if (make && mkdirat(dir, name, 0755) == 0) {
		err = sync_dir(dir);
		if (err)
			return err;
	} else if (make && errno != EEXIST) {
		return -errno;
	}
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int find_spot(struct store *s, const char *path, int make, struct spot *out)
{
	char rest[PATH_BYTES], *name = rest, *slash;
	_cleanup_close_ int dir = -1;

	if (!is_path(path))
		return -EINVAL;
	strcpy(rest, path);
	dir = fcntl(s->root, F_DUPFD_CLOEXEC, 0);
	if (dir < 0)
		return -errno;
	while ((slash = strchr(name, '/'))) {
		int next;

		*slash = '\0';
		next = open_dir(dir, name, make);
		if (next < 0)
			return next;
		close(dir);
		dir = next;
		name = slash + 1;
	}
	out->dir = TAKE_FD(dir);
	strcpy(out->name, name);
	return 0;
}

static int write_all(int fd, const char *buf, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = write(fd, buf, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf += n;
		len -= n;
	}
	return 0;
}

/* A new file @name in @dir whose bytes are on the disk. */
static int write_file(int dir, const char *name, const void *buf, size_t len)
{
	_cleanup_close_ int fd = -1;
	int err;

	/* What a power cut left; O_EXCL then also keeps links away. */
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	err = write_all(fd, buf, len);
	if (err)
		return err;
	return fsync(fd) < 0 ? -errno : 0;
}

static int put(struct store *s, const char *path, const void *buf, size_t len, unsigned flags)
{
	_cleanup_(cleanup_spot) struct spot spot = {.dir = -1};
	char tmp[PATH_BYTES + sizeof(TMP_PREFIX)];
	int err;

	err = find_spot(s, path, 1, &spot);
	if (err)
		return err;
	snprintf(tmp, sizeof(tmp), TMP_PREFIX "%s", spot.name);
	err = write_file(spot.dir, tmp, buf, len);
	if (!err && renameat2(spot.dir, tmp, spot.dir, spot.name, flags) < 0)
		err = -errno;
	if (err) {
		unlinkat(spot.dir, tmp, 0);
		return err;
	}
	return sync_dir(spot.dir);
}

int store_put(struct store *s, const char *path, const void *buf, size_t len)
{
	return put(s, path, buf, len, strcmp(path, "active") == 0 ? 0 : RENAME_NOREPLACE);
}

int store_replace(struct store *s, const char *path, const void *buf, size_t len)
{
	return put(s, path, buf, len, 0);
}

int store_get(struct store *s, const char *path, size_t max, char **buf, size_t *len)
{
	_cleanup_(cleanup_spot) struct spot spot = {.dir = -1};
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *data = NULL;
	struct stat st;
	size_t have = 0;
	ssize_t n;
	int err;

	err = find_spot(s, path, 0, &spot);
	if (err)
		return err;
	fd = openat(spot.dir, spot.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uint64_t)st.st_size > max)
		return -E2BIG;
	data = malloc(st.st_size + 1);
	if (!data)
		return -ENOMEM;
	while (have < (size_t)st.st_size) {
		n = read(fd, data + have, st.st_size - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += n;
	}
	data[have] = '\0';
	*len = have;
	*buf = TAKE_PTR(data);
	return 0;
}

int store_remove(struct store *s, const char *path)
{
	_cleanup_(cleanup_spot) struct spot spot = {.dir = -1};
	int err;

	err = find_spot(s, path, 0, &spot);
	if (err)
		return err == -ENOENT ? 0 : err;
	if (unlinkat(spot.dir, spot.name, 0) < 0)
		return errno == ENOENT ? 0 : -errno;
	return sync_dir(spot.dir);
}

void store_names_free(char **names, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(DIR *d, char ***names, size_t *n)
{
	struct dirent *e;
	size_t room = 0;

	while (errno = 0, (e = readdir(d))) {
		if (!is_name(e->d_name))
			continue;
		if (*n == room) {
			char **more = realloc(*names, (room ? 2 * room : 16) * sizeof(*more));

			if (!more)
				return -ENOMEM;
			*names = more;
			room = room ? 2 * room : 16;
		}
		(*names)[*n] = strdup(e->d_name);
		if (!(*names)[*n])
			return -ENOMEM;
		++*n;
	}
	return -errno;
}

int store_list(struct store *s, const char *path, char ***names, size_t *n)
{
	_cleanup_(cleanup_spot) struct spot spot = {.dir = -1};
	_cleanup_closedir_ DIR *d = NULL;
	char **list = NULL;
	size_t count = 0;
	int fd, err;

	err = find_spot(s, path, 0, &spot);
	fd = err ? err : open_dir(spot.dir, spot.name, 0);
	if (fd == -ENOENT) {
		*names = NULL;
		*n = 0;
		return 0;
	}
	if (fd < 0)
		return fd;
	d = fdopendir(fd);
	if (!d) {
		err = -errno;
		close(fd);
		return err;
	}
	err = read_names(d, &list, &count);
	if (err) {
		store_names_free(list, count);
		return err;
	}
	if (count)
		qsort(list, count, sizeof(*list), by_name);
	*names = list;
	*n = count;
	return 0;
}

int store_active(struct store *s, char id[STORE_ID])
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int err;

	err = store_get(s, "active", STORE_ID, &text, &len);
	if (err)
		return err == -E2BIG ? -EBADMSG : err;
	if (len > 0 && text[len - 1] == '\n')
		text[--len] = '\0';
	if (strlen(text) != len || !plan_is_id(text))
		return -EBADMSG;
	strcpy(id, text);
	return 0;
}

int store_activate(struct store *s, const char *id)
{
	char line[STORE_ID + 1];

	if (!plan_is_id(id))
		return -EINVAL;
	snprintf(line, sizeof(line), "%s\n", id);
	return store_put(s, "active", line, strlen(line));
}

int store_deactivate(struct store *s)
{
	return store_remove(s, "active");
}

int store_campaigns(struct store *s, char ***ids, size_t *n)
{
	char **names = NULL;
	size_t count = 0, kept = 0, i;
	int err;

	err = store_list(s, "campaigns", &names, &count);
	if (err)
		return err;
	for (i = 0; i < count; i++) {
		if (plan_is_id(names[i]))
			names[kept++] = names[i];
		else
			free(names[i]);
	}
	*ids = names;
	*n = kept;
	return 0;
}

int store_plan(struct store *s, const char *id, struct plan **out, char sha256[PLAN_SHA256],
	       const char **why)
{
	_cleanup_(cleanup_plan) struct plan *plan = NULL;
	_cleanup_free_ char *json = NULL;
	char path[PATH_BYTES];
	size_t len;
	int err;

	if (why)
		*why = "id";
	if (!plan_is_id(id))
		return -EINVAL;
	if (why)
		*why = NULL;
	snprintf(path, sizeof(path), "campaigns/%s/plan.json", id);
	err = store_get(s, path, PLAN_BYTES_MAX, &json, &len);
	if (err)
		return err;
	err = plan_decode(json, len, &plan, why);
	if (err)
		return err;
	if (strcmp(plan->id, id) != 0) {
		if (why)
			*why = "id";
		return -EBADMSG;
	}
	if (sha256)
		digest_bytes(json, len, sha256);
	*out = TAKE_PTR(plan);
	return 0;
}

void store_boot_path(char buf[256], const char *id, unsigned boot, const char *stem,
		     unsigned attempt, const char *ext)
{
	snprintf(buf, 256, "campaigns/%s/boots/%04u/%s-%u.%s", id, boot, stem, attempt, ext);
}
