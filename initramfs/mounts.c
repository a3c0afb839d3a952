/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mounting, unmounting, and emptying the rootfs. */
#include "initramfs/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "initramfs/devices.h"
#include "results/log.h"

#define ROOTFS_DEPTH_MAX 128

static int make_dir(const char *path)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return log_errno(-errno, "make the folder %s", path);
	return 0;
}

/* A bind mount of the same file system is not seen; the ones asked about here are others. */
static int is_mount_point(const char *path)
{
	char up[4096];
	struct stat self, parent;

	snprintf(up, sizeof(up), "%s/..", path);
	return stat(path, &self) == 0 && stat(up, &parent) == 0 && self.st_dev != parent.st_dev;
}

static int mount_api(const char *type, const char *path, unsigned long flags, const char *data)
{
	if (mount(type, path, type, flags, data) < 0)
		return log_errno(-errno, "mount %s on %s", type, path);
	return 0;
}

/* /dev of a kernel without devtmpfs; devices_scan() makes the disks' nodes. */
static int mount_plain_dev(void)
{
	static const struct {
		const char *path;
		mode_t mode;
		unsigned maj, min;
	} nodes[] = {
		{"/dev/null", 0666, 1, 3},   {"/dev/zero", 0666, 1, 5},
		{"/dev/random", 0666, 1, 8}, {"/dev/urandom", 0666, 1, 9},
		{"/dev/kmsg", 0600, 1, 11},  {"/dev/console", 0600, 5, 1},
	};
	int r = mount_api("tmpfs", "/dev", MS_NOSUID, "mode=755");

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(nodes); i++) {
		if (mknod(nodes[i].path, S_IFCHR | nodes[i].mode,
			  makedev(nodes[i].maj, nodes[i].min)) < 0)
			r = log_errno(-errno, "make the device node %s", nodes[i].path);
		else if (chmod(nodes[i].path, nodes[i].mode) < 0)
			r = log_errno(-errno, "set the mode of %s", nodes[i].path);
	}
	return r;
}

static int mount_dev(void)
{
	if (mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=755") == 0)
		return 0;
	if (errno != ENODEV)
		return log_errno(-errno, "mount devtmpfs on /dev");
	log_warn("this kernel has no devtmpfs: device nodes are made by hand");
	return mount_plain_dev();
}

static int open_streams(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
		/* Anything that holds the place and cannot be written to will do. */
		if (fd < 0)
			fd = open("/", O_RDONLY | O_DIRECTORY);
		if (fd < 0)
			return log_errno(-errno, "open /dev/null");
	} while (fd <= STDERR_FILENO);
	close(fd);
	return 0;
}

