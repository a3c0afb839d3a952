/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opening and reading files below a root. */
#include "grub/rootfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int rootfile_open(const char *root, const char *path, int flags)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags,
		.resolve = RESOLVE_IN_ROOT,
	};
	_cleanup_close_ int dir = -1;
	int fd;

	/* openat2() refuses flags that mean nothing together with O_PATH. */
	if (flags & O_PATH)
		how.flags &= ~(unsigned long long)O_NONBLOCK;
	if (!*root) {
		fd = open(path, (int)how.flags);
		return fd < 0 ? -errno : fd;
	}
	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

int rootfile_read(const char *root, const char *path, size_t max, char **buf, size_t *len)
{
	_cleanup_close_ int fd = rootfile_open(root, path, 0);
	_cleanup_free_ char *bytes = NULL;
	size_t have = 0, room = 0;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	/* The size is only a hint: files of /proc and /sys have none. */
	for (;;) {
		ssize_t n;

		if (have + 1 >= room) {
			size_t more = room ? 2 * room : (size_t)st.st_size + 4096;
			char *grown;

			if (more > max + 2)
				more = max + 2;
			grown = realloc(bytes, more);
			if (!grown)
				return -ENOMEM;
			bytes = grown;
			room = more;
		}
		n = read(fd, bytes + have, room - have - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
		if (have > max)
			return -EFBIG;
	}
	bytes[have] = '\0';
	*buf = TAKE_PTR(bytes);
	*len = have;
	return 0;
}
