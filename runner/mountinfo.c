/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads proc/self/mountinfo. */
#include "runner/mountinfo.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

int mountinfo_is_live(const char *root)
{
	char path[PATH_MAX];
	struct statfs fs;

	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
	return statfs(path, &fs) || fs.f_type == PROC_SUPER_MAGIC;
}

static void entry_free(struct mountinfo_entry *e)
{
	free(e->dir);
	free(e->point);
	free(e->fstype);
	free(e->source);
}

void mountinfo_free(struct mountinfo *m)
{
	for (size_t i = 0; i < m->n; i++)
		entry_free(&m->entries[i]);
	free(m->entries);
	*m = (struct mountinfo){0};
}

/* The kernel writes blank, tab, newline and backslash as three octal digits. */
static char *unescape(const char *word)
{
	char *out = malloc(strlen(word) + 1), *to = out;

	if (!out)
		return NULL;
	while (*word) {
		if (word[0] == '\\' && word[1] >= '0' && word[1] <= '3' && word[2] >= '0' &&
		    word[2] <= '7' && word[3] >= '0' && word[3] <= '7') {
			*to++ = (char)((word[1] - '0') << 6 | (word[2] - '0') << 3 |
				       (word[3] - '0'));
			word += 4;
		} else {
			*to++ = *word++;
		}
	}
	*to = '\0';
	return out;
}

/* @point without the leading @root; NULL when it lies elsewhere. */
static const char *below(const char *point, const char *root)
{
	size_t len = strlen(root);

	if (strncmp(point, root, len) != 0 || (point[len] && point[len] != '/'))
		return NULL;
	return point[len] ? point + len : "/";
}

/* 1: parsed into @e, 0: a line of another shape. */
static int parse_line(char *line, struct mountinfo_entry *e)
{
	char *words[6], *rest = line, *word, *dash = strstr(line, " - ");

	if (!dash)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		words[i] = strsep(&rest, " ");
		if (!rest)
			return 0;
	}
	if (sscanf(words[2], "%u:%u", &e->maj, &e->min) != 2 || *words[4] != '/')
		return 0;
	rest = dash + 3;
	word = strsep(&rest, " ");
	e->fstype = strdup(word);
	word = rest ? strsep(&rest, " ") : NULL;
	e->source = unescape(word ? word : "");
	e->dir = unescape(words[3]);
	e->point = unescape(words[4]);
	return 1;
}

/* Takes @e over, also on failure. */
static int append(struct mountinfo *m, struct mountinfo_entry *e, const char *prefix)
{
	const char *point = e->point ? below(e->point, prefix) : NULL;
	struct mountinfo_entry *grown;

	if (!e->dir || !e->point || !e->fstype || !e->source) {
		entry_free(e);
		return -ENOMEM;
	}
	if (!point) {
		entry_free(e);
		return 0;
	}
	grown = reallocarray(m->entries, m->n + 1, sizeof(*grown));
	if (!grown) {
		entry_free(e);
		return -ENOMEM;
	}
	m->entries = grown;
	memmove(e->point, point, strlen(point) + 1);
	m->entries[m->n++] = *e;
	return 0;
}

int mountinfo_read(const char *root, struct mountinfo *out)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL, *real = NULL;
	_cleanup_(mountinfo_free) struct mountinfo m = {0};
	char path[PATH_MAX];
	const char *prefix = "";
	size_t size = 0;
	int r, live = mountinfo_is_live(root);

	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", live ? "" : root);
	if (live && *root) {
		real = realpath(root, NULL);
		if (!real)
			return -errno;
		prefix = strcmp(real, "/") ? real : "";
	}
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (getline(&line, &size, f) > 0) {
		struct mountinfo_entry e = {0};

		line[strcspn(line, "\n")] = '\0';
		if (!parse_line(line, &e))
			continue;
		r = append(&m, &e, prefix);
		if (r < 0)
			return r;
	}
	if (ferror(f))
		return -EIO;
	*out = m;
	m = (struct mountinfo){0};
	return 0;
}

const struct mountinfo_entry *mountinfo_find(const struct mountinfo *m, const char *path)
{
	const struct mountinfo_entry *best = NULL;
	size_t len, best_len = 0;

	for (size_t i = 0; i < m->n; i++) {
		const char *point = m->entries[i].point;

		len = strcmp(point, "/") ? strlen(point) : 0;
		/* A later mount on the same point hides the earlier one. */
		if (!strncmp(path, point, len) && (!path[len] || path[len] == '/' || !len) &&
		    (!best || len >= best_len)) {
			best = &m->entries[i];
			best_len = len;
		}
	}
	return best;
}

const struct mountinfo_entry *mountinfo_of_device(const struct mountinfo *m, unsigned maj,
						  unsigned min)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->entries[i].maj == maj && m->entries[i].min == min)
			return &m->entries[i];
	return NULL;
}