int mounts_early(void)
{
	static const struct {
		const char *type, *path;
		unsigned long flags;
		const char *data;
	} wanted[] = {
		{"devtmpfs", "/dev", 0, NULL}, /* first: the log and the streams need it */
		{"proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL},
		{"sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL},
		{"tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=755"},
	};
	int first = 0, r;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		r = make_dir(wanted[i].path);
		if (r == 0 && !is_mount_point(wanted[i].path))
			r = i == 0 ? mount_dev()
				   : mount_api(wanted[i].type, wanted[i].path, wanted[i].flags,
					       wanted[i].data);
		first = first ? first : r;
		if (i == 0) {
			r = open_streams();
			first = first ? first : r;
		}
	}
	r = make_dir("/dev/pts");
	first = first ? first : r;
	r = make_dir("/dev/shm");
	return first ? first : r;
}

static int mount_root_ext4(const char *device, const char *dir)
{
	struct ext4_facts facts;
	int r = device_ext4_facts(device, &facts);

	if (r < 0)
		return log_errno(r, "read the superblock of %s", device);
	if (facts.needs_recovery)
		return log_errno(-EUCLEAN, "mount %s: its journal needs recovery", device);
	/* ext3 too: the ext4 driver knows noload for both. */
	if (mount(device, dir, "ext4", MS_RDONLY, "noload") < 0)
		return log_errno(-errno, "mount %s on %s", device, dir);
	return 0;
}

/*
 * norecovery would show a stale view without a word. On a read-only device XFS itself refuses a log
 * that needs recovery (EROFS) and mounts a clean one without writing.
 */
static int mount_root_xfs(const char *device, const char *dir)
{
	_cleanup_close_ int fd = open(device, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int before = 0, read_only = 1, r = 0;

	if (fd < 0 || ioctl(fd, BLKROGET, &before) < 0 || ioctl(fd, BLKROSET, &read_only) < 0)
		return log_errno(-errno, "set %s read-only", device);
	if (mount(device, dir, "xfs", MS_RDONLY, NULL) < 0)
		r = -errno;
	if (!before && ioctl(fd, BLKROSET, &before) < 0)
		log_errno(-errno, "set %s writable again", device);
	if (r == -EROFS)
		return log_errno(-EUCLEAN, "mount %s: its log needs recovery", device);
	return r < 0 ? log_errno(r, "mount %s on %s", device, dir) : 0;
}

int mount_root(const char *device, const char *fstype, const char *dir)
{
	if (strcmp(fstype, "ext4") == 0 || strcmp(fstype, "ext3") == 0)
		return mount_root_ext4(device, dir);
	if (strcmp(fstype, "xfs") == 0)
		return mount_root_xfs(device, dir);
	return log_errno(-EOPNOTSUPP, "mount %s as root: %s is neither ext4 nor xfs", device,
			 fstype);
}

static const struct {
	const char *type, *path;
	unsigned long flags;
	const char *data;
	int optional;
} chroot_mounts[] = {
	{"proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, 0},
	{"sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, 0},
	{"cgroup2", "/sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, 1},
	{NULL, "/dev", 0, NULL, 0}, /* NULL: the same mount as our own */
	{"devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "mode=620,ptmxmode=666", 0},
	{"tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777", 0},
	{"tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=755", 0},
};

static int mount_in_chroot(size_t i, const char *path)
{
	const char *type = chroot_mounts[i].type;

	if (!type) {
		if (mount("/dev", path, NULL, MS_BIND, NULL) < 0)
			return log_errno(-errno, "bind /dev on %s", path);
		return 0;
	}
	if (mount(type, path, type, chroot_mounts[i].flags, chroot_mounts[i].data) == 0)
		return 0;
	/* No cgroup2 in this kernel, or not even a place for it. */
	if (chroot_mounts[i].optional && (errno == ENODEV || errno == ENOENT)) {
		log_info("no %s in this kernel", type);
		return 0;
	}
	return log_errno(-errno, "mount %s on %s", type, path);
}

static int make_arena_point(const char *dir)
{
	static const char *const parts[] = {"/run/recount", "/run/recount/arena"};
	char path[4096];
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++) {
		snprintf(path, sizeof(path), "%s%s", dir, parts[i]);
		r = make_dir(path);
	}
	return r;
}

int mount_chroot(const char *dir)
{
	char path[4096];
	size_t done = 0;
	int r = 0;

	if (strlen(dir) + 32 > sizeof(path))
		return -ENAMETOOLONG;
	for (; r == 0 && done < ARRAY_SIZE(chroot_mounts); done++) {
		snprintf(path, sizeof(path), "%s%s", dir, chroot_mounts[done].path);
		r = mount_in_chroot(done, path);
	}
	if (r == 0)
		r = make_arena_point(dir);
	if (r == 0)
		return 0;
	while (done-- > 0) {
		snprintf(path, sizeof(path), "%s%s", dir, chroot_mounts[done].path);
		if (umount2(path, UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
			log_errno(-errno, "unmount %s", path);
	}
	return r;
}

static int mount_flag(const char *word, unsigned long *flags)
{
	static const struct {
		const char *word;
		unsigned long set, clear;
	} words[] = {
		{"defaults", 0, 0},	      {"rw", 0, MS_RDONLY},
		{"ro", MS_RDONLY, 0},	      {"noatime", MS_NOATIME, 0},
		{"relatime", MS_RELATIME, 0}, {"strictatime", MS_STRICTATIME, 0},
		{"lazytime", MS_LAZYTIME, 0}, {"nodiratime", MS_NODIRATIME, 0},
		{"nosuid", MS_NOSUID, 0},     {"nodev", MS_NODEV, 0},
		{"noexec", MS_NOEXEC, 0},     {"sync", MS_SYNCHRONOUS, 0},
		{"dirsync", MS_DIRSYNC, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(word, words[i].word) != 0)
			continue;
		*flags = (*flags & ~words[i].clear) | words[i].set;
		return 1;
	}
	return 0;
}

int mount_device(const char *device, const char *fstype, const char *options, const char *dir)
{
	_cleanup_free_ char *words = strdup(options), *data = calloc(1, strlen(options) + 2);
	unsigned long flags = 0;
	char *save = NULL, *word;

	if (!words || !data)
		return -ENOMEM;
	for (word = strtok_r(words, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (mount_flag(word, &flags))
			continue;
		if (*data)
			strcat(data, ",");
		strcat(data, word);
	}
	if (mount(device, dir, fstype, flags, data) < 0)
		return log_errno(-errno, "mount %s (%s) on %s", device, fstype, dir);
	return 0;
}

int unmount_dir(const char *dir)
{
	if (umount2(dir, UMOUNT_NOFOLLOW) == 0 || errno == EINVAL || errno == ENOENT)
		return 0;
	return log_errno(-errno, "unmount %s", dir);
}

static int is_kept(const char *name, const char *const *keep)
{
	for (; keep && *keep; keep++)
		if (strcmp(name, *keep) == 0)
			return 1;
	return 0;
}

/* True when the entry @name of folder @dirfd lies on file system @dev and nothing is mounted on it:
 * a bind mount has the same device, statx() knows it as a mount. */
static int is_ours(int dirfd, const char *name, dev_t dev, mode_t *mode)
{
	struct statx st;

	if (statx(dirfd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &st) < 0 ||
	    makedev(st.stx_dev_major, st.stx_dev_minor) != dev ||
	    (st.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return 0;
	*mode = st.stx_mode;
	return 1;
}

/* Empties the folder @fd (consumed) on file system @dev. */
static void remove_below(int fd, dev_t dev, const char *const *keep, int depth)
{
	_cleanup_closedir_ DIR *dir = fdopendir(fd);
	struct dirent *e;
	mode_t mode;

	if (!dir) {
		close(fd);
		return;
	}
	while ((e = readdir(dir))) {
		const char *name = e->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || is_kept(name, keep) ||
		    !is_ours(dirfd(dir), name, dev, &mode))
			continue;
		if (S_ISDIR(mode) && depth < ROOTFS_DEPTH_MAX) {
			fd = openat(dirfd(dir), name,
				    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
			if (fd >= 0)
				remove_below(fd, dev, NULL, depth + 1);
		}
		/* A folder that leads to a mount point is not empty and stays. */
		if (unlinkat(dirfd(dir), name, S_ISDIR(mode) ? AT_REMOVEDIR : 0) < 0)
			continue;
	}
}

int rootfs_empty(const char *const *keep)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;
	struct stat st;

	if (fd < 0 || fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0) {
		int err = -errno;

		if (fd >= 0)
			close(fd);
		return log_errno(err, "look at /");
	}
	if (fs.f_type != RAMFS_MAGIC && fs.f_type != TMPFS_MAGIC) {
		close(fd);
		return -EXDEV;
	}
	remove_below(fd, st.st_dev, keep, 0);
	return 0;
}
