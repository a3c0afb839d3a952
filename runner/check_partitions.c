/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Are the store, the arena and the swap partition fit? */
#include "runner/check.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "runner/amount.h"

#define MAKE_BOTH "recount format --store DEV --arena DEV makes both"

/* Words of the ext4 superblock (fs/ext4/ext4.h) that design allows: what every GRUB and every
 * kernel knows. RECOVER comes and goes with mounting; EXT_ATTR is set by any security label. */
#define COMPAT_ALLOWED	  (0x4u | 0x8u | 0x20u)		/* has_journal, ext_attr, dir_index */
#define INCOMPAT_ALLOWED  (0x2u | 0x4u | 0x40u | 0x80u) /* filetype, RECOVER, extent, 64bit */
#define RO_COMPAT_ALLOWED (0x1u | 0x2u)			/* sparse_super, large_file */

static const struct {
	char word; /* of the superblock: c, i or r */
	uint32_t bit;
	const char *name; /* as in ext4(5) */
} features[] = {
	{'c', 0x10, "resize_inode"},
	{'c', 0x200, "sparse_super2"},
	{'c', 0x400, "fast_commit"},
	{'c', 0x800, "stable_inodes"},
	{'c', 0x1000, "orphan_file"},
	{'i', 0x8, "journal_dev"},
	{'i', 0x10, "meta_bg"},
	{'i', 0x100, "mmp"},
	{'i', 0x200, "flex_bg"},
	{'i', 0x400, "ea_inode"},
	{'i', 0x2000, "metadata_csum_seed"},
	{'i', 0x4000, "large_dir"},
	{'i', 0x8000, "inline_data"},
	{'i', 0x10000, "encrypt"},
	{'i', 0x20000, "casefold"},
	{'r', 0x8, "huge_file"},
	{'r', 0x10, "uninit_bg"},
	{'r', 0x20, "dir_nlink"},
	{'r', 0x40, "extra_isize"},
	{'r', 0x100, "quota"},
	{'r', 0x200, "bigalloc"},
	{'r', 0x400, "metadata_csum"},
	{'r', 0x2000, "project"},
	{'r', 0x8000, "verity"},
};

/* Without the root that --root put before it. */
static const char *shown(const struct machine *m, const struct device *d)
{
	return d->path + strlen(m->root);
}

static void name_features(const struct ext4_facts *facts, char *text, size_t size)
{
	size_t len = 0;

	*text = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(features) && len < size; i++) {
		uint32_t word = features[i].word == 'c'	  ? facts->compat & ~COMPAT_ALLOWED
				: features[i].word == 'i' ? facts->incompat & ~INCOMPAT_ALLOWED
							  : facts->ro_compat & ~RO_COMPAT_ALLOWED;

		if (word & features[i].bit)
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? " " : "",
						features[i].name);
	}
	if (!*text)
		snprintf(text, size, "unknown ones");
}

/*
 * Free bytes by the superblock (fs/ext4/ext4.h: s_free_blocks_count at 0x0c and 0x158,
 * s_log_block_size at 0x18), which needs no mount. What root alone may use is not taken off: the
 * records are root's.
 */
