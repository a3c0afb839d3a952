/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies or unpacks a tree into the arena. */
#include "runner/tree.h"

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "results/log.h"
#include "runner/amount.h"
#include "runner/command.h"

#define NEW_FOLDER ".recount-new" /* what is being copied; a leftover is removed first */
#define FULL_BYTES (1u << 20)	  /* an arena with less than that free is full */

struct bringing {
	const char *source;
	const char *arena_dir, *device;
	unsigned uid;
};

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
	/* To tar a name with a colon would be a file of another machine. */
	char *unpack[] = {
		"tar",		"-x", "--no-same-owner", "--force-local", "-C", (char *)new, "-f",
		(char *)source, NULL};

	if (is_folder(source))
		return command_run(copy);
	if (mkdir(new, 0755))
		return log_errno(-errno, "make the folder %s", new);
	return command_run(unpack);
}

/* What a copy of the folder takes at least in blocks of @block bytes, as du would count it: of
 * holes nothing, and of a file with several names its share. */
static uint64_t folder_bytes(const char *source, uint64_t block)
{
	char *tops[] = {(char *)source, NULL};
	FTS *tree = fts_open(tops, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
	uint64_t bytes = 0, size, on_disk;
	FTSENT *e;

	while (tree && (e = fts_read(tree))) {
		if (e->fts_info == FTS_D)
			bytes += block;
		if (e->fts_info != FTS_F)
			continue;
		size = (uint64_t)e->fts_statp->st_size;
		on_disk = (uint64_t)e->fts_statp->st_blocks * 512;
		size = size < on_disk ? size : on_disk;
		bytes += (size + block - 1) / block * block / e->fts_statp->st_nlink;
	}
	if (tree)
		fts_close(tree);
	return bytes;
}

/* An archive holds at least its own size. */
static uint64_t least_bytes(const char *source, uint64_t block)
{
	struct stat st;

	if (is_folder(source))
		return folder_bytes(source, block);
	return stat(source, &st) ? 0 : (uint64_t)st.st_size;
}

/* @need 0: more than there is, but how much is not known. */
static int say_full(const struct bringing *b, const struct statvfs *fs, uint64_t need)
{
	char there[AMOUNT_BYTES], wanted[AMOUNT_BYTES];

	amount_size(there, (uint64_t)fs->f_bavail * fs->f_frsize);
	amount_size(wanted, need);
	log_info("refused: the arena %s has %s and %llu inodes free, and %s needs %s%s; remove "
		 "what it need not hold (mount %s /mnt, rm -r, umount /mnt), or make a larger one: "
		 "recount format --arena DEV",
		 b->device, there, (unsigned long long)fs->f_favail, b->source,
		 need ? "at least " : "more", need ? wanted : "", b->device);
	return -ENOSPC;
}

static int check_room(const struct bringing *b)
{
	struct statvfs fs;
	uint64_t need;

	if (statvfs(b->arena_dir, &fs))
		return log_errno(-errno, "ask for the arena's free space");
	need = least_bytes(b->source, fs.f_frsize);
	return need > (uint64_t)fs.f_bavail * fs.f_frsize ? say_full(b, &fs, need) : 0;
}

static int is_full(const char *arena_dir)
{
	struct statvfs fs;

	return statvfs(arena_dir, &fs) == 0 &&
	       ((uint64_t)fs.f_bavail * fs.f_frsize < FULL_BYTES || fs.f_favail == 0);
}

static int bring(const struct bringing *b, const char *target)
{
	char new[PATH_MAX], inside[PATH_MAX];
	const char *tree = new;
	struct statvfs fs;
	int r, r2, full;

	snprintf(new, sizeof(new), "%s/" NEW_FOLDER, b->arena_dir);
	r = remove_folder(new);
	if (r == 0)
		r = check_room(b);
	if (r < 0)
		return r;
	r = fill(b->source, new);
	if (r == 0)
		r = own(new, b->uid);
	/* Archives of source hold one folder, most of the time. */
	if (r == 0 && !is_folder(b->source) && only_folder(new, inside))
		tree = inside;
	if (r == 0 && rename(tree, target))
		r = log_errno(-errno, "rename %s to %s", tree, target);
	if (r == 0 && tree == new)
		return 0;
	full = r < 0 && is_full(b->arena_dir);
	r2 = remove_folder(new);
	if (full && statvfs(b->arena_dir, &fs) == 0)
		return say_full(b, &fs, 0);
	return r < 0 ? r : r2;
}

/* Links that lead out of the arena may be in any tree: they do not count as a place in it. */
static int is_inside(const char *arena_dir, const char *path)
{
	_cleanup_free_ char *arena = realpath(arena_dir, NULL), *real = realpath(path, NULL);
	size_t len = arena ? strlen(arena) : 0;

	return real && arena && !strncmp(real, arena, len) && real[len] == '/' && is_folder(real);
}

/* A name that starts with a dot could be one of ours. */
static void say_no_name(const char *source)
{
	_cleanup_free_ char *real = realpath(source, NULL);

	if (real && !strcmp(real, "/"))
		log_info("refused: --tree %s is /, the whole machine; name the folder of a source "
			 "tree",
			 source);
	else
		log_info("refused: --tree %s: in the arena it would have the name of %s, and none "
			 "there may start with a dot; give it another name, then try again",
			 source, real ? real : source);
}

/* 1 when @b is brought under @name, 0 when that is there already. */
static int bring_as(const struct bringing *b, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	int r;

	snprintf(path, sizeof(path), "%s/%s", b->arena_dir, name);
	if (is_own_folder(path)) {
		log_info("using %s, which is in the arena already (to bring it anew, remove it "
			 "there)",
			 name);
		return 0;
	}
	if (lstat(path, &st) == 0) {
		log_info("cannot bring %s into the arena: there is a %s that is no folder; remove "
			 "it there",
			 b->source, name);
		return -EINVAL;
	}
	log_info("%s %s into the arena", is_folder(b->source) ? "copying" : "unpacking", b->source);
	r = bring(b, path);
	return r < 0 ? r : 1;
}

int tree_bring(const char *source, const char *arena_dir, const char *device, unsigned uid,
	       char **dir)
{
	const struct bringing b = {source, arena_dir, device, uid};
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
		say_no_name(source);
		return -EINVAL;
	}
	r = bring_as(&b, name);
	if (r >= 0)
		*dir = TAKE_PTR(name);
	return r;
}
