/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of block devices. */
#include "initramfs/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "initramfs/contents.h"
#include "results/log.h"

/* Media that are slow, come and go, or live in memory. */
static int is_skipped(const char *name)
{
	static const char *const prefixes[] = {"fd", "sr", "loop", "ram", "zram"};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], n) == 0 && name[n] >= '0' && name[n] <= '9')
			return 1;
	}
	return 0;
}

/* The first line of file @attr below folder @dirfd, without its newline. */
static int read_attr(int dirfd, const char *attr, char *buf, size_t size)
{
	_cleanup_close_ int fd = openat(dirfd, attr, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

static uint64_t read_number(int dirfd, const char *attr)
{
	char buf[32];

	return read_attr(dirfd, attr, buf, sizeof(buf)) < 0 ? 0 : strtoull(buf, NULL, 10);
}

static int folder_is_empty(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 1;
	}
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return 0;
	return 1;
}

static void read_stack(int dirfd, struct device *d)
{
	char uuid[256];

	if (read_attr(dirfd, "dm/uuid", uuid, sizeof(uuid)) == 0) {
		if (strncmp(uuid, "LVM-", 4) == 0)
			strcpy(d->stack, "LVM");
		else if (strncmp(uuid, "CRYPT-", 6) == 0)
			strcpy(d->stack, "crypt");
		else
			strcpy(d->stack, "dm");
	} else if (faccessat(dirfd, "md", F_OK, 0) == 0 ||
		   /* A partition of an md device: /sys/class/block/NAME is a link into its disk. */
		   (d->partition && faccessat(dirfd, "../md", F_OK, 0) == 0)) {
		strcpy(d->stack, "md");
	}
}

/* What /sys says. -ENOENT for a device that has gone or holds nothing. */
static int read_sys(int block, const char *root, const char *name, struct device *d)
{
	_cleanup_close_ int dir = openat(block, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char number[32];

	memset(d, 0, sizeof(*d));
	if (dir < 0)
		return -errno;
	if (strlen(name) >= sizeof(d->name) ||
	    snprintf(d->path, sizeof(d->path), "%s/dev/%s", root, name) >= (int)sizeof(d->path))
		return -ENAMETOOLONG;
	strcpy(d->name, name);
	for (char *p = d->path + strlen(d->path) - strlen(name); *p; p++)
		if (*p == '!')
			*p = '/';
	d->bytes = read_number(dir, "size") * 512;
	if (d->bytes == 0)
		return -ENOENT;
	if (read_attr(dir, "dev", number, sizeof(number)) < 0 ||
	    sscanf(number, "%u:%u", &d->maj, &d->min) != 2)
		return -ENOENT;
	d->start_sector = read_number(dir, "start");
	d->partition = faccessat(dir, "partition", F_OK, 0) == 0;
	d->read_only = read_number(dir, "ro") != 0;
	d->held = !folder_is_empty(dir, "holders");
	read_stack(dir, d);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strverscmp(((const struct device *)a)->name, ((const struct device *)b)->name);
}

static int append(struct device_list *l, const struct device *d)
{
	struct device *grown = realloc(l->devices, (l->n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	l->devices = grown;
	l->devices[l->n++] = *d;
	return 0;
}

/* Where that fails, opening the device says so. */
static void make_node(const struct device *d)
{
	if (access(d->path, F_OK) < 0 && errno == ENOENT &&
	    mknod(d->path, S_IFBLK | 0600, makedev(d->maj, d->min)) < 0)
		return;
}

int devices_scan(const char *root, struct device_list *out)
{
	_cleanup_(cleanup_device_list) struct device_list l = {0};
	_cleanup_closedir_ DIR *dir = NULL;
	char path[4096];
	struct device d;
	struct dirent *e;

	if (snprintf(path, sizeof(path), "%s/sys/class/block", root) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	dir = opendir(path);
	if (!dir)
		return log_errno(-errno, "open %s", path);
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.' || is_skipped(e->d_name))
			continue;
		if (read_sys(dirfd(dir), root, e->d_name, &d) < 0)
			continue;
		if (!*root)
			make_node(&d);
		if (append(&l, &d) < 0)
			return -ENOMEM;
	}
	if (l.n) {
		qsort(l.devices, l.n, sizeof(*l.devices), by_name);
		contents_read(l.devices, l.n);
	}
	*out = l;
	l = (struct device_list){0};
	return 0;
}

void device_list_free(struct device_list *l)
{
	free(l->devices);
	*l = (struct device_list){0};
}

static int is_candidate(const struct device *d)
{
	return !d->held && strcmp(d->usage, "raid") != 0 && strcmp(d->usage, "crypto") != 0;
}

int devices_by_uuid(const struct device_list *l, const char *uuid, const struct device **out)
{
	const struct device *found = NULL;

	if (!*uuid)
		return -ENOENT;
	for (size_t i = 0; i < l->n; i++) {
		const struct device *d = &l->devices[i];

		if (!is_candidate(d) || strcasecmp(d->uuid, uuid) != 0)
			continue;
		if (found)
			return -ENOTUNIQ;
		found = d;
	}
	if (!found)
		return -ENOENT;
	*out = found;
	return 0;
}

int device_is_hibernated(const struct device *d)
{
	return !strcmp(d->type, "swsuspend");
}

int devices_by_label(const struct device_list *l, const char *label, const struct device **out)
{
	const struct device *found = NULL;

	if (!*label)
		return -ENOENT;
	for (size_t i = 0; i < l->n; i++) {
		const struct device *d = &l->devices[i];

		if (!is_candidate(d) || strcmp(d->label, label) != 0)
			continue;
		if (found)
			return -ENOTUNIQ;
		found = d;
	}
	if (!found || found->ambivalent)
		return -ENOENT;
	*out = found;
	return 0;
}

int device_set_read_only(const char *path, int read_only)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, BLKROSET, &read_only) < 0)
		return log_errno(-errno, "set %s %s", path, read_only ? "read-only" : "writable");
	return 0;
}

int device_ext4_facts(const char *path, struct ext4_facts *out)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	unsigned char sb[EXT4_SUPER_BYTES];
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = pread(fd, sb, sizeof(sb), EXT4_SUPER_OFFSET);
	return n < 0 ? -errno : ext4_facts_decode(sb, (size_t)n, out);
}
