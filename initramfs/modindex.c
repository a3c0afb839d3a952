/* SPDX-License-Identifier: GPL-3.0-or-later */
/* modules.dep and its companions, read as text. */
#include "initramfs/modindex.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

#define BIN_MAGIC      "\xb0\x07\xf4\x57" /* INDEX_MAGIC in libkmod-index.c, big-endian */
#define MODULE_NAME    128
#define TEXT_BYTES_MAX (16 << 20)
#define DEPTH_MAX      64 /* of dependencies of dependencies */
#define ALIAS_BYTES    4096

struct module {
	char name[MODULE_NAME]; /* with underscores, as the kernel shows it */
	const char *path;
	char *deps; /* "PATH PATH …", NULL when built in */
	int busy;   /* being resolved */
};

struct alias {
	const char *pattern;
	const char *name;
	size_t literal; /* bytes before the first wildcard */
};

struct softdep {
	char name[MODULE_NAME];
	const char *words; /* "pre: a b post: c" */
};

struct modindex {
	char *dep_text, *alias_text, *softdep_text, *builtin_text;
	struct module *modules;
	size_t n_modules;
	struct alias *aliases;
	size_t n_aliases;
	struct softdep *softdeps;
	size_t n_softdeps;
};

/* The whole of a text file, NUL-terminated. */
static int read_text(const char *dir, const char *file, char **out)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[4096], *text = NULL;
	size_t size = 0;
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	f = fopen(path, "re");
	if (!f || fstat(fileno(f), &st) < 0)
		return -errno;
	if (st.st_size > TEXT_BYTES_MAX)
		return -EFBIG;
	if (getdelim(&text, &size, '\0', f) < 0) {
		int err = ferror(f) ? -errno : 0;

		free(text);
		text = err ? NULL : strdup("");
		if (!text)
			return err ? err : -ENOMEM;
	}
	*out = text;
	return 0;
}

/* "kernel/fs/ext4/ext4.ko.xz" and "dm-mod" become "ext4" and "dm_mod". */
static int module_name(const char *path, char name[MODULE_NAME])
{
	const char *base = strrchr(path, '/');
	size_t n;

	base = base ? base + 1 : path;
	n = strcspn(base, ".");
	if (n == 0 || n >= MODULE_NAME)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		name[i] = base[i] == '-' ? '_' : base[i];
	name[n] = '\0';
	return 0;
}

/* depmod writes no such path; one would lead out of the folder. */
static int leads_up(const char *path)
{
	for (const char *p = path; (p = strstr(p, "..")); p += 2)
		if ((p == path || p[-1] == '/') && (p[2] == '/' || p[2] == '\0'))
			return 1;
	return 0;
}

/* Room for one element more in @array of @n; doubles at powers of two. */
static void *grown(void *array, size_t n, size_t size)
{
	if (n == 0)
		return malloc(16 * size);
	if (n < 16 || (n & (n - 1)))
		return array;
	return reallocarray(array, n * 2, size);
}

static int add_module(struct modindex *x, const char *path, char *deps)
{
	struct module *m;
	char name[MODULE_NAME];

	if (module_name(path, name) < 0 || leads_up(path))
		return 0;
	m = grown(x->modules, x->n_modules, sizeof(*m));
	if (!m)
		return -ENOMEM;
	x->modules = m;
	m += x->n_modules;
	strcpy(m->name, name);
	m->path = path;
	m->deps = deps;
	m->busy = 0;
	x->n_modules++;
	return 0;
}

