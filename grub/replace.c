/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replacing a file as a whole, durably. */
#include "grub/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int folder_of(const char *path, char **out)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		*out = strdup(".");
	else if (slash == path)
		*out = strdup("/");
	else
		*out = strndup(path, (size_t)(slash - path));
	return *out ? 0 : -ENOMEM;
}

static int sync_folder(const char *dir)
{
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* The path behind all links, or @path itself when there is no such file yet. */
static int follow(const char *path, char **out)
{
	char *real = realpath(path, NULL);

	if (!real && errno != ENOENT)
		return -errno;
	if (!real)
		real = strdup(path);
	if (!real)
		return -ENOMEM;
	*out = real;
	return 0;
}

static int write_all(int fd, const char *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, buf, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

static int fill(int fd, const char *like, const void *buf, size_t len)
{
	struct stat st;
	int r;

	if (stat(like, &st) == 0) {
		if (fchown(fd, st.st_uid, st.st_gid) < 0 || fchmod(fd, st.st_mode & 07777) < 0)
			return -errno;
	} else if (errno != ENOENT || fchmod(fd, 0644) < 0) {
		return -errno;
	}
	r = write_all(fd, buf, len);
	if (r < 0)
		return r;
	return fsync(fd) < 0 ? -errno : 0;
}

int replace_file(const char *path, const void *buf, size_t len)
{
	_cleanup_free_ char *real = NULL, *dir = NULL, *temp = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	r = follow(path, &real);
	if (r < 0)
		return r;
	r = folder_of(real, &dir);
	if (r < 0)
		return r;
	if (asprintf(&temp, "%s/.recount-XXXXXX", dir) < 0) {
		temp = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = fill(fd, real, buf, len);
	if (r == 0 && rename(temp, real) < 0)
		r = -errno;
	if (r < 0) {
		unlink(temp);
		return r;
	}
	return sync_folder(dir);
}

int replace_remove(const char *path)
{
	_cleanup_free_ char *real = NULL, *dir = NULL;
	int r;

	r = follow(path, &real);
	if (r < 0)
		return r;
	r = folder_of(real, &dir);
	if (r < 0)
		return r;
	if (unlink(real) < 0)
		return errno == ENOENT ? 0 : -errno;
	return sync_folder(dir);
}

int replace_make_folder(const char *path)
{
	_cleanup_free_ char *dir = NULL, *above = NULL;
	int r;

	r = folder_of(path, &dir);
	if (r < 0)
		return r;
	if (mkdir(dir, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	r = folder_of(dir, &above);
	if (r < 0)
		return r;
	return sync_folder(above);
}
