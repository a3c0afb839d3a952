/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies or unpacks a tree into the arena. */
#include "runner/tree.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "results/log.h"
#include "runner/command.h"

#define NEW_FOLDER ".recount-new" /* what is being copied; a leftover is removed first */

static int is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* In the arena a link would lead out of it. */
static int is_own_folder(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *tree_name(const char *source)
{
	static const char *const suffixes[] = {".tar.gz", ".tar.xz", ".tar.zst", ".tar.bz2",
					       ".tgz",	  ".txz",    ".tar"};
	_cleanup_free_ char *real = realpath(source, NULL);
	const char *path = real && is_folder(real) ? real : source, *slash;
	size_t len = strlen(path);
	char *name;

	while (len && path[len - 1] == '/')
		len--;
	slash = len ? memrchr(path, '/', len) : NULL;
	if (slash) {
		len -= (size_t)(slash + 1 - path);
		path = slash + 1;
	}
	name = strndup(path, len);
	for (size_t i = 0; name && i < ARRAY_SIZE(suffixes); i++) {
		size_t cut = strlen(suffixes[i]);

		if (len > cut && !strcmp(name + len - cut, suffixes[i])) {
			name[len - cut] = '\0';
			break;
		}
	}
	if (name && (!*name || *name == '.')) {
		free(name);
		return NULL;
	}
	return name;
}

static int remove_folder(const char *path)
{
	char *argv[] = {"rm", "-rf", "--", (char *)path, NULL};

	return command_run(argv);
}

static int own(const char *path, unsigned uid)
{
	char owner[32];
	char *argv[] = {"chown", "-R", "-P", "-h", owner, "--", (char *)path, NULL};

	snprintf(owner, sizeof(owner), "%u:%u", uid, uid);
	return command_run(argv);
}

/* The folder inside @dir that is all it holds; 0: there is none, or more. */
static int only_folder(const char *dir, char path[PATH_MAX])
{
	_cleanup_closedir_ DIR *d = opendir(dir);
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		n++;
		if (snprintf(path, PATH_MAX, "%s/%s", dir, e->d_name) >= PATH_MAX)
			return 0;
	}
	return n == 1 && is_own_folder(path);
}

static int fill(const char *source, const char *new)
{
	char *copy[] = {"cp", "-a", "-H", "--", (char *)source, (char *)new, NULL};
	char *unpack[] = {"tar",       "-x", "--no-same-owner", "-C",
			  (char *)new, "-f", (char *)source,	NULL};

	if (is_folder(source))
		return command_run(copy);
	if (mkdir(new, 0755))
		return log_errno(-errno, "make the folder %s", new);
	return command_run(unpack);
}

static int bring(const char *source, const char *arena_dir, const char *target, unsigned uid)
{
	char new[PATH_MAX], inside[PATH_MAX];
	const char *tree = new;
	int r;

	snprintf(new, sizeof(new), "%s/" NEW_FOLDER, arena_dir);
	r = remove_folder(new);
	if (r == 0)
		r = fill(source, new);
	if (r == 0)
		r = own(new, uid);
	if (r < 0)
		return r;
	/* Archives of source hold one folder, most of the time. */
	if (!is_folder(source) && only_folder(new, inside))
		tree = inside;
	if (rename(tree, target))
		return log_errno(-errno, "rename %s to %s", tree, target);
	return tree == new ? 0 : remove_folder(new);
}

/* Links that lead out of the arena may be in any tree: they do not count as a place in it. */
static int is_inside(const char *arena_dir, const char *path)
{
	_cleanup_free_ char *arena = realpath(arena_dir, NULL), *real = realpath(path, NULL);
	size_t len = arena ? strlen(arena) : 0;

	return real && arena && !strncmp(real, arena, len) && real[len] == '/' && is_folder(real);
}

int tree_bring(const char *source, const char *arena_dir, unsigned uid, char **dir)
{
	_cleanup_free_ char *name = NULL;
	char path[PATH_MAX];
	struct stat st;
	int r;

	snprintf(path, sizeof(path), "%s/%s", arena_dir, source);
	if (*source != '/' && !strstr(source, "..") && *source != '.' &&
	    is_inside(arena_dir, path)) {
		log_info("using %s, which is in the arena", source);
		*dir = strdup(source);
		return *dir ? 0 : -ENOMEM;
	}
	if (stat(source, &st) || !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))) {
		log_info("--tree %s: neither a folder or archive here, nor a folder of the arena",
			 source);
		return -EINVAL;
	}
	name = tree_name(source);
	if (!name) {
		log_info("--tree %s: no name can be made of it; name the folder itself", source);
		return -EINVAL;
	}
	snprintf(path, sizeof(path), "%s/%s", arena_dir, name);
	if (is_own_folder(path)) {
		log_info("using %s, which is in the arena already (to bring it anew, remove it "
			 "there)",
			 name);
	} else if (lstat(path, &st) == 0) {
		log_info("cannot bring %s into the arena: there is a %s that is no folder; remove "
			 "it "
			 "there",
			 source, name);
		return -EINVAL;
	} else {
		log_info("%s %s into the arena", is_folder(source) ? "copying" : "unpacking",
			 source);
		r = bring(source, arena_dir, path, uid);
		if (r < 0)
			return r;
	}
	*dir = TAKE_PTR(name);
	return 0;
}