/* PATH: PATH PATH … */
static int parse_dep(struct modindex *x)
{
	char *save = NULL, *line, *colon;
	int r;

	for (line = strtok_r(x->dep_text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		colon = strchr(line, ':');
		if (*line == '#' || !colon)
			continue;
		*colon = '\0';
		r = add_module(x, line, colon + 1);
		if (r < 0)
			return r;
	}
	return 0;
}

/* One path a line. */
static int parse_builtin(struct modindex *x)
{
	char *save = NULL, *line;
	int r;

	for (line = strtok_r(x->builtin_text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		r = add_module(x, line, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

/* "-" and "_" are one outside brackets, in patterns and in what is looked up. */
static void underscores(char *s)
{
	int bracket = 0;

	for (; *s; s++) {
		if (*s == '[')
			bracket = 1;
		else if (*s == ']')
			bracket = 0;
		else if (*s == '-' && !bracket)
			*s = '_';
	}
}

/* alias PATTERN NAME */
static int parse_alias(struct modindex *x)
{
	char *save = NULL, *line, *rest, *word, *pattern, *name;

	for (line = strtok_r(x->alias_text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		word = strtok_r(line, " \t", &rest);
		pattern = strtok_r(NULL, " \t", &rest);
		name = strtok_r(NULL, " \t", &rest);
		if (!name || strcmp(word, "alias") != 0)
			continue;
		struct alias *a = grown(x->aliases, x->n_aliases, sizeof(*a));

		if (!a)
			return -ENOMEM;
		x->aliases = a;
		underscores(pattern);
		x->aliases[x->n_aliases++] = (struct alias){
			.pattern = pattern,
			.name = name,
			.literal = strcspn(pattern, "*?[\\"),
		};
	}
	return 0;
}

/* softdep NAME pre: A B post: C */
static int parse_softdep(struct modindex *x)
{
	char *save = NULL, *line, *rest, *word, *name;

	for (line = strtok_r(x->softdep_text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		word = strtok_r(line, " \t", &rest);
		name = strtok_r(NULL, " \t", &rest);
		if (!name || strcmp(word, "softdep") != 0)
			continue;
		char module[MODULE_NAME];
		struct softdep *s;

		if (module_name(name, module) < 0)
			continue;
		s = grown(x->softdeps, x->n_softdeps, sizeof(*s));
		if (!s)
			return -ENOMEM;
		x->softdeps = s;
		s += x->n_softdeps++;
		strcpy(s->name, module);
		s->words = rest;
	}
	return 0;
}

void modindex_free(struct modindex *x)
{
	if (!x)
		return;
	free(x->dep_text);
	free(x->alias_text);
	free(x->softdep_text);
	free(x->builtin_text);
	free(x->modules);
	free(x->aliases);
	free(x->softdeps);
	free(x);
}

int modindex_open(const char *dir, struct modindex **out)
{
	_cleanup_(cleanup_modindex) struct modindex *x = calloc(1, sizeof(*x));
	int r;

	if (!x)
		return -ENOMEM;
	r = read_text(dir, "modules.dep", &x->dep_text);
	if (r < 0)
		return r;
	r = parse_dep(x);
	/* An initrd often lacks the others; then the names in modules.dep must do. */
	if (r == 0 && read_text(dir, "modules.alias", &x->alias_text) == 0)
		r = parse_alias(x);
	if (r == 0 && read_text(dir, "modules.softdep", &x->softdep_text) == 0)
		r = parse_softdep(x);
	if (r == 0 && read_text(dir, "modules.builtin", &x->builtin_text) == 0)
		r = parse_builtin(x);
	if (r < 0)
		return r;
	*out = TAKE_PTR(x);
	return 0;
}

static int has_magic(const char *dir, const char *file)
{
	_cleanup_close_ int fd = -1;
	char path[4096], magic[4];

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) &&
	       memcmp(magic, BIN_MAGIC, sizeof(magic)) == 0;
}

int modindex_has_bin(const char *dir)
{
	return has_magic(dir, "modules.dep.bin") && has_magic(dir, "modules.alias.bin");
}

static struct module *find_name(const struct modindex *x, const char *name)
{
	for (size_t i = 0; i < x->n_modules; i++)
		if (strcmp(x->modules[i].name, name) == 0)
			return &x->modules[i];
	return NULL;
}

static struct module *find_path(const struct modindex *x, const char *path, size_t len)
{
	for (size_t i = 0; i < x->n_modules; i++)
		if (strncmp(x->modules[i].path, path, len) == 0 && !x->modules[i].path[len])
			return &x->modules[i];
	return NULL;
}

static int list_has(const struct modindex_list *list, const char *path)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->paths[i], path) == 0)
			return 1;
	return 0;
}

static int list_add(struct modindex_list *list, const char *path)
{
	const char **p;

	if (list_has(list, path))
		return 0;
	p = grown(list->paths, list->n, sizeof(*p));
	if (!p)
		return -ENOMEM;
	list->paths = p;
	list->paths[list->n++] = path;
	return 0;
}

static int add_all(const struct modindex *x, struct module *m, struct modindex_list *list);

/* modules.dep names the nearest dependency first; loading goes the other way round. */
static int add_deps(const struct modindex *x, const char *deps, struct modindex_list *list)
{
	const char *end = deps + strlen(deps), *start;
	struct module *other;
	int r;

	while (end > deps) {
		if (end[-1] == ' ' || end[-1] == '\t') {
			end--;
			continue;
		}
		for (start = end; start > deps && start[-1] != ' ' && start[-1] != '\t'; start--)
			;
		other = find_path(x, start, (size_t)(end - start));
		r = other ? add_all(x, other, list) : 0;
		if (r < 0)
			return r;
		end = start;
	}
	return 0;
}

/* The modules of one half, "pre" or "post", of all soft dependencies of @m. A missing one is no
 * error: that is what makes it soft. */
static int add_softdeps(const struct modindex *x, const struct module *m, const char *half,
			struct modindex_list *list)
{
	for (size_t i = 0; i < x->n_softdeps; i++) {
		_cleanup_free_ char *words = NULL;
		char *save = NULL, *word, name[MODULE_NAME];
		int wanted = 0, r;

		if (strcmp(x->softdeps[i].name, m->name) != 0)
			continue;
		words = strdup(x->softdeps[i].words);
		if (!words)
			return -ENOMEM;
		for (word = strtok_r(words, " \t", &save); word;
		     word = strtok_r(NULL, " \t", &save)) {
			struct module *other;

			if (strcmp(word, "pre:") == 0 || strcmp(word, "post:") == 0) {
				wanted = strncmp(word, half, strlen(half)) == 0;
				continue;
			}
			if (!wanted || module_name(word, name) < 0)
				continue;
			other = find_name(x, name);
			r = other ? add_all(x, other, list) : 0;
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int add_all(const struct modindex *x, struct module *m, struct modindex_list *list)
{
	int r;

	/* Soft dependencies may go round in a circle. */
	if (!m->deps || m->busy || list_has(list, m->path))
		return 0;
	if (list->depth == DEPTH_MAX)
		return -ELOOP;
	list->depth++;
	m->busy = 1;
	r = add_softdeps(x, m, "pre", list);
	if (r == 0)
		r = add_deps(x, m->deps, list);
	if (r == 0)
		r = list_add(list, m->path);
	if (r == 0)
		r = add_softdeps(x, m, "post", list);
	m->busy = 0;
	list->depth--;
	return r;
}

int modindex_resolve(const struct modindex *x, const char *alias, struct modindex_list *list)
{
	struct module *m;
	char wanted[ALIAS_BYTES], name[MODULE_NAME];
	int r, found = 0;

	if (strlen(alias) >= sizeof(wanted))
		return -ENAMETOOLONG;
	strcpy(wanted, alias);
	underscores(wanted);

	m = find_name(x, wanted);
	if (m)
		return add_all(x, m, list);
	for (size_t i = 0; i < x->n_aliases; i++) {
		const struct alias *a = &x->aliases[i];

		/* Most patterns of a big modules.alias fail here, without fnmatch(). */
		if (strncmp(a->pattern, wanted, a->literal) != 0 ||
		    fnmatch(a->pattern, wanted, 0) != 0 || module_name(a->name, name) < 0)
			continue;
		m = find_name(x, name);
		if (!m)
			continue;
		found = 1;
		r = add_all(x, m, list);
		if (r < 0)
			return r;
	}
	return found ? 0 : -ENOENT;
}
