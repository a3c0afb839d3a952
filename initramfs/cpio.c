/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The boot archive: written by libarchive, checked by hand. */
#include "initramfs/cpio.h"

#include <archive.h>
#include <archive_entry.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#define ALIGNMENT    512
#define PROGRAM_MAX  (64 << 20)
#define NEWC_HEADER  110 /* "070701" and 13 fields of 8 hex digits */
#define NEWC_TRAILER "TRAILER!!!"

/* The fields of a newc header in their order. */
enum newc_field {
	INO,
	MODE,
	UID,
	GID,
	NLINK,
	MTIME,
	FILESIZE,
	DEVMAJ,
	DEVMIN,
	RDEVMAJ,
	RDEVMIN,
	NAMESIZE,
	CHECK
};

static void cleanup_archive_write(struct archive **a)
{
	if (*a)
		archive_write_free(*a);
}

static void cleanup_archive_entry(struct archive_entry **e)
{
	if (*e)
		archive_entry_free(*e);
}

/* A truncated program, or one that wants ld.so, would end as "Attempted to kill init". */
static const char *program_fault(const uint8_t *buf, size_t len)
{
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	int loads = 0;

	if (len < sizeof(ehdr) || memcmp(buf, ELFMAG, SELFMAG) != 0)
		return "recount-init is not an ELF program";
	memcpy(&ehdr, buf, sizeof(ehdr));
	if (ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
	    ehdr.e_machine != EM_X86_64)
		return "recount-init is not an x86-64 program";
	if ((ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN) || ehdr.e_entry == 0 ||
	    ehdr.e_phentsize != sizeof(phdr))
		return "recount-init is not an executable program";
	if (ehdr.e_phoff > len || (len - ehdr.e_phoff) / sizeof(phdr) < ehdr.e_phnum)
		return "recount-init is cut short";
	for (unsigned i = 0; i < ehdr.e_phnum; i++) {
		memcpy(&phdr, buf + ehdr.e_phoff + i * sizeof(phdr), sizeof(phdr));
		if (phdr.p_type == PT_INTERP)
			return "recount-init is not statically linked";
		if (phdr.p_offset > len || phdr.p_filesz > len - phdr.p_offset)
			return "recount-init is cut short";
		loads += phdr.p_type == PT_LOAD;
	}
	return loads ? NULL : "recount-init is not an executable program";
}

static int read_program(const char *path, uint8_t **buf, size_t *len)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ uint8_t *b = NULL;
	struct stat st;
	size_t have = 0;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	if (st.st_size > PROGRAM_MAX)
		return -EFBIG;
	b = malloc((size_t)st.st_size + 1);
	if (!b)
		return -ENOMEM;
	while (have < (size_t)st.st_size) {
		n = read(fd, b + have, (size_t)st.st_size - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		have += (size_t)n;
	}
	*buf = TAKE_PTR(b);
	*len = have;
	return 0;
}

static int archive_error(struct archive *a)
{
	int err = archive_errno(a);

	return err > 0 ? -err : -EIO;
}

int cpio_build(const char *init_path, void **buf, size_t *len)
{
	_cleanup_(cleanup_archive_write) struct archive *a = archive_write_new();
	_cleanup_(cleanup_archive_entry) struct archive_entry *e = archive_entry_new();
	_cleanup_free_ uint8_t *program = NULL;
	_cleanup_free_ void *out = NULL;
	size_t size = 0, used = 0, room;
	int r;

	if (!a || !e)
		return -ENOMEM;
	r = read_program(init_path, &program, &size);
	if (r < 0)
		return r;
	if (program_fault(program, size))
		return -EBADMSG;
	room = size + 4 * ALIGNMENT;
	out = malloc(room);
	if (!out)
		return -ENOMEM;

	archive_entry_set_pathname(e, CPIO_INIT_NAME);
	archive_entry_set_mode(e, S_IFREG | 0755);
	archive_entry_set_ino64(e, 1);
	archive_entry_set_nlink(e, 1);
	archive_entry_set_uid(e, 0);
	archive_entry_set_gid(e, 0);
	archive_entry_set_mtime(e, 0, 0);
	archive_entry_set_size(e, (int64_t)size);

	if (archive_write_set_format_cpio_newc(a) != ARCHIVE_OK ||
	    archive_write_add_filter_none(a) != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(a, ALIGNMENT) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(a, ALIGNMENT) != ARCHIVE_OK ||
	    archive_write_open_memory(a, out, room, &used) != ARCHIVE_OK ||
	    archive_write_header(a, e) != ARCHIVE_OK ||
	    archive_write_data(a, program, size) != (la_ssize_t)size ||
	    archive_write_close(a) != ARCHIVE_OK)
		return archive_error(a);
	if (cpio_check(out, used, NULL) < 0)
		return -EBADMSG;
	*buf = TAKE_PTR(out);
	*len = used;
	return 0;
}

