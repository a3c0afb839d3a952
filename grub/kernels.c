/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds kernel images and the initrds that belong to them. */
#include "grub/kernels.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "grub/drivers.h"
#include "grub/kernel_label.h"
#include "grub/kernel_pair.h"
#include "grub/rootfile.h"

/* Largest offset of a version string, and the string. */
#define HEAD_BYTES (0x200 + 0x10000 + 256)

/* An image while the list is made. */
struct candidate {
	struct kernel k;
	const char *name; /* last component of k.image, or all of it outside /boot and / */
	struct stat st;
	int rank; /* the better name of the same file has the lower one */
};

struct search {
	const char *root;
	struct candidate *found;
	size_t n;
};

static void kernel_free(struct kernel *k)
{
	free(k->label);
	free(k->version);
	free(k->image);
	free(k->initrd);
	free(k->skip);
}

void kernel_list_free(struct kernel_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		kernel_free(&l->kernels[i]);
	free(l->kernels);
	memset(l, 0, sizeof(*l));
}

static void cleanup_search(struct search *s)
{
	for (size_t i = 0; i < s->n; i++)
		kernel_free(&s->found[i].k);
	free(s->found);
}

static _printf_(2, 3) int skip(struct kernel *k, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&k->skip, fmt, ap);
	va_end(ap);
	if (n >= 0)
		return 0;
	k->skip = NULL;
	return -ENOMEM;
}

static int matches(const char *name, const char *const *patterns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return 1;
	return 0;
}

/* Names as GRUB's 10_linux looks for them, and the links that packages keep. */
static int is_image_name(const char *name)
{
	static const char *const images[] = {"vmlinuz",	 "vmlinuz.old", "vmlinuz-*",
					     "kernel-*", "bzImage",	"bzImage-*"};
	static const char *const others[] = {"*.hmac",	     "*.sig", "*.asc", "*.sha*",
					     "*.efi.signed", "*.efi", "*.img", "*.txt"};

	return matches(name, images, ARRAY_SIZE(images)) &&
	       !matches(name, others, ARRAY_SIZE(others));
}

static int is_leftover(const char *name)
{
	static const char *const patterns[] = {"*.dpkg-*",  "*.rpmsave", "*.rpmnew", "*.pacsave",
					       "*.pacnew",  "*.ucf-*",	 "*.bak",    "*~",
					       "*.rpmorig", "*.orig"};

	return matches(name, patterns, ARRAY_SIZE(patterns));
}

static int rank_of(const struct candidate *c, int is_link)
{
	static const char *const poor[] = {"vmlinuz", "*.old", "*-rescue*", "bzImage"};

	if (is_link || is_leftover(c->name))
		return 3;
	if (matches(c->name, poor, ARRAY_SIZE(poor)))
		return 2;
	return *c->name == '/';
}

/* Reads the header at @fd; sets version or the reason why not. */
static int read_head(struct kernel *k, int fd)
{
	_cleanup_free_ char *head = malloc(HEAD_BYTES);
	char version[256];
	ssize_t n;
	int r;

	if (!head)
		return -ENOMEM;
	n = pread(fd, head, HEAD_BYTES, 0);
	if (n < 0)
		return skip(k, "it cannot be read: %s", strerror(errno));
	r = kernel_image_version(head, (size_t)n, version, sizeof(version));
	if (r < 0)
		return skip(k, n ? "it is not an x86-64 kernel image (bzImage)"
				 : "it is empty (0 bytes); install its package again");
	k->version = strdup(version);
	return k->version ? 0 : -ENOMEM;
}

static int examine(const struct search *s, struct candidate *c)
{
	_cleanup_close_ int fd = rootfile_open(s->root, c->k.image, 0);
	_cleanup_close_ int link = rootfile_open(s->root, c->k.image, O_PATH | O_NOFOLLOW);
	struct stat st;
	int is_link;

	is_link = link >= 0 && fstat(link, &st) == 0 && S_ISLNK(st.st_mode);
	c->rank = rank_of(c, is_link);
	if (fd == -ENOENT && is_link)
		return skip(&c->k, "a link to a file that is not there; remove it");
	if (fd == -EACCES)
		return skip(&c->k, "it cannot be read; run this as root");
	if (fd < 0)
		return skip(&c->k, "it cannot be read: %s", strerror(-fd));
	if (fstat(fd, &c->st) < 0)
		return -errno;
	if (!S_ISREG(c->st.st_mode))
		return skip(&c->k, "it is not a file");
	return read_head(&c->k, fd);
}

