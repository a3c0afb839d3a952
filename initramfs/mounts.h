/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Mounts of PID 1: API file systems, root read-only without journal replay, arena, store; and the
 * freeing of the unpacked distribution initrd. Mechanism only: which partition is which is the
 * caller's business, and so is the deadline: every call may block on a device. Failures are logged.
 */
#ifndef RECOUNT_INITRAMFS_MOUNTS_H
#define RECOUNT_INITRAMFS_MOUNTS_H

#include "results/macro.h"

/*
 * Mounts /proc, /sys, /dev (devtmpfs, or a tmpfs with the few nodes that are needed), /run (tmpfs)
 * where nothing is mounted; makes /dev/pts and /dev/shm. Makes the standard streams valid (opens
 * /dev/null for closed ones), so that no disk that is opened later becomes descriptor 0, 1 or 2:
 * call it before anything opens a file. Goes on after a failure and returns the first.
 */
int mounts_early(void) _must_check_;

/*
 * Mounts @device read-only at @dir without replaying a journal, ext4 and ext3 with "noload", xfs
 * with the device set read-only meanwhile. -EUCLEAN when the journal is dirty (ext4 needs_recovery;
 * xfs refuses), and nothing is mounted. -EOPNOTSUPP for any other @fstype.
 */
int mount_root(const char *device, const char *fstype, const char *dir) _must_check_;

/*
 * Inside the root mounted at @dir: /proc, /sys, /dev, /dev/pts, /dev/shm, tmpfs on /run with
 * /run/recount/arena, cgroup2 on /sys/fs/cgroup if the kernel has it. The mount points must exist
 * in the root. After a failure none of them is left mounted.
 */
int mount_chroot(const char *dir) _must_check_;

/*
 * Mounts @device at @dir with @options, the words of mount(8): "rw", "ro", "noatime", "relatime",
 * "strictatime", "lazytime", "nodiratime", "nosuid", "nodev", "noexec", "sync", "dirsync",
 * "defaults"; every other word goes to the file system. Without "ro" it is read-write.
 */
int mount_device(const char *device, const char *fstype, const char *options,
		 const char *dir) _must_check_;

/* Unmounts @dir, never lazily. -EBUSY when it is in use. 0 when nothing is mounted there. */
int unmount_dir(const char *dir) _must_check_;

/*
 * Frees the memory of the unpacked initrd: removes everything on the rootfs except the mount points
 * and @keep (names in /, NULL-terminated, or NULL), never crossing a mount. Refuses (-EXDEV) when /
 * is not ramfs or tmpfs. What cannot be removed stays, without an error.
 */
int rootfs_empty(const char *const *keep) _must_check_;

#endif
