/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sorts kernels and names them. */
#include "grub/kernel_label.h"

#include <errno.h>
#include <string.h>

#include "grub/version.h"

#define LEVEL_FILE VERSION_SHORT_LEVELS
#define LEVEL_PATH (VERSION_SHORT_LEVELS + 1)

static const char *file_name(const struct kernel *k)
{
	const char *slash = strrchr(k->image, '/');

	return slash ? slash + 1 : k->image;
}

static int by_version(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;
	int d = 0;

	if (!x->version != !y->version)
		return x->version ? -1 : 1;
	if (x->version)
		d = version_compare(x->version, y->version);
	return d ? d : strcmp(x->image, y->image);
}

static int set_label(struct kernel *k, int level)
{
	static const char head[] = "vmlinuz-";
	const char *name = file_name(k);
	char *label;

	if (k->skip) {
		label = strdup(name);
	} else if (level == LEVEL_PATH) {
		label = strdup(k->image + 1);
	} else if (level == LEVEL_FILE) {
		if (strncmp(name, head, sizeof(head) - 1) == 0 && name[sizeof(head) - 1])
			name += sizeof(head) - 1;
		label = strdup(name);
	} else {
		size_t size = strlen(k->version) + 1;

		label = malloc(size);
		if (label && version_short(k->version, level, label, size) < 0) {
			free(label);
			return -EINVAL;
		}
	}
	if (!label)
		return -ENOMEM;
	free(k->label);
	k->label = label;
	return 0;
}

/* Marks in @longer the kernels whose label another one has too; how many there are. */
static size_t find_shared(const struct kernel_list *l, int *longer)
{
	size_t shared = 0;

	for (size_t i = 0; i < l->n; i++) {
		longer[i] = 0;
		for (size_t k = 0; k < l->n && !l->kernels[i].skip; k++)
			longer[i] |= k != i && !l->kernels[k].skip &&
				     strcmp(l->kernels[i].label, l->kernels[k].label) == 0;
		shared += (size_t)longer[i];
	}
	return shared;
}

int kernel_label(struct kernel_list *l)
{
	_cleanup_free_ int *level = calloc(l->n + 1, sizeof(*level));
	_cleanup_free_ int *longer = calloc(l->n + 1, sizeof(*longer));
	int r;

	if (!level || !longer)
		return -ENOMEM;
	qsort(l->kernels, l->n, sizeof(*l->kernels), by_version);
	for (size_t i = 0; i < l->n; i++) {
		r = set_label(&l->kernels[i], 0);
		if (r < 0)
			return r;
	}
	while (find_shared(l, longer)) {
		for (size_t i = 0; i < l->n; i++) {
			if (!longer[i] || level[i] == LEVEL_PATH)
				continue;
			r = set_label(&l->kernels[i], ++level[i]);
			if (r < 0)
				return r;
		}
	}
	return 0;
}
