/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Walks grub.cfg as GRUB would, as far as that can be done beforehand. */
#include "grub/menu_parse.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "grub/bootline.h"
#include "grub/condition.h"
#include "grub/menu_default.h"
#include "grub/script.h"

#define DEPTH_MAX     32
#define ENTRIES_MAX   4096
#define VARIABLES_MAX 4096

struct variable {
	char *name, *value;
	int unknown;
};

enum frame_kind { FRAME_IF, FRAME_LOOP, FRAME_ENTRY, FRAME_SUBMENU, FRAME_FUNCTION };

struct frame {
	enum frame_kind kind;
	enum condition outer; /* is the code around it run */
	enum condition value; /* IF: of the condition being read */
	enum condition taken; /* IF: was an earlier branch taken */
	int awaiting;	      /* IF, LOOP: commands now are the condition */
	size_t outer_parent;  /* SUBMENU */
};

struct parser {
	struct menu *m;
	const struct envblock *env;
	int have_grubenv, env_loaded;
	char value[4096]; /* of the last variable that came from the block */
	struct variable *vars;
	size_t n_vars;
	struct frame frames[DEPTH_MAX];
	size_t depth;
	enum condition run; /* is the code at this place run */
	size_t parent;	    /* submenu that is open, or MENU_TOP */
	size_t entry;	    /* menu entry that is open, or MENU_TOP */
	struct menu_nodes nodes;
};

static struct variable *find_variable(struct parser *p, const char *name)
{
	for (size_t i = 0; i < p->n_vars; i++)
		if (strcmp(p->vars[i].name, name) == 0)
			return &p->vars[i];
	return NULL;
}

static const char *lookup(void *data, const char *name, int *unknown)
{
	static const char *const firmware[] = {"?",	 "grub_platform",    "grub_cpu", "root",
					       "prefix", "config_directory", "chosen"};
	struct parser *p = data;
	struct variable *v = find_variable(p, name);
	int r;

	if (v) {
		*unknown |= v->unknown;
		return v->value;
	}
	if (strncmp(name, "feature_", 8) == 0)
		return "y";
	for (size_t i = 0; i < ARRAY_SIZE(firmware); i++)
		if (strcmp(name, firmware[i]) == 0)
			*unknown = 1;
	/* A pending one-shot is not the default. */
	if (!p->env_loaded || strcmp(name, "next_entry") == 0)
		return "";
	/* With env_block the values that count lie outside the file. */
	if (envblock_get(p->env, "env_block", p->value, sizeof(p->value)) != -ENOENT)
		*unknown = 1;
	r = envblock_get(p->env, name, p->value, sizeof(p->value));
	if (r == 0)
		return p->value;
	if (r != -ENOENT)
		*unknown = 1;
	return "";
}

static int set_variable(struct parser *p, const struct script_word *w)
{
	const char *equals = strchr(w->text, '=');
	_cleanup_free_ char *name = NULL, *value = NULL;
	struct variable *v;

	if (!equals || equals == w->text)
		return 0;
	name = strndup(w->text, (size_t)(equals - w->text));
	value = strdup(equals + 1);
	if (!name || !value)
		return -ENOMEM;
	if (strcmp(name, "superusers") == 0)
		p->m->superusers = 1;
	v = find_variable(p, name);
	if (!v && p->n_vars == VARIABLES_MAX)
		return -E2BIG;
	if (!v) {
		v = realloc(p->vars, (p->n_vars + 1) * sizeof(*v));
		if (!v)
			return -ENOMEM;
		p->vars = v;
		v += p->n_vars++;
		v->name = TAKE_PTR(name);
	} else {
		free(v->value);
	}
	v->value = TAKE_PTR(value);
	v->unknown = w->unknown || p->run != CONDITION_YES;
	return 0;
}

static int replace_string(char **where, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*where);
	*where = copy;
	return 0;
}

/* Joins words from @from on; as kernel arguments or just with blanks. */
static int join(const struct script_command *c, size_t from, int as_cmdline, char **where)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int bad;

	if (!f)
		return -ENOMEM;
	for (size_t i = from; i < c->n; i++) {
		if (as_cmdline)
			bootline_print_arg(f, c->words[i].text, i == from);
		else
			fprintf(f, "%s%s", i == from ? "" : " ", c->words[i].text);
	}
	bad = ferror(f);
	if (fclose(f) || bad)
		return -ENOMEM;
	free(*where);
	*where = TAKE_PTR(text);
	return 0;
}

static int take_search(const struct script_command *c, struct menu_entry *e)
{
	int by_uuid = strcmp(c->words[0].text, "search.fs_uuid") == 0;
	const char *uuid = by_uuid && c->n > 1 ? c->words[1].text : NULL;

	for (size_t i = 1; !by_uuid && i < c->n; i++)
		by_uuid = strcmp(c->words[i].text, "--fs-uuid") == 0 ||
			  strcmp(c->words[i].text, "-u") == 0;
	for (size_t i = 1; by_uuid && !uuid && i < c->n; i++)
		if (*c->words[c->n - i].text != '-')
			uuid = c->words[c->n - i].text;
	return uuid && by_uuid ? replace_string(&e->fs_uuid, uuid) : 0;
}

