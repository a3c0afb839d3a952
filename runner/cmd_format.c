/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The verb format: makes the store and the arena. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "initramfs/devices.h"
#include "results/log.h"
#include "runner/amount.h"
#include "runner/command.h"
#include "runner/machine.h"
#include "runner/signature.h"

/* Features that every GRUB and kernel knows, by name and as the superblock's words. */
#define FEATURES  "none,has_journal,extent,dir_index,filetype,sparse_super,large_file,64bit"
#define COMPAT	  (0x4u | 0x20u)	 /* has_journal, dir_index */
#define INCOMPAT  (0x2u | 0x40u | 0x80u) /* filetype, extent, 64bit */
#define RO_COMPAT (0x1u | 0x2u)		 /* sparse_super, large_file */

#define BYTES_MIN (UINT64_C(32) << 20)

struct place { /* one of the two */
	const char *path, *label;
	int fd;
	struct stat st;
	uint64_t bytes;
};

static int refuse_mounted(const struct place *p)
{
	_cleanup_(mountinfo_free) struct mountinfo mounts = {0};
	const struct mountinfo_entry *mount = NULL;

	if (mountinfo_read("", &mounts) == 0)
		mount = mountinfo_of_device(&mounts, major(p->st.st_rdev), minor(p->st.st_rdev));
	if (mount)
		log_info("%s is mounted at %s; umount it first", p->path, mount->point);
	else
		log_info("%s is in use (swap, LVM, md or LUKS); release it first", p->path);
	return -EBUSY;
}

/* Opened exclusively, which a device that is in use refuses. */
static int open_place(struct place *p)
{
	if (!S_ISBLK(p->st.st_mode) && !S_ISREG(p->st.st_mode)) {
		log_info("%s is neither a block device nor an image file", p->path);
		return -EINVAL;
	}
	p->fd = open(p->path, O_RDWR | O_CLOEXEC | (S_ISBLK(p->st.st_mode) ? O_EXCL : 0));
	if (p->fd < 0 && errno == EBUSY)
		return refuse_mounted(p);
	if (p->fd < 0)
		return log_errno(-errno, "open %s", p->path);
	p->bytes = (uint64_t)p->st.st_size;
	if (S_ISBLK(p->st.st_mode) && ioctl(p->fd, BLKGETSIZE64, &p->bytes))
		return log_errno(-errno, "ask %s for its size", p->path);
	return 0;
}

/* A second partition of that name would make recount refuse the machine. */
static int check_label(const struct place *p)
{
	_cleanup_(cleanup_device_list) struct device_list devices = {0};
	int r;

	if (!S_ISBLK(p->st.st_mode))
		return 0;
	r = devices_scan("", &devices);
	if (r < 0)
		return log_errno(r, "list the devices");
	for (size_t i = 0; i < devices.n; i++) {
		const struct device *d = &devices.devices[i];

		if (strcmp(d->label, p->label) != 0 ||
		    (d->maj == major(p->st.st_rdev) && d->min == minor(p->st.st_rdev)))
			continue;
		log_info("%s is labelled %s already; rename it first (e2label %s OTHER), or format "
			 "that one",
			 d->path, p->label, d->path);
		return -ENOTUNIQ;
	}
	return 0;
}

/* 0 when it may be written; every refusal is printed. */
static int check_place(struct place *p, int force)
{
	char what[256];
	int r = open_place(p);

	if (r < 0)
		return r;
	if (p->bytes < BYTES_MIN) {
		log_info("%s has %llu bytes; it needs at least 32 MiB", p->path,
			 (unsigned long long)p->bytes);
		return -ENOSPC;
	}
	r = signature_find(p->fd, what, sizeof(what));
	if (r < 0)
		return log_errno(r, "look at what %s holds", p->path);
	if (r > 0 && !force) {
		log_info("%s holds %s; name another one, or --force to lose it", p->path, what);
		return -EEXIST;
	}
	return check_label(p);
}

static int make(struct place *p)
{
	char *argv[] = {"mke2fs",
			"-q",
			"-F",
			"-b",
			"4096",
			"-I",
			"256",
			"-m",
			"0",
			"-O",
			FEATURES,
			"-E",
			"lazy_itable_init=0,lazy_journal_init=0,nodiscard,root_owner=0:0",
			"-L",
			(char *)p->label,
			(char *)p->path,
			NULL};
	struct ext4_facts facts;
	char size[AMOUNT_BYTES];
	int r = signature_wipe(p->fd);

	if (r < 0)
		return log_errno(r, "wipe %s", p->path);
	/* mke2fs opens it exclusively, too. */
	close(TAKE_FD(p->fd));
	r = command_run(argv);
	if (r < 0)
		return r;
	r = device_ext4_facts(p->path, &facts);
	if (r < 0)
		return log_errno(r, "read %s back", p->path);
	if (facts.compat != COMPAT || facts.incompat != INCOMPAT || facts.ro_compat != RO_COMPAT) {
		log_info("mke2fs gave %s other features than it was asked for (%#x %#x %#x); "
			 "another "
			 "version of e2fsprogs may do",
			 p->path, facts.compat, facts.incompat, facts.ro_compat);
		return -EPROTO;
	}
	amount_size(size, p->bytes);
	printf("%s is now ext4 %s, %s\n", p->path, p->label, size);
	return 0;
}

static int is_same(const struct place *a, const struct place *b)
{
	return S_ISBLK(a->st.st_mode)
		       ? a->st.st_rdev == b->st.st_rdev
		       : a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino;
}

/* Both are looked at before either is written. */
static int format(struct place *places, size_t n, int force)
{
	for (size_t i = 0; i < n; i++)
		if (stat(places[i].path, &places[i].st)) {
			log_errno(-errno, "find %s", places[i].path);
			return EXIT_REFUSED;
		}
	if (n == 2 && is_same(&places[0], &places[1])) {
		log_info("store and arena must be two partitions, not both %s", places[0].path);
		return EXIT_REFUSED;
	}
	for (size_t i = 0; i < n; i++)
		if (check_place(&places[i], force) < 0)
			return EXIT_REFUSED;
	for (size_t i = 0; i < n; i++)
		if (make(&places[i]) < 0)
			return EXIT_FAILED;
	printf("next: recount prepare --tree SRC\n");
	return EXIT_DONE;
}

int verb_format(const struct options *o)
{
	struct place places[2];
	size_t n = 0;
	int code;

	if (*o->root) {
		log_info("format works on the running machine only, not with --root");
		return EXIT_USAGE;
	}
	if (o->store_dev)
		places[n++] = (struct place){o->store_dev, MACHINE_STORE_LABEL, -1, {0}, 0};
	if (o->arena_dev)
		places[n++] = (struct place){o->arena_dev, MACHINE_ARENA_LABEL, -1, {0}, 0};
	if (!n) {
		log_info("say which: recount format --store DEV --arena DEV");
		return EXIT_USAGE;
	}
	code = format(places, n, o->force);
	for (size_t i = 0; i < n; i++)
		cleanup_close(&places[i].fd);
	return code;
}
