/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds and protects partitions. */
#include "runner/partitions.h"

#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "initramfs/devices.h"
#include "results/log.h"
#include "runner/drivers.h"
#include "runner/pause.h"

#define DEVICE_WAIT_MS 60000
#define DEVICE_POLL_MS 100
#define MODULE_POLL_MS 2000

static int64_t in_ms(int64_t ms)
{
	return spawn_now_ns() + ms * INT64_C(1000000);
}

static int find_once(const char *uuid, char path[PARTITION_PATH], dev_t *dev)
{
	_cleanup_(cleanup_device_list) struct device_list list = {0};
	const struct device *d;
	int r = devices_scan("", &list);

	if (r == 0)
		r = devices_by_uuid(&list, uuid, &d);
	if (r < 0)
		return r;
	snprintf(path, PARTITION_PATH, "%s", d->path);
	*dev = makedev(d->maj, d->min);
	return 0;
}

int partition_find(struct watch *w, const char *what, const char *uuid, char path[PARTITION_PATH],
		   dev_t *dev)
{
	int64_t deadline = in_ms(DEVICE_WAIT_MS), modules = in_ms(MODULE_POLL_MS);
	int r;

	for (;;) {
		watch_answer(w);
		/* A disk that comes late, as on USB, may ask for modules of its own. */
		if (spawn_now_ns() > modules) {
			if (drivers_load(w, "", MODULES_HARDWARE) < 0)
				log_warn("going on with the modules there are");
			modules = in_ms(MODULE_POLL_MS);
		}
		r = find_once(uuid, path, dev);
		if (r == 0)
			return 0;
		if (r == -ENOTUNIQ || spawn_now_ns() > deadline)
			return log_errno(r, "find the %s (file system %s)", what, uuid);
		pause_ms(DEVICE_POLL_MS);
	}
}

int partitions_hibernated(void)
{
	_cleanup_(cleanup_device_list) struct device_list list = {0};

	if (devices_scan("", &list) < 0)
		return 0;
	for (size_t i = 0; i < list.n; i++) {
		if (!device_is_hibernated(&list.devices[i]))
			continue;
		log_warn("%s holds a hibernated system", list.devices[i].path);
		return 1;
	}
	return 0;
}

int partitions_protect(const char *const *writable, size_t n)
{
	_cleanup_(cleanup_device_list) struct device_list list = {0};
	int r = devices_scan("", &list);

	for (size_t i = 0; r == 0 && i < list.n; i++) {
		int keep = 0;

		for (size_t k = 0; k < n; k++)
			keep |= !strcmp(list.devices[i].path, writable[k]);
		/* Nobody can write to it, and opening it might never return. */
		if (list.devices[i].error == -ETIMEDOUT)
			continue;
		/* A whole disk's flag would cover its partitions. */
		if (!list.devices[i].partition && !*list.devices[i].type)
			continue;
		if (device_set_read_only(list.devices[i].path, !keep) < 0 && !keep)
			log_warn("cannot set %s read-only", list.devices[i].path);
	}
	return r;
}
