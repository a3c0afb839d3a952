/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds, joins and removes the panic records of a kernel that went down. */
#include "runner/pstore.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "runner/service.h"

#define DEPTH_MAX 3 /* systemd-pstore makes folders of its own, one in the other */

static const char *const folders[] = {"/sys/fs/pstore", "/var/lib/systemd/pstore"};

struct record {
	char *path;
	char *text;
	size_t len;
	unsigned count, part; /* "Panic#COUNT PartPART": part 1 is the end of the log */
	int joined;	      /* dmesg.txt: what systemd made of the parts beside it */
};

struct records {
	struct record *r;
	size_t n;
	int64_t since_s;
	const char *token;
};

static void load(const char *module)
{
	const char *const modules[] = {module, NULL};

	/* Without it there are no records to find, which is no failure. */
	(void)service_modprobe(modules);
}

void pstore_load_drivers(const char *cmdline)
{
	if (access("/sys/firmware/efi", F_OK) == 0)
		load("efi_pstore");
	if (strstr(cmdline, "ramoops."))
		load("ramoops");
}

static void records_clear(struct records *l)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		free(l->r[i].path);
		free(l->r[i].text);
	}
	free(l->r);
}

static int read_all(const char *path, char **text, size_t *len)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_free_ char *buf = NULL;
	size_t n = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	buf = malloc(PSTORE_TEXT_MAX + 1);
	if (!buf)
		return -ENOMEM;
	while (n < PSTORE_TEXT_MAX && (got = read(fd, buf + n, PSTORE_TEXT_MAX - n)) > 0)
		n += got;
	if (n < PSTORE_TEXT_MAX && got < 0)
		return -errno;
	buf[n] = '\0';
	*text = TAKE_PTR(buf);
	*len = n;
	return 0;
}

static int is_panic(const char *text, size_t len)
{
	static const char *const words[] = {"Kernel panic", "Panic#", "Oops#", "Oops:"};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (memmem(text, len, words[i], strlen(words[i])))
			return 1;
	return 0;
}

/* 1: it says that it is of the attempt with @token, 0: of another, -1: it does not say. */
static int says_token(const char *text, size_t len, const char *token)
{
	static const char key[] = "recount.token=";
	size_t key_len = sizeof(key) - 1, n = strlen(token);
	const char *at = text, *end = text + len;
	int said = -1;

	while ((at = memmem(at, (size_t)(end - at), key, key_len))) {
		at += key_len;
		if (n && (size_t)(end - at) >= n && !memcmp(at, token, n) &&
		    (at + n == end || strchr(" \n\"", at[n])))
			return 1;
		said = 0;
	}
	return said;
}

static int take_record(struct records *l, const char *path, const char *name, int is_young)
{
	struct record one = {0}, *grown;
	int r, said;

	r = read_all(path, &one.text, &one.len);
	if (r == -ENOMEM)
		return r;
	said = r < 0 || !one.text ? 0 : says_token(one.text, one.len, l->token);
	if (said == 0 || (said < 0 && !is_young) || !is_panic(one.text, one.len)) {
		free(one.text);
		return 0;
	}
	one.joined = !strcmp(name, "dmesg.txt");
	if (sscanf(one.text, "%*[A-Za-z]#%u Part%u", &one.count, &one.part) != 2)
		one.count = one.part = 0;
	one.path = strdup(path);
	grown = one.path ? realloc(l->r, (l->n + 1) * sizeof(*l->r)) : NULL;
	if (!grown) {
		free(one.path);
		free(one.text);
		return -ENOMEM;
	}
	l->r = grown;
	l->r[l->n++] = one;
	return 0;
}

static int walk(struct records *l, const char *dir, unsigned depth)
{
	_cleanup_closedir_ DIR *d = opendir(dir);
	struct dirent *e;
	int r = 0;

	while (r == 0 && d && (e = readdir(d))) {
		_cleanup_free_ char *path = NULL;
		struct stat st;

		if (e->d_name[0] == '.')
			continue;
		if (asprintf(&path, "%s/%s", dir, e->d_name) < 0)
			return -ENOMEM;
		if (lstat(path, &st))
			continue;
		if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
			r = walk(l, path, depth + 1);
		else if (S_ISREG(st.st_mode) &&
			 (!strncmp(e->d_name, "dmesg-", 6) || !strcmp(e->d_name, "dmesg.txt")))
			r = take_record(l, path, e->d_name, st.st_mtime > l->since_s);
	}
	return r;
}

static int by_time(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? -1 : 1;
	if (x->part != y->part)
		return x->part > y->part ? -1 : 1;
	return strcmp(x->path, y->path);
}

static int same_folder(const char *a, const char *b)
{
	size_t n = strrchr(a, '/') - a;

	return n == (size_t)(strrchr(b, '/') - b) && !strncmp(a, b, n);
}

/* The parts beside a dmesg.txt say the same once more. */
static int is_said(const struct records *l, const struct record *r)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (l->r[i].joined && !r->joined && same_folder(l->r[i].path, r->path))
			return 1;
	return 0;
}

static int join(const struct records *l, struct pstore *out)
{
	FILE *f = open_memstream(&out->text, &out->len);
	size_t i;

	if (!f)
		return -ENOMEM;
	for (i = 0; i < l->n; i++) {
		if (is_said(l, &l->r[i]))
			continue;
		fprintf(f, "== %s\n", strrchr(l->r[i].path, '/') + 1);
		fwrite(l->r[i].text, 1, l->r[i].len, f);
		if (l->r[i].len && l->r[i].text[l->r[i].len - 1] != '\n')
			fputc('\n', f);
	}
	if (fclose(f))
		return -ENOMEM;
	if (out->len > PSTORE_TEXT_MAX)
		out->len = PSTORE_TEXT_MAX;
	return 0;
}

int pstore_find(const char *root, int64_t since_s, const char *token, struct pstore *out)
{
	_cleanup_(records_clear) struct records l = {.since_s = since_s, .token = token};
	struct pstore p = {0};
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(folders); i++) {
		_cleanup_free_ char *dir = NULL;

		if (asprintf(&dir, "%s%s", root, folders[i]) < 0)
			return -ENOMEM;
		r = walk(&l, dir, 1);
		if (r < 0)
			return r;
	}
	if (l.n == 0) {
		*out = p;
		return 0;
	}
	qsort(l.r, l.n, sizeof(*l.r), by_time);
	r = join(&l, &p);
	if (r == 0)
		p.files = calloc(l.n, sizeof(*p.files));
	if (!p.files) {
		free(p.text);
		return -ENOMEM;
	}
	for (i = 0; i < l.n; i++)
		p.files[p.n++] = TAKE_PTR(l.r[i].path);
	*out = p;
	return 0;
}

void pstore_free(struct pstore *p)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		free(p->files[i]);
	free(p->files);
	free(p->text);
	*p = (struct pstore){0};
}

void pstore_delete(const struct pstore *p)
{
	size_t i;

	for (i = 0; i < p->n; i++) {
		_cleanup_free_ char *dir = strdup(p->files[i]);
		char *slash;

		if (unlink(p->files[i]) || !dir)
			continue;
		/* systemd-pstore's own folders go with their last record; pstore itself is a mount
		 * and its archive's top has another name. */
		slash = strrchr(dir, '/');
		*slash = '\0';
		slash = strrchr(dir, '/');
		if (slash && strcmp(slash, "/pstore") != 0)
			rmdir(dir);
	}
}
