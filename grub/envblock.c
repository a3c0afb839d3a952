/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading, changing and writing GRUB's environment block. */
#include "grub/envblock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "grub/replace.h"
#include "grub/rootfile.h"

static const char signature[] = "# GRUB Environment Block\n";
#define SIGNATURE_LEN (sizeof(signature) - 1)

/* The index behind the line that starts at @pos; a backslash hides the byte after it, also in
 * comments. More than @len when the line has no end. */
static size_t next_line(const char *s, size_t pos, size_t len)
{
	while (pos < len && s[pos] != '\n')
		pos += s[pos] == '\\' ? 2 : 1;
	return pos + 1;
}

/* Where the last line of a block starts; it may lack its end. */
static size_t last_line(const char *s, size_t len)
{
	size_t pos = SIGNATURE_LEN, next;

	while ((next = next_line(s, pos, len)) < len)
		pos = next;
	return pos;
}

/* Where the fill begins: behind the last newline of a well-formed block. */
static size_t fill_start(const struct envblock *b)
{
	size_t end = b->len;

	while (end > SIGNATURE_LEN && b->bytes[end - 1] == '#')
		end--;
	return end;
}

/* Finds the line of @key (@key_len bytes) before @end: its start and the index behind it. */
static int find(const struct envblock *b, size_t end, const char *key, size_t key_len,
		size_t *start, size_t *behind)
{
	for (size_t pos = SIGNATURE_LEN, next; pos < end; pos = next) {
		next = next_line(b->bytes, pos, end);
		if (b->bytes[pos] != '#' && next - pos > key_len &&
		    memcmp(b->bytes + pos, key, key_len) == 0 && b->bytes[pos + key_len] == '=') {
			*start = pos;
			*behind = next;
			return 0;
		}
	}
	return -ENOENT;
}

void envblock_init(struct envblock *b)
{
	b->len = ENVBLOCK_BYTES;
	memset(b->bytes, '#', b->len);
	memcpy(b->bytes, signature, SIGNATURE_LEN);
}

/*
 * In a block that a tool wrote carelessly there is no telling fill from lines by the last byte:
 * everything behind the last real line that is '#', NUL or newline then counts as fill.
 */
static size_t careless_fill(const char *s, size_t len)
{
	while (len > SIGNATURE_LEN && (s[len - 1] == '#' || s[len - 1] == '\n' || !s[len - 1]))
		len--;
	return len;
}

/* Copies the lines that GRUB sees; each replaces an earlier one with its key. */
static size_t take_lines(const char *s, size_t len, size_t fill, int strict, struct envblock *b,
			 const char **why)
{
	size_t out = SIGNATURE_LEN, start, behind;

	for (size_t pos = SIGNATURE_LEN, next; pos < len; pos = next) {
		const char *equals;
		size_t key_len;

		if (pos >= fill)
			break;
		if (s[pos] == '#') {
			next = next_line(s, pos, len);
		} else {
			equals = memchr(s + pos, '=', len - pos);
			if (!equals) {
				*why = "a line without '='";
				break;
			}
			next = next_line(s, (size_t)(equals - s) + 1, len);
			key_len = (size_t)(equals - s) - pos;
			/* GRUB takes a line without '=' as the head of the next key, which
			 * therefore nobody can name. */
			if (next <= len && memchr(s + pos, '\n', key_len)) {
				*why = "a line without '='";
				continue;
			}
			if (next <= len && find(b, out, s + pos, key_len, &start, &behind) == 0) {
				*why = "a key that is there twice";
				memmove(b->bytes + start, b->bytes + behind, out - behind);
				out -= behind - start;
			}
		}
		if (next > len) {
			*why = "a line without end";
			break;
		}
		if (memchr(s + pos, '\0', next - pos)) {
			*why = "NUL bytes in a line";
			continue;
		}
		memcpy(b->bytes + out, s + pos, next - pos);
		out += next - pos;
	}
	if (!*why && !strict)
		*why = memchr(s + out, '\0', len - out) ? "filled with NUL bytes instead of '#'"
							: "bytes behind the block";
	return out;
}

