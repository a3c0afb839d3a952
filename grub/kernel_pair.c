/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds and judges a kernel's initrd. */
#include "grub/kernel_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "grub/drivers.h"
#include "grub/rootfile.h"

/* Opens @path and, when it is there, makes it the initrd of @k: the descriptor or -errno. */
static int take(const char *root, struct kernel *k, const char *path)
{
	int fd = rootfile_open(root, path, 0);

	if (fd < 0 && fd != -EACCES)
		return fd;
	free(k->initrd);
	k->initrd = strdup(path);
	if (k->initrd)
		return fd;
	if (fd >= 0)
		close(fd);
	return -ENOMEM;
}

/* Tries all names for one suffix, beside the image. -ENOENT when there is none. */
static int find_suffix(const char *root, struct kernel *k, const char *dir, const char *suffix)
{
	static const char *const names[][2] = {
		{"initrd.img-", ""},
		{"initrd-", ".img"},
		{"initrd-", ""},
		{"initrd-", ".gz"},
		{"initramfs-", ".img"},
		{"initramfs-", ""},
		{"initramfs-genkernel-", ""},
		{"initramfs-genkernel-x86_64-", ""},
	};
	int fd = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(names) && fd == -ENOENT; i++) {
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "%s/%s%s%s", dir, names[i][0], suffix, names[i][1]) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		fd = take(root, k, path);
	}
	return fd;
}

/* vmlinuz and vmlinuz.old keep theirs as initrd.img and initrd.img.old. */
static int find_plain(const char *root, struct kernel *k, const char *dir, const char *name)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/initrd.img%s", dir, strcmp(name, "vmlinuz.old") ? "" : ".old") <
	    0) {
		path = NULL;
		return -ENOMEM;
	}
	return take(root, k, path);
}

/* By the image's own suffix, without ".old", then by the version: descriptor or -errno. */
static int find_initrd(const char *root, struct kernel *k)
{
	const char *slash = strrchr(k->image, '/'), *dash = strchr(slash, '-');
	_cleanup_free_ char *dir = strndup(k->image, (size_t)(slash - k->image));
	_cleanup_free_ char *suffix = strdup(dash ? dash + 1 : "");
	int in_modules = strncmp(k->image, "/usr/lib/modules/", 17) == 0, fd = -ENOENT;
	size_t len;

	if (!dir || !suffix)
		return -ENOMEM;
	if (*suffix)
		fd = find_suffix(root, k, dir, suffix);
	else if (!in_modules)
		fd = find_plain(root, k, dir, slash + 1);
	len = strlen(suffix);
	if (fd == -ENOENT && len > 4 && strcmp(suffix + len - 4, ".old") == 0) {
		suffix[len - 4] = '\0';
		fd = find_suffix(root, k, dir, suffix);
	}
	if (fd == -ENOENT)
		fd = find_suffix(root, k, "/boot", k->version);
	return fd;
}

/* The command that makes this machine's initrds, the version goes behind it; NULL: not known. */
static const char *maker_of(const char *root)
{
	static const struct {
		const char *program, *command;
	} makers[] = {
		{"/usr/sbin/update-initramfs", "update-initramfs -u -k "},
		{"/usr/bin/dracut", "dracut --force --kver "},
	};

	for (size_t i = 0; i < ARRAY_SIZE(makers); i++) {
		_cleanup_close_ int fd = rootfile_open(root, makers[i].program, O_PATH);

		if (fd >= 0)
			return makers[i].command;
	}
	return NULL;
}

static int set_skip(const char *root, struct kernel *k, const char *text, const char *verb)
{
	const char *maker = maker_of(root);
	int n;

	if (maker)
		n = asprintf(&k->skip, "%s; %s it: %s%s", text, verb, maker, k->version);
	else
		n = asprintf(&k->skip, "%s; %s it", text, verb);
	if (n >= 0)
		return 0;
	k->skip = NULL;
	return -ENOMEM;
}

static int judge_initrd(const char *root, struct kernel *k, int fd)
{
	_cleanup_free_ char *text = NULL;
	const char *why;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	k->initrd_bytes = (uint64_t)st.st_size;
	r = initrd_check_fd(fd, &why);
	if (r == 0)
		return 0;
	if (asprintf(&text, "its initrd %s", r == -EBADMSG ? why : "cannot be read to its end") <
	    0) {
		text = NULL;
		return -ENOMEM;
	}
	return set_skip(root, k, text, "rebuild");
}

static int judge_without(const char *root, struct kernel *k)
{
	_cleanup_free_ char *driver = NULL, *text = NULL;
	int r = drivers_missing(root, k->version, &driver);

	if (r <= 0)
		return r;
	if (asprintf(&text, "it has no initrd, but %s is a module that it needs first", driver) <
	    0) {
		text = NULL;
		return -ENOMEM;
	}
	return set_skip(root, k, text, "make");
}

/* What recount needs of every kernel, as far as its config is known. */
static int judge_config(const char *root, struct kernel *k)
{
	static const char *const needs[][2] = {
		{"CONFIG_BLK_DEV_INITRD", "it was built without initrd support, by which recount "
					  "is started (CONFIG_BLK_DEV_INITRD)"},
		{"CONFIG_EXT4_FS", "it was built without ext4, the file system of the store "
				   "(CONFIG_EXT4_FS)"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		int r = drivers_config(root, k->version, needs[i][0]);

		if (r < 0)
			return r;
		if (r != 'n')
			continue;
		k->skip = strdup(needs[i][1]);
		return k->skip ? 0 : -ENOMEM;
	}
	return 0;
}

int kernel_pair(const char *root, struct kernel *k)
{
	_cleanup_close_ int fd = -1;
	int r = judge_config(root, k);

	if (r < 0 || k->skip)
		return r;
	fd = find_initrd(root, k);
	if (fd >= 0)
		return judge_initrd(root, k, fd);
	if (fd == -EACCES) {
		k->skip = strdup("its initrd cannot be read; run this as root");
		return k->skip ? 0 : -ENOMEM;
	}
	return fd == -ENOENT ? judge_without(root, k) : fd;
}
