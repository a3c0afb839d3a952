/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compares the hashes of the plan with the files that are there now. */
#include "runner/unchanged.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "results/digest.h"
#include "results/log.h"

static int is_there(const char *root, const char *path)
{
	char full[4096];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return access(full, F_OK) == 0;
}

/* Is another of the plan's files in the folder of @path? */
static int has_neighbour(const char *root, const struct plan *plan, const char *path)
{
	size_t folder = (size_t)(strrchr(path, '/') - path) + 1, i, k;

	for (i = 0; i < plan->n_entries; i++) {
		const char *others[] = {plan->entries[i].kernel, plan->entries[i].initrd};

		for (k = 0; k < ARRAY_SIZE(others); k++)
			if (others[k] && strcmp(others[k], path) != 0 &&
			    !strncmp(others[k], path, folder) && is_there(root, others[k]))
				return 1;
	}
	return 0;
}

/* 0, or 1 with what became of it in *@what (static); -errno when it cannot be read. */
static int compare(const char *root, const char *path, const char *sha256, const char **what)
{
	char full[4096], now[PLAN_SHA256];
	struct stat st;
	int r;

	snprintf(full, sizeof(full), "%s%s", root, path);
	r = digest_file(full, now);
	if (r == 0 && !strcmp(now, sha256))
		return 0;
	*what = "has changed";
	if (r == 0)
		return 1;
	*what = "was replaced by a link or a folder";
	return lstat(full, &st) == 0 && !S_ISREG(st.st_mode) ? 1 : r;
}

static int compare_boot_file(const char *root, const struct plan *plan, const char *path,
			     const char *sha256)
{
	const char *what;
	int r = compare(root, path, sha256, &what);

	if (r == -ENOENT && has_neighbour(root, plan, path)) {
		what = "was removed";
		r = 1;
	}
	if (r == 1)
		log_warn("%s%s %s since the plan was made", root, path, what);
	return r < 0 ? log_errno(r, "read %s%s", root, path) : r;
}

int unchanged_entry(const char *root, const struct plan *plan, const struct plan_entry *e)
{
	int r = compare_boot_file(root, plan, e->kernel, e->kernel_sha256);

	/* An initrd without a hash is one of a plan that was made before there were any. */
	if (r == 0 && e->initrd && e->initrd_sha256[0])
		r = compare_boot_file(root, plan, e->initrd, e->initrd_sha256);
	return r;
}

int unchanged_toolchain(const char *root, const struct plan *plan, const char **which)
{
	size_t i;

	for (i = 0; i < plan->n_toolchain; i++) {
		const char *path = plan->toolchain[i].name, *what;
		int r = compare(root, path, plan->toolchain[i].value, &what);

		/* The root is always mounted: what is missing was removed. */
		if (r == -ENOENT || r == -ENOTDIR) {
			what = "was removed";
			r = 1;
		}
		if (r < 0)
			return log_errno(r, "read %s%s", root, path);
		if (r == 0)
			continue;
		log_warn("%s%s %s since the plan was made", root, path, what);
		*which = path;
		return 1;
	}
	return 0;
}
