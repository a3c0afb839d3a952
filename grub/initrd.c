/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks an initrd from its first byte to its last. */
#include "grub/initrd.h"

#include <archive.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const char trailer[] = "TRAILER!!!";
#define TRAILER_LEN  (sizeof(trailer) - 1)
#define CPIO_HEADER  110
#define CHUNK_BYTES  65536
#define UNPACKED_MAX (UINT64_C(4) << 30)
#define WHY_CUT	     "is cut short"
#define WHY_UNKNOWN  "is in no format that a kernel can unpack"
#define WHY_DAMAGED  "is damaged"

static void cleanup_archive(struct archive **a)
{
	if (*a)
		archive_read_free(*a);
}

static int is_cpio(const unsigned char *p, size_t len)
{
	return len >= 6 && memcmp(p, "07070", 5) == 0 && (p[5] == '1' || p[5] == '2');
}

/* Field @i (from 0) of a newc header: eight hex digits. */
static int field(const unsigned char *header, int i, size_t *out)
{
	const unsigned char *p = header + 6 + 8 * i;
	size_t v = 0;

	for (int k = 0; k < 8; k++) {
		const char *digits = "0123456789abcdef", *d = strchr(digits, p[k] | 0x20);

		if (!p[k] || !d || !*d)
			return -EBADMSG;
		v = v * 16 + (size_t)(d - digits);
	}
	*out = v;
	return 0;
}