static int entry_command(const struct script_command *c, struct menu_entry *e)
{
	const char *name = c->words[0].text;
	int r;

	if (strncmp(name, "search", 6) == 0)
		return take_search(c, e);
	if (c->n < 2)
		return 0;
	if (strcmp(name, "linux") == 0 || strcmp(name, "linux16") == 0 ||
	    strcmp(name, "linuxefi") == 0) {
		r = replace_string(&e->linux_path, c->words[1].text);
		return r < 0 ? r : join(c, 2, 1, &e->cmdline);
	}
	if (strncmp(name, "initrd", 6) == 0)
		return join(c, 1, 0, &e->initrd_paths);
	return 0;
}

static int simple_command(struct parser *p, const struct script_command *c)
{
	const char *name = c->words[0].text, *last = c->words[c->n - 1].text, *slash;

	if (p->run == CONDITION_NO)
		return 0;
	if (strcmp(name, "set") == 0)
		return c->n > 1 ? set_variable(p, &c->words[1]) : 0;
	if (p->entry != MENU_TOP)
		return entry_command(c, &p->m->entries[p->entry]);
	if (c->n == 1 && strchr(name, '='))
		return set_variable(p, &c->words[0]);
	if (strcmp(name, "load_env") == 0) {
		/* With -f only GRUB's own block counts: its folder is a variable. */
		if (c->n < 2 || strcmp(c->words[1].text, "-f") != 0 ||
		    (c->n > 2 && strcmp(c->words[2].text, "/grubenv") == 0))
			p->env_loaded = 1;
	} else if (strcmp(name, "blscfg") == 0) {
		p->m->bls = 1;
	} else if (strcmp(name, "source") == 0 || strcmp(name, ".") == 0) {
		slash = strrchr(last, '/');
		if (slash && strcmp(slash, "/custom.cfg") == 0)
			p->m->sources_custom_cfg = 1;
	}
	return 0;
}

/* Title and id of a menuentry or submenu line. */
static void read_names(const struct script_command *c, const char **title, const char **id)
{
	static const char *const valued[] = {"--class", "--users", "--hotkey", "--source"};

	for (size_t i = 1; i + 1 < c->n; i++) {
		const char *w = c->words[i].text;
		int skip = 0;

		if (strncmp(w, "--", 2) != 0 || *title == w) {
			if (!*title)
				*title = w;
			continue;
		}
		if (strcmp(w, "--id") == 0 && i + 2 < c->n)
			*id = c->words[++i].text;
		else if (strncmp(w, "--id=", 5) == 0)
			*id = w + 5;
		for (size_t k = 0; k < ARRAY_SIZE(valued); k++)
			skip |= strcmp(w, valued[k]) == 0;
		i += (size_t)skip;
	}
}

static int add_entry(struct parser *p, const char *title, const char *id, const char *path)
{
	struct menu *m = p->m;
	struct menu_entry *e = realloc(m->entries, (m->n + 1) * sizeof(*e));
	const struct menu_node *above = NULL;

	if (!e)
		return -ENOMEM;
	m->entries = e;
	e += m->n;
	memset(e, 0, sizeof(*e));
	m->n++;
	if (p->parent != MENU_TOP)
		above = &p->nodes.nodes[p->parent];
	if (replace_string(&e->title, title) < 0 || replace_string(&e->path, path) < 0 ||
	    (id && replace_string(&e->id, id) < 0) ||
	    (above && replace_string(&e->submenu_title, above->title) < 0) ||
	    (above && above->id && replace_string(&e->submenu_id, above->id) < 0))
		return -ENOMEM;
	p->entry = m->n - 1;
	return 0;
}

static int push(struct parser *p, enum frame_kind kind)
{
	if (p->depth == DEPTH_MAX)
		return -EBADMSG;
	p->frames[p->depth++] = (struct frame){
		.kind = kind,
		.outer = p->run,
		.taken = CONDITION_NO,
		.value = CONDITION_UNKNOWN,
		.awaiting = kind == FRAME_IF || kind == FRAME_LOOP,
		.outer_parent = p->parent,
	};
	return 0;
}