/* Reads the 13 fields; -1 when @p is no newc header. */
static int newc_fields(const uint8_t *p, uint32_t field[13])
{
	if (memcmp(p, "070701", 6) != 0)
		return -1;
	p += 6;
	for (int i = 0; i < 13; i++) {
		field[i] = 0;
		for (int digit = 0; digit < 8; digit++, p++) {
			uint32_t v;

			if (*p >= '0' && *p <= '9')
				v = (uint32_t)(*p - '0');
			else if ((*p | 0x20) >= 'a' && (*p | 0x20) <= 'f')
				v = (uint32_t)((*p | 0x20) - 'a' + 10);
			else
				return -1;
			field[i] = field[i] << 4 | v;
		}
	}
	return 0;
}

static size_t align4(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* True when the member header at @p carries exactly @name. */
static int newc_name_is(const uint8_t *p, size_t len, const uint32_t field[13], const char *name)
{
	size_t n = strlen(name) + 1;

	return field[NAMESIZE] == n && len >= NEWC_HEADER + n &&
	       memcmp(p + NEWC_HEADER, name, n) == 0;
}

/*
 * By hand because libarchive's reader forgives what the kernel does not: it skips junk between
 * members and stops at the trailer without looking at what follows.
 */
static const char *archive_fault(const uint8_t *p, size_t len)
{
	static const size_t init_at = (NEWC_HEADER + sizeof(CPIO_INIT_NAME) + 3) & ~(size_t)3;
	uint32_t field[13];
	size_t end;

	if (len < NEWC_HEADER || newc_fields(p, field) < 0)
		return "not an uncompressed newc archive";
	if (len % ALIGNMENT)
		return "size is not a multiple of 512";
	if (!newc_name_is(p, len, field, CPIO_INIT_NAME))
		return "holds something other than recount-init";
	if (field[MODE] != (S_IFREG | 0755))
		return "recount-init is not a regular file of mode 0755";
	if (field[UID] != 0)
		return "recount-init does not belong to user 0";
	if (field[NLINK] != 1)
		return "recount-init has several links";
	if (field[FILESIZE] == 0)
		return "recount-init is empty";
	if (field[FILESIZE] > len - init_at)
		return "cut short";
	if (program_fault(p + init_at, field[FILESIZE]))
		return program_fault(p + init_at, field[FILESIZE]);

	end = align4(init_at + field[FILESIZE]);
	if (end > len || len - end < NEWC_HEADER + sizeof(NEWC_TRAILER))
		return "cut short";
	if (newc_fields(p + end, field) < 0)
		return "no TRAILER!!! after recount-init";
	if (!newc_name_is(p + end, len - end, field, NEWC_TRAILER) || field[FILESIZE] != 0)
		return "holds something other than recount-init";
	for (end += NEWC_HEADER + sizeof(NEWC_TRAILER); end < len; end++)
		if (p[end])
			return "bytes after TRAILER!!!";
	return NULL;
}

int cpio_check(const void *buf, size_t len, const char **why)
{
	const char *fault = archive_fault(buf, len);

	if (!fault)
		return 0;
	if (why)
		*why = fault;
	return -EBADMSG;
}