static size_t align4(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/*
 * Steps over the archive at *@at. Early archives for microcode and ACPI tables hold nothing but
 * kernel/…; *@has_files is set when something else is in it.
 */
static const char *skip_cpio(const unsigned char *p, size_t len, size_t *at, int *has_files)
{
	size_t pos = *at, name, size;

	for (;;) {
		const char *text;

		if (len - pos < CPIO_HEADER)
			return WHY_CUT;
		if (!is_cpio(p + pos, len - pos) || field(p + pos, 11, &name) < 0 ||
		    field(p + pos, 6, &size) < 0 || !name)
			return WHY_DAMAGED;
		if (name > len - pos - CPIO_HEADER)
			return WHY_CUT;
		text = (const char *)p + pos + CPIO_HEADER;
		if (text[name - 1])
			return WHY_DAMAGED;
		pos = align4(pos + CPIO_HEADER + name);
		if (strcmp(text, trailer) == 0)
			break;
		if (pos > len || size > len - pos || align4(pos + size) > len)
			return WHY_CUT;
		pos = align4(pos + size);
		if (strcmp(text, ".") != 0 && strcmp(text, "kernel") != 0 &&
		    strncmp(text, "kernel/", 7) != 0 && strcmp(text, "early_cpio") != 0)
			*has_files = 1;
	}
	*at = pos < len ? pos : len;
	return NULL;
}

/* The last bytes of a stream that are not zero. */
struct tail {
	char bytes[TRAILER_LEN];
	uint64_t zeros; /* seen since */
};

static void tail_add(struct tail *t, const char *p, size_t n)
{
	size_t used = n;

	while (used && !p[used - 1])
		used--;
	if (!used) {
		t->zeros += n;
		return;
	}
	if (used >= TRAILER_LEN) {
		memcpy(t->bytes, p + used - TRAILER_LEN, TRAILER_LEN);
	} else if (t->zeros) {
		/* Zeros between the pieces: not the trailer whatever follows. */
		memset(t->bytes, 0, TRAILER_LEN);
		memcpy(t->bytes + TRAILER_LEN - used, p, used);
	} else {
		memmove(t->bytes, t->bytes + used, TRAILER_LEN - used);
		memcpy(t->bytes + TRAILER_LEN - used, p, used);
	}
	t->zeros = n - used;
}

struct method {
	unsigned char n, magic[6];
	int (*support)(struct archive *a);
};

/* How the stream at @p is compressed; NULL when it is not. */
static const struct method *find_method(const unsigned char *p, size_t len)
{
	/* As the kernel tells them apart, lib/decompress.c and the methods it names. */
	static const struct method methods[] = {
		{2, {0x1f, 0x8b}, archive_read_support_filter_gzip},
		{2, {0x1f, 0x9e}, archive_read_support_filter_gzip},
		{3, {'B', 'Z', 'h'}, archive_read_support_filter_bzip2},
		{3, {0x5d, 0, 0}, archive_read_support_filter_lzma},
		{6, {0xfd, '7', 'z', 'X', 'Z', 0}, archive_read_support_filter_xz},
		{4, {0x89, 'L', 'Z', 'O'}, archive_read_support_filter_lzop},
		{4, {0x02, 0x21, 0x4c, 0x18}, archive_read_support_filter_lz4},
		{4, {0x28, 0xb5, 0x2f, 0xfd}, archive_read_support_filter_zstd},
	};

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (len >= methods[i].n && memcmp(p, methods[i].magic, methods[i].n) == 0)
			return &methods[i];
	return NULL;
}

/* Only the one method is made known to libarchive: for some that a kernel does not have it would
 * start a program, which the bytes inside a stream could ask for. */
static const char *check_stream(const struct method *method, const unsigned char *p, size_t len)
{
	_cleanup_(cleanup_archive) struct archive *a = archive_read_new();
	_cleanup_free_ char *buf = malloc(CHUNK_BYTES);
	struct archive_entry *entry;
	struct tail tail = {.zeros = 0};
	uint64_t unpacked = 0;
	la_ssize_t n;
	int r;

	if (!a || !buf)
		return WHY_DAMAGED;
	r = method->support(a);
	if (r == ARCHIVE_WARN) /* by a program: then the first bytes must do */
		return NULL;
	if (r != ARCHIVE_OK || archive_read_support_format_raw(a) != ARCHIVE_OK ||
	    archive_read_open_memory(a, p, len) != ARCHIVE_OK ||
	    archive_read_next_header(a, &entry) != ARCHIVE_OK)
		return WHY_DAMAGED;
	while ((n = archive_read_data(a, buf, CHUNK_BYTES)) > 0) {
		if (!unpacked && !is_cpio((const unsigned char *)buf, (size_t)n))
			return WHY_UNKNOWN;
		unpacked += (uint64_t)n;
		if (unpacked > UNPACKED_MAX)
			return "unpacks to more than 4 GiB";
		tail_add(&tail, buf, (size_t)n);
	}
	if (n < 0)
		return "is cut short or damaged";
	return unpacked && memcmp(tail.bytes, trailer, TRAILER_LEN) == 0 ? NULL : WHY_CUT;
}

/* Most decoders take zeros behind their stream for damage; how many of them belong to the stream
 * (an empty last block of zstd ends in two) is found by trying. */
static const char *check_padded(const struct method *method, const unsigned char *p, size_t len)
{
	const char *why = check_stream(method, p, len);
	size_t used = len;

	while (used && !p[used - 1])
		used--;
	for (size_t keep = 0; why && keep < 4 && used + keep < len; keep++)
		if (!check_stream(method, p, used + keep))
			return NULL;
	return why;
}

/* Bytes without a bootconfig, which the kernel takes off the end first (boot/bootconfig.rst). */
static size_t without_bootconfig(const unsigned char *p, size_t len)
{
	static const char magic[] = "#BOOTCONFIG\n";
	const size_t n = sizeof(magic) - 1;
	uint32_t size;

	if (len < n + 8 || memcmp(p + len - n, magic, n) != 0)
		return len;
	memcpy(&size, p + len - n - 8, sizeof(size));
	return size <= len - n - 8 ? len - n - 8 - size : len;
}

static const char *check_bytes(const unsigned char *p, size_t len)
{
	const char *why;
	int has_files = 0;
	size_t at = 0;

	len = without_bootconfig(p, len);
	while (at < len) {
		if (!p[at]) {
			at++;
		} else if (is_cpio(p + at, len - at)) {
			why = skip_cpio(p, len, &at, &has_files);
			if (why)
				return why;
		} else if (find_method(p + at, len - at)) {
			return check_padded(find_method(p + at, len - at), p + at, len - at);
		} else {
			return len - at < 6 ? WHY_CUT : WHY_UNKNOWN;
		}
	}
	return has_files ? NULL : WHY_CUT;
}

int initrd_check_fd(int fd, const char **why)
{
	const char *found;
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size == 0) {
		*why = "is empty (0 bytes)";
		return -EBADMSG;
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	found = check_bytes(p, (size_t)st.st_size);
	munmap(p, (size_t)st.st_size);
	if (!found)
		return 0;
	*why = found;
	return -EBADMSG;
}

int initrd_check(const char *path, const char **why)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : initrd_check_fd(fd, why);
}
