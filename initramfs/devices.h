/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Block devices and what is on them: /sys/class/block for the list, libblkid's low-level probe (no
 * cache, no configuration) for file systems. Used by recount-init as PID 1 and by `recount`. @root
 * is "" or a folder with sys/ and dev/ in it (a fake machine, or a rescue system's view).
 */
#ifndef RECOUNT_INITRAMFS_DEVICES_H
#define RECOUNT_INITRAMFS_DEVICES_H

#include <stddef.h>
#include <stdint.h>

#include "initramfs/ext4.h"
#include "results/macro.h"

struct device {
	char name[32];			    /* sda1, nvme0n1p3; "cciss!c0d0p1" as in /sys */
	char path[288];			    /* @root/dev/NAME */
	char uuid[64], label[64], type[32]; /* "" when there is none */
	char usage[16];			    /* libblkid's USAGE: filesystem, raid, crypto, other */
	char partuuid[64];     /* "" when there is none, and always in a fake machine */
	uint64_t start_sector; /* 512-byte sectors from the start of the disk; 0: a whole disk */
	uint64_t bytes;
	unsigned maj, min;
	int partition;	/* 1: part of a disk */
	int read_only;	/* /sys/…/ro: the kernel's read-only flag or a write-protected medium */
	int held;	/* /sys/…/holders is not empty: used by dm or md */
	char stack[32]; /* "": plain disk; "LVM", "crypt", "md", "dm": what it is built of */
	int ambivalent; /* signatures of several formats: only an exact UUID may use it */
	int error;	/* 0, or why its content is unknown: -errno of opening or reading it;
			 * -ETIMEDOUT: it does not answer */
};

struct device_list {
	struct device *devices;
	size_t n;
};

/*
 * Every disk and partition that could hold a file system (no floppy, optical, loop, ram, zram, size
 * 0; dm and md are listed with their stack), sorted by name. A device that cannot be opened or read
 * is listed with its error and nothing on it; no line in the log, so that a caller may poll. A
 * missing device node is made when @root is "" (kernels without devtmpfs). What is on a device that
 * does not answer is not known (contents.h); that costs CONTENTS_WAIT_MS and a line in the log,
 * once. -ENOENT without /sys/class/block, -ENOMEM. Owned by caller, device_list_free().
 */
int devices_scan(const char *root, struct device_list *out) _must_check_;
void device_list_free(struct device_list *l);

static inline void cleanup_device_list(struct device_list *l)
{
	device_list_free(l);
}

/*
 * The one device that carries file system (or swap) @uuid; -ENOENT none, -ENOTUNIQ several (a
 * clone). Members of raid, LUKS containers and held devices do not count. Borrowed. Pure.
 */
int devices_by_uuid(const struct device_list *l, const char *uuid,
		    const struct device **out) _must_check_;

/* The same by label. An ambivalent device is never given out, but it still makes a second device
 * of that label -ENOTUNIQ. Pure. */
int devices_by_label(const struct device_list *l, const char *label,
		     const struct device **out) _must_check_;

/* 1: @d is a swap partition with the image of a hibernated system, which still has its file systems
 * open and would be destroyed by a boot of another kernel. Pure. */
int device_is_hibernated(const struct device *d);

/* Sets (1) or lifts (0) the kernel's read-only flag (BLKROSET) of @path. */
int device_set_read_only(const char *path, int read_only) _must_check_;

/* What the ext2/3/4 superblock on @path says. -EBADMSG when there is none. */
int device_ext4_facts(const char *path, struct ext4_facts *out) _must_check_;

#endif
