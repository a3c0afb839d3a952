/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds and wipes signatures. */
#include "runner/signature.h"

#include <blkid/blkid.h>
#include <errno.h>

/* More than any device has; a wipe that does not take would go on for ever. */
#define WIPES_MAX 64

static void cleanup_probe(blkid_probe *probe)
{
	blkid_free_probe(*probe);
}

static int new_probe(int fd, blkid_probe *out)
{
	blkid_probe probe = blkid_new_probe();

	if (!probe)
		return -ENOMEM;
	if (blkid_probe_set_device(probe, fd, 0, 0) < 0 ||
	    blkid_probe_enable_superblocks(probe, 1) < 0 ||
	    blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_LABEL |
							     BLKID_SUBLKS_MAGIC) < 0 ||
	    blkid_probe_enable_partitions(probe, 1) < 0 ||
	    blkid_probe_set_partitions_flags(probe, BLKID_PARTS_MAGIC) < 0) {
		blkid_free_probe(probe);
		return -EIO;
	}
	*out = probe;
	return 0;
}

int signature_find(int fd, char *what, size_t size)
{
	_cleanup_(cleanup_probe) blkid_probe probe = NULL;
	const char *type, *label;
	int r = new_probe(fd, &probe);

	if (r < 0)
		return r;
	r = blkid_do_safeprobe(probe);
	if (r == 1)
		return 0;
	if (r == -2) {
		snprintf(what, size, "several file systems at once");
		return 1;
	}
	if (r < 0)
		return -EIO;
	if (blkid_probe_lookup_value(probe, "PTTYPE", &type, NULL) == 0) {
		snprintf(what, size, "a %s partition table", type);
		return 1;
	}
	if (blkid_probe_lookup_value(probe, "TYPE", &type, NULL) < 0)
		type = "something";
	if (blkid_probe_lookup_value(probe, "LABEL", &label, NULL) == 0)
		snprintf(what, size, "%s \"%s\"", type, label);
	else
		snprintf(what, size, "%s", type);
	return 1;
}

int signature_wipe(int fd)
{
	_cleanup_(cleanup_probe) blkid_probe probe = NULL;
	int r = new_probe(fd, &probe);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < WIPES_MAX; i++) {
		r = blkid_do_probe(probe);
		if (r == 1)
			return fsync(fd) ? -errno : 0;
		if (r < 0 || blkid_do_wipe(probe, 0) < 0)
			return -EIO;
	}
	return -EIO;
}
