/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The watchdog device. */
#include "runner/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/watchdog.h>
#include <sys/ioctl.h>

int watchdog_open(int *timeout_s)
{
	/* Drivers refuse what is too long for them instead of taking their maximum. */
	static const int tries_s[] = {WATCHDOG_TIMEOUT_S, 240, 180, 120, 60, 30};
	int fd = open("/dev/watchdog", O_WRONLY | O_CLOEXEC);
	int real_s = 30;

	if (fd < 0)
		return errno == ENODEV || errno == ENXIO ? -ENOENT : -errno;
	for (size_t i = 0; i < ARRAY_SIZE(tries_s); i++) {
		int wanted_s = tries_s[i];

		if (ioctl(fd, WDIOC_SETTIMEOUT, &wanted_s) == 0)
			break;
	}
	if (ioctl(fd, WDIOC_GETTIMEOUT, &real_s))
		real_s = 30;
	*timeout_s = real_s;
	return fd;
}

void watchdog_pet(int fd)
{
	ioctl(fd, WDIOC_KEEPALIVE, 0);
}
