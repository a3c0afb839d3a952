/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The watchdog device and its thread. */
#include "runner/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/watchdog.h>
#include <sys/ioctl.h>

#include "results/log.h"
#include "runner/thread.h"

/* What the driver really took, in seconds, into @timeout_s. A descriptor or -errno. */
static int open_device(int *timeout_s)
{
	/* Drivers refuse what is too long for them instead of taking their maximum. */
	static const int tries_s[] = {WATCHDOG_TIMEOUT_S, 240, 180, 120, 60, 30};
	int fd = open("/dev/watchdog", O_WRONLY | O_CLOEXEC);
	int real_s = 30;

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(tries_s); i++) {
		int wanted_s = tries_s[i];

		if (ioctl(fd, WDIOC_SETTIMEOUT, &wanted_s) == 0)
			break;
	}
	if (ioctl(fd, WDIOC_GETTIMEOUT, &real_s) || real_s <= 0)
		real_s = 30;
	*timeout_s = real_s;
	return fd;
}

static void *keep(void *arg)
{
	struct watchdog *w = arg;
	int fd = -1, timeout_s = 0;

	for (;;) {
		thread_wait(&w->turn);
		if (fd >= 0) {
			ioctl(fd, WDIOC_KEEPALIVE, 0);
			continue;
		}
		fd = open_device(&timeout_s);
		if (fd < 0)
			continue;
		log_info("watchdog armed, %d s", timeout_s);
		atomic_store(&w->timeout_s, timeout_s);
	}
	return NULL;
}

int watchdog_start(struct watchdog *w)
{
	atomic_init(&w->timeout_s, 0);
	if (sem_init(&w->turn, 0, 0))
		return -errno;
	return thread_start(keep, w);
}

void watchdog_turn(struct watchdog *w)
{
	sem_post(&w->turn);
}
