/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The kernels that this machine could boot: images in /boot, / and /usr/lib/modules/VERSION/vmlinuz
 * with the version read from the image's own header, paired with their initrds; and, apart, what
 * was skipped and why. Reads files only. @root is "" or the folder under which the machine's root
 * lies.
 */
#ifndef RECOUNT_GRUB_KERNELS_H
#define RECOUNT_GRUB_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "grub/initrd.h"
#include "results/macro.h"

struct kernel {
	char *label;   /* short, unique name, e.g. 6.1.0-57; of a skipped one its file name */
	char *version; /* as uname -r will say, from the image header; NULL: none can be read */
	char *image;   /* path without @root, e.g. /boot/vmlinuz-6.1.0-57-amd64 */
	char *initrd;  /* the same, or NULL: none */
	uint64_t initrd_bytes;
	char *skip; /* NULL: can be booted; else the reason and what to do, for people */
	int same;   /* 1: skipped for being another name of an image of the list; nothing is lost */
};

struct kernel_list {
	struct kernel *kernels; /* sorted by version as dpkg would, oldest first, -rc before its
				   release; those without version last */
	size_t n;
};

/*
 * -ENOENT when there is no image at all, -ENOSYS as rootfile_open(). Every initrd is read to its
 * end, which takes some 0.1 to 3 s each. Owned by caller, kernel_list_free().
 */
int kernels_find(const char *root, struct kernel_list *out) _must_check_;
void kernel_list_free(struct kernel_list *l);

/*
 * The version in a bzImage header: u16 at 0x20E plus 0x200, up to the first blank
 * (Documentation/arch/x86/boot.rst, kernel_version). -EBADMSG when @buf is no x86-64 bzImage
 * (boot flag, "HdrS", protocol 2.12 or newer, XLF_KERNEL_64), is cut before the version, or has one
 * that is not made of letters, digits and "._+~:@%-", or starts with "." or "-"; -ENAMETOOLONG.
 */
int kernel_image_version(const void *buf, size_t len, char *version, size_t size) _must_check_;

#endif
