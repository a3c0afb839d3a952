/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is mounted where, from proc/self/mountinfo (format: Documentation/filesystems/proc.rst,
 * section 3.5). Read by `recount` to find what a path of the machine lies on. Nothing is mounted.
 */
#ifndef RECOUNT_RUNNER_MOUNTINFO_H
#define RECOUNT_RUNNER_MOUNTINFO_H

#include <stddef.h>

#include "results/macro.h"

struct mountinfo_entry {
	unsigned maj, min;
	char *dir;    /* folder of the file system that is mounted: "/" or a subvolume, "/@" */
	char *point;  /* where, as the machine sees it (without @root) */
	char *fstype; /* "ext4" */
	char *source; /* "/dev/sda1" */
};

struct mountinfo {
	struct mountinfo_entry *entries; /* in the order of mounting */
	size_t n;
};

/*
 * Reads the mounts of the machine below @root ("": the running one). A folder that has a proc/ of
 * its own, which is not procfs, is a fake machine: its text is believed as it stands. Any other
 * folder is a mounted root, as in a rescue system: its mounts are those of the running system that
 * lie below it. Owned by caller, mountinfo_free().
 */
int mountinfo_read(const char *root, struct mountinfo *out) _must_check_;
void mountinfo_free(struct mountinfo *m);

/* The mount that holds @path (absolute, no links); borrowed, NULL: none. Pure. */
const struct mountinfo_entry *mountinfo_find(const struct mountinfo *m, const char *path);

/* The first mount of a device; borrowed, NULL: not mounted. Pure. */
const struct mountinfo_entry *mountinfo_of_device(const struct mountinfo *m, unsigned maj,
						  unsigned min);

/* 1: the real /proc and /sys tell about @root, as for the running machine; 0: a fake machine, whose
 * own do. */
int mountinfo_is_live(const char *root);

#endif