static int free_bytes(const struct device *d, uint64_t *out)
{
	_cleanup_close_ int fd = open(d->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	unsigned char sb[1024];
	uint32_t lo, hi, log_size;

	if (fd < 0)
		return -errno;
	if (pread(fd, sb, sizeof(sb), 1024) != sizeof(sb))
		return -EIO;
	memcpy(&lo, sb + 0x0c, sizeof(lo));
	memcpy(&hi, sb + 0x158, sizeof(hi));
	memcpy(&log_size, sb + 0x18, sizeof(log_size));
	*out = ((uint64_t)le32toh(hi) << 32 | le32toh(lo)) << (10 + le32toh(log_size));
	return 0;
}

static void say_missing(struct findings *f, const struct machine *m, const char *area,
			const char *label, int err)
{
	char text[MACHINE_TEXT];

	machine_missing(m, label, err, text);
	findings_no(f, area, "%s", text);
}

/* Another device with the same UUID, of which nobody could say which is meant. */
static const struct device *find_clone(const struct machine *m, const struct device *d)
{
	const struct device *same;

	if (devices_by_uuid(&m->devices, d->uuid, &same) != -ENOTUNIQ)
		return NULL;
	for (size_t i = 0; i < m->devices.n; i++) {
		same = &m->devices.devices[i];
		if (same != d && !*same->stack && !strcasecmp(same->uuid, d->uuid))
			return same;
	}
	return d;
}

/* What store and arena have in common; 1: fit so far. */
static int check_place(struct findings *f, const struct machine *m, const char *area,
		       const struct device *d)
{
	const struct mountinfo_entry *mount = mountinfo_of_device(&m->mounts, d->maj, d->min);
	const struct device *clone;
	unsigned before = f->obstacles;

	if (*d->stack)
		findings_no(f, area,
			    "%s lies on %s, where GRUB cannot write and recount-init finds "
			    "nothing; use a plain partition: " MAKE_BOTH,
			    shown(m, d), d->stack);
	if (strcmp(d->type, "ext4") != 0)
		findings_no(f, area, "%s is %s, not ext4; " MAKE_BOTH, shown(m, d),
			    *d->type ? d->type : "not a file system that is known");
	if (d == m->root_dev || d == m->boot_dev)
		findings_no(f, area,
			    "%s holds the machine's own %s; use a partition of its own: " MAKE_BOTH,
			    shown(m, d), d == m->root_dev ? "root file system" : "/boot");
	else if (mount)
		findings_no(f, area, "%s is mounted at %s; umount %s (and take it out of fstab)",
			    shown(m, d), mount->point, mount->point);
	if (d->read_only)
		findings_no(f, area, "%s is write-protected; blockdev --setrw %s, or another one",
			    shown(m, d), shown(m, d));
	clone = find_clone(m, d);
	if (clone)
		findings_no(f, area,
			    "%s has the UUID of %s, it is a clone; give it a new one: tune2fs -U "
			    "random %s",
			    shown(m, clone), shown(m, d), shown(m, clone));
	return f->obstacles == before;
}

/* The ext4 on @d; 1: fit so far. */
static int check_ext4(struct findings *f, const struct machine *m, const char *area,
		      const struct device *d)
{
	struct ext4_facts facts;
	char names[256];
	int r = device_ext4_facts(d->path, &facts);

	if (r < 0) {
		findings_no(f, area, "%s cannot be read: %s", shown(m, d), strerror(-r));
		return 0;
	}
	if ((facts.compat & ~COMPAT_ALLOWED) || (facts.incompat & ~INCOMPAT_ALLOWED) ||
	    (facts.ro_compat & ~RO_COMPAT_ALLOWED)) {
		name_features(&facts, names, sizeof(names));
		findings_no(f, area,
			    "the ext4 on %s has features that not every GRUB and kernel knows: %s; "
			    "recount format makes one without",
			    shown(m, d), names);
		return 0;
	}
	if (facts.needs_recovery || !facts.clean)
		findings_warn(f, area,
			      "%s was not cleanly unmounted; what is said of it may be old "
			      "(e2fsck -p %s)",
			      shown(m, d), shown(m, d));
	return 1;
}

static void check_space(struct findings *f, const struct machine *m, const char *area,
			const struct device *d, uint64_t need, const char *praise)
{
	char free_text[AMOUNT_BYTES], need_text[AMOUNT_BYTES];
	uint64_t bytes;
	int r = free_bytes(d, &bytes);

	if (r < 0) {
		findings_no(f, area, "%s cannot be read: %s", shown(m, d), strerror(-r));
		return;
	}
	amount_size(free_text, bytes);
	amount_size(need_text, need);
	if (bytes < need)
		findings_no(f, area,
			    "%s has %s free and the plan needs %s; remove old campaigns, ask for "
			    "fewer --rounds, or use a larger one",
			    shown(m, d), free_text, need_text);
	else
		findings_ok(f, area, "%s ext4 %s, %s free%s", shown(m, d), d->label, free_text,
			    praise);
}

static void check_place_of(struct findings *f, const struct machine *m, const char *area,
			   const struct device *d, uint64_t need, const char *praise)
{
	if (check_place(f, m, area, d) && check_ext4(f, m, area, d))
		check_space(f, m, area, d, need, praise);
}

static void check_swap(struct findings *f, const struct options *o, const struct machine *m)
{
	char size[AMOUNT_BYTES];

	if (!o->swap) {
		findings_warn(f, "swap", "none named: the mem load will be skipped (--swap DEV)");
		return;
	}
	if (!m->swap) {
		findings_no(f, "swap",
			    "%s: no such partition; name one of swapon --show or lsblk -f",
			    o->swap);
		return;
	}
	if (strcmp(m->swap->type, "swap") != 0) {
		findings_no(f, "swap", "%s is %s, not swap; mkswap makes it one", shown(m, m->swap),
			    *m->swap->type ? m->swap->type : "empty");
		return;
	}
	if (*m->swap->stack || m->swap->held || !*m->swap->uuid) {
		findings_no(f, "swap", "%s is not a plain partition with a UUID; name another one",
			    shown(m, m->swap));
		return;
	}
	amount_size(size, m->swap->bytes);
	findings_ok(f, "swap", "%s, %s", shown(m, m->swap), size);
}

void check_partitions(struct findings *f, const struct options *o, const struct machine *m,
		      uint64_t store_need_bytes, uint64_t arena_need_bytes)
{
	if (!m->store)
		say_missing(f, m, "store", MACHINE_STORE_LABEL, m->store_err);
	else
		check_place_of(f, m, "store", m->store, store_need_bytes, "; GRUB can write it");
	if (!m->arena)
		say_missing(f, m, "arena", MACHINE_ARENA_LABEL, m->arena_err);
	else if (m->store && !strcmp(m->arena->uuid, m->store->uuid))
		findings_no(f, "arena",
			    "store and arena are one file system, %s; they must be two: " MAKE_BOTH,
			    shown(m, m->arena));
	else
		check_place_of(f, m, "arena", m->arena, arena_need_bytes, "");
	check_swap(f, o, m);
}
