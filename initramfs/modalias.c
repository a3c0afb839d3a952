/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A walk over sysfs for modalias files. */
#include "initramfs/modalias.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <string.h>

#define MODALIAS_BYTES 4096 /* one page, as sysfs gives; input devices have long ones */
#define DEPTH_MAX      64

struct modalias_set {
	void *known;	    /* tsearch() tree */
	const char **fresh; /* borrowed from known */
	size_t n_fresh;
};

struct modalias_set *modalias_new(void)
{
	return calloc(1, sizeof(struct modalias_set));
}

void modalias_free(struct modalias_set *set)
{
	if (!set)
		return;
	tdestroy(set->known, free);
	free(set->fresh);
	free(set);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int add(struct modalias_set *set, const char *alias)
{
	const char **grown;
	char *copy;

	if (tfind(alias, &set->known, by_text))
		return 0;
	grown = reallocarray(set->fresh, set->n_fresh + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	set->fresh = grown;
	copy = strdup(alias);
	if (!copy)
		return -ENOMEM;
	if (!tsearch(copy, &set->known, by_text)) {
		free(copy);
		return -ENOMEM;
	}
	set->fresh[set->n_fresh++] = copy;
	return 0;
}

/* "pci:v…d…sv…sd…bc02sc00i00": the digits are capitals, so "bc" is the class. */
static int is_excluded(const char *alias)
{
	static const char *const classes[] = {"02", "03", "04", "0D"};
	const char *class = strncmp(alias, "pci:", 4) == 0 ? strstr(alias, "bc") : NULL;

	for (size_t i = 0; class && i < ARRAY_SIZE(classes); i++)
		if (strncmp(class + 2, classes[i], 2) == 0)
			return 1;
	return 0;
}

/* The modalias of device folder @dirfd, "" when it has none. */
static void read_modalias(int dirfd, char alias[MODALIAS_BYTES])
{
	_cleanup_close_ int fd = openat(dirfd, "modalias", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, alias, MODALIAS_BYTES - 1);

	alias[n > 0 ? n : 0] = '\0';
	alias[strcspn(alias, "\n")] = '\0';
}

/* Device folder @fd (consumed) and those below it. */
static int collect(struct modalias_set *set, int fd, int depth)
{
	_cleanup_closedir_ DIR *dir = fdopendir(fd);
	char alias[MODALIAS_BYTES];
	struct dirent *e;
	int r = 0;

	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	read_modalias(dirfd(dir), alias);
	/* virtio-net and sound codecs hang on PCI devices of these classes and go with them. */
	if (is_excluded(alias))
		return 0;
	if (*alias)
		r = add(set, alias);
	while (r == 0 && depth < DEPTH_MAX && (e = readdir(dir))) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0)
			r = collect(set, fd, depth + 1);
	}
	return r;
}

int modalias_collect(struct modalias_set *set, const char *sys, const char *const **fresh,
		     size_t *n)
{
	char path[4096];
	int fd, r;

	if (snprintf(path, sizeof(path), "%s/devices", sys) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	set->n_fresh = 0;
	r = collect(set, fd, 0);
	if (r < 0)
		return r;
	*fresh = set->fresh;
	*n = set->n_fresh;
	return 0;
}