static int add(struct search *s, const char *dir, const char *name, int whole_name)
{
	struct candidate *c = realloc(s->found, (s->n + 1) * sizeof(*c));

	if (!c)
		return -ENOMEM;
	s->found = c;
	c += s->n;
	memset(c, 0, sizeof(*c));
	if (asprintf(&c->k.image, "%s/%s", dir, name) < 0) {
		c->k.image = NULL;
		return -ENOMEM;
	}
	s->n++;
	c->name = whole_name ? c->k.image : c->k.image + strlen(dir) + 1;
	return examine(s, c);
}

/* Images in @dir, or with @below in each folder of it. A folder that is not there holds none. */
static int scan(struct search *s, const char *dir, int below)
{
	_cleanup_closedir_ DIR *d = NULL;
	struct dirent *e;
	int fd, r = 0;

	fd = rootfile_open(s->root, *dir ? dir : "/", O_DIRECTORY);
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	while (r == 0 && (e = readdir(d))) {
		_cleanup_free_ char *path = NULL;
		struct stat st;

		if (!below) {
			if (is_image_name(e->d_name))
				r = add(s, dir, e->d_name, 0);
			continue;
		}
		if (*e->d_name == '.')
			continue;
		if (asprintf(&path, "%s/vmlinuz", e->d_name) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		if (fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
			r = add(s, dir, path, 1);
	}
	return r;
}

static int by_rank(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank - y->rank;
	return strcmp(x->k.image, y->k.image);
}

static int same_bytes(const char *root, const char *a, const char *b)
{
	_cleanup_close_ int fa = rootfile_open(root, a, 0), fb = rootfile_open(root, b, 0);
	_cleanup_free_ char *buf = malloc(2 * HEAD_BYTES);
	ssize_t n;

	if (fa < 0 || fb < 0 || !buf)
		return buf ? 0 : -ENOMEM;
	do {
		n = read(fa, buf, HEAD_BYTES);
		if (n < 0 || read(fb, buf + HEAD_BYTES, HEAD_BYTES) != n)
			return 0;
	} while (n > 0 && memcmp(buf, buf + HEAD_BYTES, (size_t)n) == 0);
	return n == 0;
}

/* Skips @c when an image with a better name is the same or supersedes it. */
static int compare_with(const struct search *s, const struct candidate *better, struct candidate *c)
{
	int r;

	if (!better->k.version || strcmp(better->k.version, c->k.version) != 0)
		return 0;
	r = better->st.st_dev == c->st.st_dev && better->st.st_ino == c->st.st_ino;
	if (!r && better->st.st_size == c->st.st_size)
		r = same_bytes(s->root, better->k.image, c->k.image);
	if (r < 0)
		return r;
	if (r) {
		c->k.same = 1;
		return skip(&c->k, "the same file as %s", better->name);
	}
	if (fnmatch("*.old", c->name, 0) == 0)
		return skip(&c->k,
			    "an older build of %s, whose modules and initrd are not its own; give "
			    "each build its own CONFIG_LOCALVERSION to compare them",
			    better->name);
	return 0;
}

static int skip_duplicates(struct search *s)
{
	int r = 0;

	qsort(s->found, s->n, sizeof(*s->found), by_rank);
	for (size_t i = 0; i < s->n; i++) {
		struct candidate *c = &s->found[i];

		for (size_t k = 0; k < i && !c->k.skip && r == 0; k++)
			if (!s->found[k].k.skip)
				r = compare_with(s, &s->found[k], c);
		if (r == 0 && !c->k.skip && is_leftover(c->name))
			r = skip(&c->k, "a left-over of the package manager");
		if (r == 0 && !c->k.skip && fnmatch("*-rescue*", c->name, 0) == 0)
			r = skip(&c->k, "a rescue image");
		if (r < 0)
			return r;
	}
	return 0;
}

int kernels_find(const char *root, struct kernel_list *out)
{
	static const char *const dirs[] = {"/boot", ""};
	_cleanup_(cleanup_search) struct search s = {.root = root};
	_cleanup_(kernel_list_free) struct kernel_list list = {NULL, 0};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(dirs) && r == 0; i++)
		r = scan(&s, dirs[i], 0);
	if (r == 0)
		r = scan(&s, "/usr/lib/modules", 1);
	if (r < 0)
		return r;
	if (!s.n)
		return -ENOENT;
	r = skip_duplicates(&s);
	for (size_t i = 0; i < s.n && r == 0; i++)
		if (!s.found[i].k.skip)
			r = kernel_pair(root, &s.found[i].k);
	if (r < 0)
		return r;
	list.kernels = calloc(s.n + 1, sizeof(*list.kernels));
	if (!list.kernels)
		return -ENOMEM;
	for (; list.n < s.n; list.n++) {
		list.kernels[list.n] = s.found[list.n].k;
		memset(&s.found[list.n].k, 0, sizeof(s.found[list.n].k));
	}
	r = kernel_label(&list);
	if (r < 0)
		return r;
	*out = list;
	memset(&list, 0, sizeof(list));
	return 0;
}
