/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds and hashes the programs that a build runs. */
#include "runner/toolchain.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "grub/rootfile.h"
#include "results/digest.h"
#include "results/log.h"
#include "runner/spawn.h"

/* Those that every build needs, then those that a kernel's may. */
static const char *const needed[] = {"sh", "make", "gcc", "as", "ld"};
static const char *const used[] = {"cc",    "ar",    "nm",	"objcopy", "objdump", "readelf",
				   "strip", "perl",  "python3", "bc",	   "flex",    "bison",
				   "m4",    "bash",  "awk",	"sed",	   "grep",    "find",
				   "cat",   "xargs", "gzip",	"cpio"};
static const char *const passes[] = {"cc1", "collect2", "as", "ld"};

/* The real path of @path, as the machine itself sees it. */
static int resolve(const struct machine *m, const char *path, char out[PATH_MAX])
{
	_cleanup_close_ int fd = rootfile_open(m->root, path, O_PATH);
	_cleanup_free_ char *root = NULL;
	char link[64];
	size_t prefix;
	ssize_t n;

	if (fd < 0)
		return fd;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, out, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	out[n] = '\0';
	root = realpath(*m->root ? m->root : "/", NULL);
	prefix = root && strcmp(root, "/") != 0 ? strlen(root) : 0;
	if (prefix && !strncmp(out, root, prefix))
		memmove(out, out + prefix, (size_t)n - prefix + 1);
	return 0;
}

int toolchain_find(const struct machine *m, const char *name, char path[PATH_MAX])
{
	char dirs[] = SPAWN_PATH, *rest = dirs, *dir;
	char candidate[PATH_MAX];

	while ((dir = strsep(&rest, ":"))) {
		snprintf(candidate, sizeof(candidate), "%s/%s", dir, name);
		if (resolve(m, candidate, path) == 0)
			return 0;
	}
	return -ENOENT;
}

const char *toolchain_elsewhere(const struct machine *m, const char *path)
{
	const struct mountinfo_entry *root = mountinfo_find(&m->mounts, "/");
	const struct mountinfo_entry *own = mountinfo_find(&m->mounts, path);

	/* Another mount of the same file system is not in the same place for recount-init either.
	 */
	return root && own && own != root ? own->point : NULL;
}

const char *toolchain_missing(const struct machine *m)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (toolchain_find(m, needed[i], path) < 0)
			return needed[i];
	return NULL;
}

struct manifest {
	const struct machine *m;
	struct plan_pair *pairs;
	size_t n;
};

static int add(struct manifest *t, const char *path)
{
	struct plan_pair *grown;
	const char *elsewhere = toolchain_elsewhere(t->m, path);
	char hex[PLAN_SHA256], full[PATH_MAX];
	int r;

	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->pairs[i].name, path))
			return 0;
	if (elsewhere) {
		log_info("%s lies on the file system mounted at %s; recount-init mounts the root "
			 "file "
			 "system alone: the toolchain must be there",
			 path, elsewhere);
		return -EXDEV;
	}
	snprintf(full, sizeof(full), "%s%s", t->m->root, path);
	r = digest_file(full, hex);
	if (r < 0)
		return log_errno(r, "read %s", full);
	grown = reallocarray(t->pairs, t->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	t->pairs = grown;
	grown[t->n] = (struct plan_pair){strdup(path), strdup(hex)};
	t->n++;
	return grown[t->n - 1].name && grown[t->n - 1].value ? 0 : -ENOMEM;
}

static int add_program(struct manifest *t, const char *name, int is_needed)
{
	char path[PATH_MAX];

	if (toolchain_find(t->m, name, path) == 0)
		return add(t, path);
	if (!is_needed)
		return 0;
	log_info("there is no %s in %s; install it (on Debian: make gcc)", name, SPAWN_PATH);
	return -ENOENT;
}

/* The compiler tells where its passes are; one that it has not is answered by the bare name. */
static int add_passes(struct manifest *t)
{
	char gcc[PATH_MAX], command[PATH_MAX + 64], answer[PATH_MAX], path[PATH_MAX];
	int r = toolchain_find(t->m, "gcc", gcc);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(passes); i++) {
		FILE *pipe;

		snprintf(command, sizeof(command), "'%s' -print-prog-name=%s", gcc, passes[i]);
		pipe = popen(command, "re");
		if (!pipe)
			return -errno;
		if (!fgets(answer, sizeof(answer), pipe))
			*answer = '\0';
		pclose(pipe);
		answer[strcspn(answer, "\n")] = '\0';
		if (*answer == '/' && resolve(t->m, answer, path) == 0)
			r = add(t, path);
	}
	return r;
}

int toolchain_read(const struct machine *m, struct plan_pair **pairs, size_t *n)
{
	struct manifest t = {.m = m};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(needed); i++)
		r = add_program(&t, needed[i], 1);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(used); i++)
		r = add_program(&t, used[i], 0);
	if (r == 0)
		r = add_passes(&t);
	if (r < 0) {
		plan_pairs_free(t.pairs, t.n);
		return r;
	}
	*pairs = t.pairs;
	*n = t.n;
	return 0;
}
