/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The header of a bzImage. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "grub/kernels.h"

/* Offsets and values of Documentation/arch/x86/boot.rst. */
#define BOOT_FLAG	0x1fe
#define MAGIC		0x202
#define PROTOCOL	0x206
#define VERSION_POINTER 0x20e
#define XLOADFLAGS	0x236
#define HEADER_BYTES	0x238
#define XLF_KERNEL_64	1

static unsigned read_u16(const unsigned char *p)
{
	return (unsigned)p[0] | (unsigned)p[1] << 8;
}

/* What uname -r may say: it becomes part of file names, of commands that people are told to type,
 * and of the plan, which takes nothing else. */
static int is_version(const char *s, size_t n)
{
	static const char others[] = "._+~:@%-";

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !memchr(others, s[i], sizeof(others) - 1))
			return 0;
	return n && s[0] != '.' && s[0] != '-';
}

int kernel_image_version(const void *buf, size_t len, char *version, size_t size)
{
	const unsigned char *p = buf;
	size_t at, n;

	if (len < HEADER_BYTES || read_u16(p + BOOT_FLAG) != 0xaa55 ||
	    memcmp(p + MAGIC, "HdrS", 4) != 0 || read_u16(p + PROTOCOL) < 0x020c ||
	    !(p[XLOADFLAGS] & XLF_KERNEL_64) || !read_u16(p + VERSION_POINTER))
		return -EBADMSG;
	at = 0x200 + (size_t)read_u16(p + VERSION_POINTER);
	for (n = 0; at + n < len && p[at + n] > ' ' && p[at + n] < 0x7f; n++)
		;
	if (at + n >= len || (p[at + n] && p[at + n] != ' ') ||
	    !is_version((const char *)p + at, n))
		return -EBADMSG;
	if (n >= size)
		return -ENAMETOOLONG;
	memcpy(version, p + at, n);
	version[n] = '\0';
	return 0;
}
