/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which drivers a kernel has only as modules. */
#include "grub/drivers.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "grub/rootfile.h"

#define LIST_BYTES_MAX (16u << 20)

/* Reads the first of two files that is there; @formats take the version. *@text stays NULL when
 * there is neither. */
static int read_either(const char *root, const char *const formats[2][2], const char *version,
		       char **text)
{
	size_t len;
	int r = -ENOENT;

	for (int i = 0; i < 2 && r == -ENOENT; i++) {
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "%s%s%s", formats[i][0], version, formats[i][1]) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		r = rootfile_read(root, path, LIST_BYTES_MAX, text, &len);
	}
	return r == -ENOENT ? 0 : r;
}

int drivers_config(const char *root, const char *version, const char *name)
{
	static const char *const where[2][2] = {{"/boot/config-", ""},
						{"/usr/lib/modules/", "/config"}};
	_cleanup_free_ char *text = NULL;
	size_t len = strlen(name);
	int r = read_either(root, where, version, &text);

	if (r < 0 || !text)
		return r;
	for (const char *p = text; (p = strstr(p, name)); p += len) {
		if (p[len] == '=' && (p == text || p[-1] == '\n'))
			return p[len + 1] == 'm' ? 'm' : 'y';
		if (strncmp(p + len, " is not set", 11) == 0)
			return 'n';
	}
	return 0;
}

/* Is the module @name (its '-' and '_' are the same) in a list of paths? */
static int lists(const char *text, const char *name)
{
	for (const char *line = text; *line;) {
		size_t path = strcspn(line, ":\n"), base = path, i = 0;

		while (base && line[base - 1] != '/')
			base--;
		while (name[i] && base + i < path &&
		       (line[base + i] == name[i] ||
			(strchr("-_", line[base + i]) && strchr("-_", name[i]))))
			i++;
		if (!name[i] && strncmp(line + base + i, ".ko", 3) == 0)
			return 1;
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return 0;
}

/* 1: only as a module, 0: built in or unknown. */
static int is_module(const char *root, const char *version, const char *name)
{
	static const char *const builtin[2][2] = {{"/usr/lib/modules/", "/modules.builtin"},
						  {"/lib/modules/", "/modules.builtin"}};
	static const char *const modular[2][2] = {{"/usr/lib/modules/", "/modules.dep"},
						  {"/lib/modules/", "/modules.dep"}};
	_cleanup_free_ char *in = NULL, *out = NULL;
	int r;

	r = read_either(root, builtin, version, &in);
	if (r == 0)
		r = read_either(root, modular, version, &out);
	if (r < 0)
		return r;
	return !(in && lists(in, name)) && out && lists(out, name);
}

/* The last component of the link @dir/@name into @out; 0 when there is no such link. */
static int link_base(const char *dir, const char *name, char *out, size_t size)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *slash;
	ssize_t n;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return 0;
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return 0;
	target[n] = '\0';
	slash = strrchr(target, '/');
	return snprintf(out, size, "%s", slash ? slash + 1 : target) < (int)size;
}

/* The real folder in /sys of the device that @root lies on. */
static int root_device(const char *root, char *dir, size_t size)
{
	char link[64], self[64];
	_cleanup_close_ int fd = -1;
	struct stat st;
	ssize_t n;

	if (stat(*root ? root : "/", &st) < 0)
		return -errno;
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	fd = rootfile_open(root, link, O_PATH);
	if (fd < 0)
		return fd;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = readlink(self, dir, size - 1);
	if (n < 0)
		return -errno;
	dir[n] = '\0';
	return 0;
}

int drivers_missing(const char *root, const char *version, char **driver)
{
	char dir[PATH_MAX], name[NAME_MAX + 1], inner[PATH_MAX + 16];
	char *slash;
	int r;

	r = drivers_config(root, version, "CONFIG_EXT4_FS");
	if (r == 0)
		r = is_module(root, version, "ext4") == 1 ? 'm' : 0;
	if (r == 'm') {
		*driver = strdup("ext4");
		return *driver ? 1 : -ENOMEM;
	}
	/* No such device (btrfs, overlay, another machine's root): nothing is known. */
	if (r < 0 || root_device(root, dir, sizeof(dir)) < 0)
		return r < 0 ? r : 0;
	for (; (slash = strrchr(dir, '/')) && slash != dir; *slash = '\0') {
		if (strcmp(slash, "/devices") == 0)
			break;
		if (!link_base(dir, "driver", name, sizeof(name)))
			continue;
		/* The module of a driver often has another name than the driver. */
		snprintf(inner, sizeof(inner), "%s/driver", dir);
		link_base(inner, "module", name, sizeof(name));
		r = is_module(root, version, name);
		if (r <= 0)
			continue;
		*driver = strdup(name);
		return *driver ? 1 : -ENOMEM;
	}
	return 0;
}
