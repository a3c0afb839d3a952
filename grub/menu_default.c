/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Resolves GRUB's default. */
#include "grub/menu_default.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static int path_of(const struct menu_nodes *t, size_t node, char **out)
{
	_cleanup_free_ char *above = NULL;
	int r;

	if (t->nodes[node].parent != MENU_TOP) {
		r = path_of(t, t->nodes[node].parent, &above);
		if (r < 0)
			return r;
	}
	if (asprintf(out, "%s%s%zu", above ? above : "", above ? ">" : "", t->nodes[node].index) <
	    0)
		return -ENOMEM;
	return 0;
}

int menu_nodes_add(struct menu_nodes *t, size_t parent, const char *title, const char *id,
		   int conditional, size_t *node, char **path)
{
	struct menu_node *n = realloc(t->nodes, (t->n + 1) * sizeof(*n));
	char *text;
	int r;

	if (!n)
		return -ENOMEM;
	t->nodes = n;
	n += t->n;
	*n = (struct menu_node){
		parent, 0, MENU_TOP, conditional, strdup(title), id ? strdup(id) : NULL};
	for (size_t i = 0; i < t->n; i++)
		n->index += t->nodes[i].parent == parent;
	t->n++;
	if (!n->title || (id && !n->id))
		return -ENOMEM;
	r = path_of(t, t->n - 1, &text);
	if (r < 0)
		return r;
	*path = text;
	*node = t->n - 1;
	return 0;
}

/* Does the part of @spec up to a single '>' spell @name? */
static int names(const char *name, const char *spec)
{
	for (; name && *spec; name++, spec++) {
		if (*spec == '>' && *++spec != '>')
			return *name == '\0';
		if (*name != *spec)
			return 0;
	}
	return name && *name == '\0';
}

static const char *behind_separator(const char *spec)
{
	for (; *spec; spec++) {
		if (*spec == '>' && spec[1] != '>')
			return spec + 1;
		spec += *spec == '>';
	}
	return spec;
}

static int child(const struct menu_nodes *t, size_t parent, const char *spec, size_t *out)
{
	size_t number = 0;
	int numeric = !*spec;
	char *end;

	/* "-1" is a name for GRUB, whose strtoul() knows no signs. */
	if (isdigit((unsigned char)spec[strspn(spec, " \t")])) {
		number = strtoul(spec, &end, 0);
		numeric = 1;
	}
	for (size_t i = 0; i < t->n; i++) {
		const struct menu_node *n = &t->nodes[i];

		if (n->parent != parent)
			continue;
		if (numeric && n->conditional)
			return -ENOENT;
		if (numeric ? n->index == number : names(n->title, spec) || names(n->id, spec)) {
			*out = i;
			return 0;
		}
	}
	return -ENOENT;
}

int menu_nodes_resolve(const struct menu_nodes *t, const char *word, size_t *entry)
{
	size_t node = MENU_TOP;
	int r;

	do {
		r = child(t, node, word, &node);
		if (r < 0)
			return r;
		word = behind_separator(word);
	} while (t->nodes[node].entry == MENU_TOP);
	*entry = t->nodes[node].entry;
	return 0;
}

void menu_nodes_free(struct menu_nodes *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->nodes[i].title);
		free(t->nodes[i].id);
	}
	free(t->nodes);
	memset(t, 0, sizeof(*t));
}