int envblock_decode(const void *buf, size_t len, struct envblock *b, const char **why)
{
	const char *s = buf, *ignored;
	size_t fill = len, last, out;
	int strict;

	if (!why)
		why = &ignored;
	*why = NULL;
	if (len == 0)
		*why = "empty (0 bytes)";
	else if (len < SIGNATURE_LEN || memcmp(s, signature, SIGNATURE_LEN) != 0)
		*why = "no \"# GRUB Environment Block\" at its start";
	else if (len < ENVBLOCK_MIN)
		*why = "shorter than 512 bytes";
	else if (len > ENVBLOCK_MAX)
		*why = "longer than 64 KiB";
	if (*why)
		return -EBADMSG;

	while (s[fill - 1] == '#')
		fill--;
	last = last_line(s, len);
	while (last < len - 1 && s[last] == '#')
		last++;
	/* Fill up to the end, or a full block whose last line is more than fill and newline. */
	strict = s[fill - 1] == '\n' && (fill < len || last < len - 1);
	if (!strict)
		fill = careless_fill(s, len);
	memcpy(b->bytes, signature, SIGNATURE_LEN);
	out = take_lines(s, len, fill, strict, b, why);
	b->len = len;
	if (*why && len % ENVBLOCK_MIN)
		b->len = out <= len - len % ENVBLOCK_MIN ? len - len % ENVBLOCK_MIN : len;
	/* A comment of nothing but '#' that ends with the block would be taken for a spoilt fill.
	 */
	last = last_line(b->bytes, out);
	if (*why && out == b->len && strspn(b->bytes + last, "#") == out - 1 - last)
		out = last;
	memset(b->bytes + out, '#', b->len - out);
	return *why ? 1 : 0;
}

int envblock_get(const struct envblock *b, const char *key, char *value, size_t size)
{
	size_t key_len = strlen(key), pos, behind, n = 0;
	int r;

	r = find(b, fill_start(b), key, key_len, &pos, &behind);
	if (r < 0)
		return r;
	/* Counted first: outputs are written only on success. */
	for (size_t i = pos + key_len + 1; i < behind - 1; i++, n++)
		i += b->bytes[i] == '\\';
	if (n >= size)
		return -ENAMETOOLONG;
	for (size_t i = pos + key_len + 1; i < behind - 1; i++) {
		i += b->bytes[i] == '\\';
		*value++ = b->bytes[i];
	}
	*value = '\0';
	return 0;
}

int envblock_set(struct envblock *b, const char *key, const char *value)
{
	size_t key_len = strlen(key), end = fill_start(b), start = end, behind = end, line = 0, n;
	char *p;

	if (!key_len || *key == '#' || strpbrk(key, "=\n\\"))
		return -EINVAL;
	if (find(b, end, key, key_len, &start, &behind) < 0 && !value)
		return 0;
	if (value) {
		line = key_len + 2;
		for (n = 0; value[n]; n++)
			line += value[n] == '\\' || value[n] == '\n' ? 2 : 1;
	}
	if (end - (behind - start) + line > b->len)
		return -ENOSPC;
	memmove(b->bytes + start + line, b->bytes + behind, end - behind);
	n = end - (behind - start) + line;
	memset(b->bytes + n, '#', b->len - n);
	if (!value)
		return 0;
	p = mempcpy(b->bytes + start, key, key_len);
	*p++ = '=';
	for (; *value; value++) {
		if (*value == '\\' || *value == '\n')
			*p++ = '\\';
		*p++ = *value;
	}
	*p = '\n';
	return 0;
}

int envblock_read(const char *path, struct envblock *b, const char **why)
{
	_cleanup_free_ char *buf = NULL;
	size_t len;
	int r;

	r = rootfile_read("", path, ENVBLOCK_MAX, &buf, &len);
	if (r == -EFBIG) {
		if (why)
			*why = "longer than 64 KiB";
		return -EBADMSG;
	}
	if (r < 0)
		return r;
	return envblock_decode(buf, len, b, why);
}

int envblock_write(const char *path, const struct envblock *b)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
	_cleanup_free_ char *back = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size != (off_t)b->len)
		return -EINVAL;
	back = malloc(b->len);
	if (!back)
		return -ENOMEM;
	n = pwrite(fd, b->bytes, b->len, 0);
	if (n < 0)
		return -errno;
	if ((size_t)n != b->len)
		return -EIO;
	if (fsync(fd) < 0)
		return -errno;
	/* Clean pages are dropped, so the comparison is with the disk. */
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	n = pread(fd, back, b->len, 0);
	if (n < 0)
		return -errno;
	return (size_t)n == b->len && memcmp(back, b->bytes, b->len) == 0 ? 0 : -EIO;
}

int envblock_create(const char *path, const struct envblock *b)
{
	int r = replace_make_folder(path);

	return r < 0 ? r : replace_file(path, b->bytes, b->len);
}