/* "menuentry …{", "submenu … {" or "function NAME {". */
static int open_block(struct parser *p, const struct script_command *c)
{
	const char *name = c->words[0].text, *title = NULL, *id = NULL;
	int submenu = strcmp(name, "submenu") == 0, r;
	_cleanup_free_ char *path = NULL;
	size_t node;

	if (!submenu && strcmp(name, "menuentry") != 0) {
		r = push(p, FRAME_FUNCTION);
		p->run = CONDITION_NO;
		return r;
	}
	r = push(p, submenu ? FRAME_SUBMENU : FRAME_ENTRY);
	if (r < 0 || p->run == CONDITION_NO)
		return r;
	read_names(c, &title, &id);
	if (!title)
		return -EBADMSG;
	if (p->nodes.n == ENTRIES_MAX)
		return -E2BIG;
	r = menu_nodes_add(&p->nodes, p->parent, title, id, p->run != CONDITION_YES, &node, &path);
	if (r < 0)
		return r;
	if (submenu)
		p->parent = node;
	else
		r = add_entry(p, title, id, path);
	if (!submenu)
		p->nodes.nodes[node].entry = p->m->n - 1;
	/* Inside, the block is taken as chosen. */
	p->run = CONDITION_YES;
	return r;
}

static int close_block(struct parser *p)
{
	struct frame *f = p->depth ? &p->frames[p->depth - 1] : NULL;

	if (!f || f->kind == FRAME_IF || f->kind == FRAME_LOOP)
		return -EBADMSG;
	if (f->kind == FRAME_ENTRY)
		p->entry = MENU_TOP;
	p->parent = f->outer_parent;
	p->run = f->outer;
	p->depth--;
	return 0;
}

/* Keywords of if and loops: 1 when @word was one. */
static int keyword(struct parser *p, const char *word)
{
	struct frame *f = p->depth ? &p->frames[p->depth - 1] : NULL;

	if (strcmp(word, "if") == 0)
		return push(p, FRAME_IF) < 0 ? -EBADMSG : 1;
	if (strcmp(word, "while") == 0 || strcmp(word, "until") == 0 || strcmp(word, "for") == 0)
		return push(p, FRAME_LOOP) < 0 ? -EBADMSG : 1;
	if (strcmp(word, "then") == 0 || strcmp(word, "elif") == 0 || strcmp(word, "else") == 0 ||
	    strcmp(word, "fi") == 0) {
		if (!f || f->kind != FRAME_IF)
			return -EBADMSG;
		f->awaiting = *word == 'e' && word[2] == 'i';
		if (*word == 't')
			p->run = condition_and(f->outer,
					       condition_and(condition_not(f->taken), f->value));
		else
			p->run = condition_and(f->outer, condition_not(f->taken));
		if (*word == 't')
			f->taken = condition_or(f->taken, f->value);
		if (*word == 'f') {
			p->run = f->outer;
			p->depth--;
		}
		return 1;
	}
	if (strcmp(word, "do") == 0 || strcmp(word, "done") == 0) {
		if (!f || f->kind != FRAME_LOOP)
			return -EBADMSG;
		f->awaiting = 0;
		p->run = word[2] ? f->outer : condition_and(f->outer, CONDITION_UNKNOWN);
		p->depth -= word[2] != '\0';
		return 1;
	}
	return 0;
}

static int command(struct parser *p, const struct script_command *c)
{
	const struct script_word *first = &c->words[0], *last = &c->words[c->n - 1];
	struct frame *f;
	int r;

	if (first->plain) {
		r = keyword(p, first->text);
		if (r)
			return r < 0 ? r : 0;
	}
	if (c->n == 1 && first->plain && strcmp(first->text, "}") == 0)
		return close_block(p);
	if (last->plain && strcmp(last->text, "{") == 0)
		return open_block(p, c);
	f = p->depth ? &p->frames[p->depth - 1] : NULL;
	if (f && f->awaiting)
		f->value = condition_of(c, p->have_grubenv);
	return simple_command(p, c);
}

static int take_default(struct parser *p)
{
	struct variable *v = find_variable(p, "default");
	size_t entry;

	p->m->default_word = strdup(v && *v->value ? v->value : "0");
	if (!p->m->default_word)
		return -ENOMEM;
	if (p->m->bls || (v && v->unknown))
		return 0;
	if (menu_nodes_resolve(&p->nodes, p->m->default_word, &entry) == 0)
		p->m->default_entry = &p->m->entries[entry];
	return 0;
}

int menu_parse(struct menu *m, const char *cfg, const struct envblock *env, int have_grubenv)
{
	struct parser *p = calloc(1, sizeof(*p));
	struct script_command c = {NULL, 0};
	struct script s = {cfg, lookup, p};
	int r;

	if (!p)
		return -ENOMEM;
	p->m = m;
	p->env = env;
	p->have_grubenv = have_grubenv;
	p->run = CONDITION_YES;
	p->parent = p->entry = MENU_TOP;
	while ((r = script_next(&s, &c)) > 0) {
		r = command(p, &c);
		if (r < 0)
			break;
	}
	if (r == 0 && p->depth)
		r = -EBADMSG;
	if (r == 0)
		r = take_default(p);
	script_command_free(&c);
	for (size_t i = 0; i < p->n_vars; i++) {
		free(p->vars[i].name);
		free(p->vars[i].value);
	}
	free(p->vars);
	menu_nodes_free(&p->nodes);
	free(p);
	return r;
}
