/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cuts GRUB's shell language into commands. */
#include "grub/script.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* A word while it is read. Unquoted values may split it, so bytes go into a stream. */
struct builder {
	struct script *s;
	struct script_command *out;
	char *text;
	size_t len;
	FILE *f;
	size_t *room; /* bytes that the command may still have */
	int any;      /* there is a word, perhaps an empty quoted one */
	int plain, unknown;
};

void script_command_free(struct script_command *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->words[i].text);
	free(c->words);
	memset(c, 0, sizeof(*c));
}

static int begin(struct builder *b)
{
	b->f = open_memstream(&b->text, &b->len);
	b->any = b->unknown = 0;
	b->plain = 1;
	return b->f ? 0 : -ENOMEM;
}

static int finish(struct builder *b)
{
	struct script_word *words;
	int bad = ferror(b->f);

	if (fclose(b->f) || bad)
		bad = 1;
	b->f = NULL;
	if (bad || !b->any) {
		free(b->text);
		return bad ? -ENOMEM : 0;
	}
	/* Empty words cost memory as well. */
	if (!*b->room) {
		free(b->text);
		return -E2BIG;
	}
	--*b->room;
	words = realloc(b->out->words, (b->out->n + 1) * sizeof(*words));
	if (!words) {
		free(b->text);
		return -ENOMEM;
	}
	b->out->words = words;
	words[b->out->n++] = (struct script_word){b->text, b->plain, b->unknown};
	return 0;
}

static int put(struct builder *b, char c)
{
	if (!*b->room)
		return -E2BIG;
	--*b->room;
	fputc(c, b->f);
	b->any = 1;
	return 0;
}

/* $NAME, ${NAME} or $? at the position; a lone '$' is itself. */
static int expand(struct builder *b, int quoted)
{
	const char *p = b->s->pos + 1;
	int brace = *p == '{', r;
	const char *start = p + brace, *end = start, *value;
	char name[64];

	if (*start == '?')
		end++;
	else
		while (isalnum((unsigned char)*end) || *end == '_')
			end++;
	if (end == start || (size_t)(end - start) >= sizeof(name) || (brace && *end != '}')) {
		b->s->pos++;
		return put(b, '$');
	}
	memcpy(name, start, (size_t)(end - start));
	name[end - start] = '\0';
	b->s->pos = end + brace;
	b->plain = 0;
	for (value = b->s->lookup(b->s->data, name, &b->unknown); *value; value++) {
		if (quoted || *value != ' ') {
			r = put(b, *value);
			if (r < 0)
				return r;
			continue;
		}
		r = finish(b);
		if (r == 0)
			r = begin(b);
		if (r < 0)
			return r;
		b->plain = 0;
	}
	return 0;
}

static int double_quoted(struct builder *b)
{
	const char **pos = &b->s->pos;
	int r = 0;

	b->any = 1;
	b->plain = 0;
	for ((*pos)++; r == 0 && **pos != '"';) {
		if (!**pos)
			return -EBADMSG;
		if (**pos == '\\' && strchr("\\\"$\n", (*pos)[1]) && (*pos)[1]) {
			if ((*pos)[1] != '\n')
				r = put(b, (*pos)[1]);
			*pos += 2;
		} else if (**pos == '$') {
			r = expand(b, 1);
		} else {
			r = put(b, *(*pos)++);
		}
	}
	(*pos)++;
	return r;
}

static int single_quoted(struct builder *b)
{
	const char *end = strchr(b->s->pos + 1, '\'');
	int r = 0;

	if (!end)
		return -EBADMSG;
	b->any = 1;
	b->plain = 0;
	for (const char *p = b->s->pos + 1; r == 0 && p < end; p++)
		r = put(b, *p);
	b->s->pos = end + 1;
	return r;
}

static int word_bytes(struct builder *b)
{
	const char **pos = &b->s->pos;
	int r = 0;

	while (r == 0 && **pos && !strchr(" \t\r\n;", **pos)) {
		if (**pos == '"') {
			r = double_quoted(b);
		} else if (**pos == '\'') {
			r = single_quoted(b);
		} else if (**pos == '$') {
			r = expand(b, 0);
		} else if (**pos == '\\' && (*pos)[1]) {
			b->plain = 0;
			if ((*pos)[1] != '\n')
				r = put(b, (*pos)[1]);
			*pos += 2;
		} else {
			r = put(b, *(*pos)++);
		}
	}
	return r;
}

static int read_word(struct script *s, struct script_command *out, size_t *room)
{
	struct builder b = {.s = s, .out = out, .room = room};
	int r = begin(&b), end;

	if (r < 0)
		return r;
	r = word_bytes(&b);
	if (!b.f)
		return r;
	if (r < 0)
		b.any = 0;
	end = finish(&b);
	return r < 0 ? r : end;
}

static int is_alone(const struct script_word *w)
{
	static const char *const keywords[] = {"if",   "elif", "while", "until", "then",
					       "else", "do",   "{",	"}"};

	for (size_t i = 0; w->plain && i < ARRAY_SIZE(keywords); i++)
		if (strcmp(w->text, keywords[i]) == 0)
			return 1;
	return 0;
}

int script_next(struct script *s, struct script_command *out)
{
	size_t room = SCRIPT_BYTES_MAX;
	int r;

	script_command_free(out);
	for (;;) {
		s->pos += strspn(s->pos, " \t\r");
		if (*s->pos == '#') {
			s->pos += strcspn(s->pos, "\n");
		} else if (*s->pos == '\n' || *s->pos == ';' || !*s->pos) {
			if (out->n)
				return 1;
			if (!*s->pos)
				return 0;
			s->pos++;
		} else {
			const struct script_word *last;

			r = read_word(s, out, &room);
			if (r < 0) {
				script_command_free(out);
				return r;
			}
			last = out->n ? &out->words[out->n - 1] : NULL;
			if (last && ((out->n == 1 && is_alone(last)) ||
				     (last->plain && strcmp(last->text, "{") == 0)))
				return 1;
		}
	}
}
