/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replacing a file as a whole, durably. */
#include "grub/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Owned by caller; NULL without memory. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static int sync_folder(const char *dir)
{
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* The path behind all links, or @path itself when there is no such file yet. Owned by caller; NULL
 * with errno. */
static char *follow(const char *path)
{
	char *real = realpath(path, NULL);

	return real || errno != ENOENT ? real : strdup(path);
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

	real = follow(path);
	if (!real)
		return -errno;
	dir = folder_of(real);
	if (!dir)
		return -ENOMEM;
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

	real = follow(path);
	if (!real)
		return -errno;
	dir = folder_of(real);
	if (!dir)
		return -ENOMEM;
	if (unlink(real) < 0)
		return errno == ENOENT ? 0 : -errno;
	return sync_folder(dir);
}

int replace_make_folder(const char *path)
{
	_cleanup_free_ char *dir = folder_of(path), *above = NULL;

	if (!dir)
		return -ENOMEM;
	if (mkdir(dir, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	above = folder_of(dir);
	return above ? sync_folder(above) : -ENOMEM;
}
