/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Asks for the record locks that dpkg, apt and rpm take on their files. */
#include "runner/packages.h"

#include <fcntl.h>

#include "results/macro.h"

static const char *const locks[] = {
	"/var/lib/dpkg/lock-frontend",	   "/var/lib/dpkg/lock",
	"/var/lib/apt/lists/lock",	   "/var/lib/rpm/.rpm.lock",
	"/usr/lib/sysimage/rpm/.rpm.lock",
};

const char *packages_lock_held(const char *root)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(locks); i++) {
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
		_cleanup_free_ char *path = NULL;
		_cleanup_close_ int fd = -1;

		if (asprintf(&path, "%s%s", root, locks[i]) < 0)
			return NULL;
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
			return locks[i];
	}
	return NULL;
}
