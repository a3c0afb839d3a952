/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Putting the block into custom.cfg and taking it out again. */
#include "grub/oneshot.h"

#include <errno.h>
#include <string.h>

#include "grub/replace.h"
#include "grub/rootfile.h"

#define FILE_BYTES_MAX (4u << 20)

static const char begin_marker[] =
	"### BEGIN recount (made by recount; `recount uninstall` removes "
	"it; before: ";
static const char end_marker[] = "### END recount ###\n";

/* What the file was before the block came, as the opening marker says it. */
enum before { BEFORE_NONE, BEFORE_COMPLETE, BEFORE_NO_NEWLINE };
static const char *const before_names[] = {"no file", "a file", "a file without final newline"};

struct parts { /* offsets into the text; block..behind is the block with its markers */
	size_t block, behind;
	enum before before;
};

/* The first line at or behind @from that begins with @marker. */
static const char *find_line(const char *from, const char *text, const char *marker)
{
	for (const char *p = from; (p = strstr(p, marker)); p++)
		if (p == text || p[-1] == '\n')
			return p;
	return NULL;
}

/* 1 with *@out, 0 when there is no block, -EBADMSG when it is not whole. */
static int find_block(const char *text, struct parts *out)
{
	const char *begin = find_line(text, text, begin_marker), *end;
	const char *before;

	end = find_line(begin ? begin : text, text, end_marker);
	if (!begin && !end)
		return 0;
	if (!begin || !end || find_line(begin + 1, text, begin_marker) ||
	    find_line(end + 1, text, end_marker) || find_line(text, text, end_marker) < begin)
		return -EBADMSG;
	before = begin + sizeof(begin_marker) - 1;
	for (size_t i = 0; i < ARRAY_SIZE(before_names); i++) {
		size_t len = strlen(before_names[i]);

		if (strncmp(before, before_names[i], len) != 0 ||
		    strncmp(before + len, ") ###\n", 6) != 0)
			continue;
		out->block = (size_t)(begin - text);
		out->behind = (size_t)(end - text) + sizeof(end_marker) - 1;
		out->before = (enum before)i;
		return 1;
	}
	return -EBADMSG;
}

/* Reads custom.cfg; a missing file gives *@text NULL. */
static int read_text(const char *path, char **text, size_t *len)
{
	int r = rootfile_read("", path, FILE_BYTES_MAX, text, len);

	if (r == -ENOENT) {
		*text = NULL;
		*len = 0;
		return 0;
	}
	if (r == 0 && strlen(*text) != *len)
		return -EBADMSG;
	return r;
}

int oneshot_install(const char *path, const char *text)
{
	_cleanup_free_ char *old = NULL, *made = NULL;
	struct parts p = {0, 0, BEFORE_NONE};
	size_t text_len = strlen(text), len;
	int r;

	if (!text_len || text[text_len - 1] != '\n' || find_line(text, text, begin_marker) ||
	    find_line(text, text, end_marker))
		return -EINVAL;
	r = read_text(path, &old, &len);
	if (r < 0)
		return r;
	r = old ? find_block(old, &p) : 0;
	if (r < 0)
		return r;
	if (r == 0) {
		p.block = p.behind = len;
		p.before = !old				 ? BEFORE_NONE
			   : len && old[len - 1] != '\n' ? BEFORE_NO_NEWLINE
							 : BEFORE_COMPLETE;
	}
	r = asprintf(&made, "%.*s%s%s%s) ###\n%s%s%s", (int)p.block, old ? old : "",
		     r == 0 && p.before == BEFORE_NO_NEWLINE ? "\n" : "", begin_marker,
		     before_names[p.before], text, end_marker, old ? old + p.behind : "");
	if (r < 0) {
		made = NULL;
		return -ENOMEM;
	}
	return replace_file(path, made, (size_t)r);
}

int oneshot_uninstall(const char *path)
{
	_cleanup_free_ char *text = NULL;
	struct parts p;
	size_t len;
	int r;

	r = read_text(path, &text, &len);
	if (r < 0 || !text)
		return r;
	r = find_block(text, &p);
	if (r <= 0)
		return r;
	if (p.before == BEFORE_NONE && p.block == 0 && p.behind == len)
		return replace_remove(path);
	/* The newline that we added goes too, unless it has come to end somebody's line. */
	if (p.before == BEFORE_NO_NEWLINE && p.block && p.behind == len)
		p.block--;
	memmove(text + p.block, text + p.behind, len - p.behind);
	return replace_file(path, text, len - (p.behind - p.block));
}

int oneshot_installed(const char *path)
{
	_cleanup_free_ char *text = NULL;
	struct parts p;
	size_t len;
	int r = read_text(path, &text, &len);

	return r < 0 || !text ? r : find_block(text, &p);
}
