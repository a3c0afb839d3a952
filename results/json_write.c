/* SPDX-License-Identifier: GPL-3.0-or-later */
/* JSON writing: exact integers, finite numbers, valid UTF-8. */
#include "results/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

int json_print(const cJSON *o, char **text, size_t *len)
{
	_cleanup_free_ char *body = cJSON_Print(o);
	size_t n;
	char *line;

	if (!body)
		return -ENOMEM;
	n = strlen(body);
	line = realloc(body, n + 2);
	if (!line)
		return -ENOMEM;
	body = NULL;
	line[n++] = '\n';
	line[n] = '\0';
	if (len)
		*len = n;
	*text = line;
	return 0;
}

static void *fail(struct json_io *io, int err, const char *key)
{
	if (!io->err) {
		io->err = err;
		io->why = key;
	}
	return NULL;
}

cJSON *json_put_object(struct json_io *io, cJSON *o, const char *key)
{
	cJSON *item = io->err ? NULL : cJSON_AddObjectToObject(o, key);

	return item ? item : fail(io, -ENOMEM, key);
}

cJSON *json_put_array(struct json_io *io, cJSON *o, const char *key)
{
	cJSON *item = io->err ? NULL : cJSON_AddArrayToObject(o, key);

	return item ? item : fail(io, -ENOMEM, key);
}

/* Adds @item, which may be NULL for want of memory, to @a; takes it over in any case. */
static cJSON *append(struct json_io *io, cJSON *a, cJSON *item)
{
	if (!io->err && item && cJSON_AddItemToArray(a, item))
		return item;
	cJSON_Delete(item);
	return fail(io, -ENOMEM, NULL);
}

cJSON *json_append_object(struct json_io *io, cJSON *a)
{
	return append(io, a, io->err ? NULL : cJSON_CreateObject());
}

void json_put_int(struct json_io *io, cJSON *o, const char *key, int64_t value)
{
	char text[24];

	if (value > JSON_EXACT_MAX || value < -JSON_EXACT_MAX) {
		fail(io, -ERANGE, key);
		return;
	}
	/* cJSON would print round numbers from 10^15 on as 1e+15. */
	snprintf(text, sizeof(text), "%" PRId64, value);
	if (!io->err && !cJSON_AddRawToObject(o, key, text))
		fail(io, -ENOMEM, key);
}

void json_put_double(struct json_io *io, cJSON *o, const char *key, double value)
{
	if (!isfinite(value))
		fail(io, -EDOM, key);
	else if (!io->err && !cJSON_AddNumberToObject(o, key, value))
		fail(io, -ENOMEM, key);
}

void json_put_bool(struct json_io *io, cJSON *o, const char *key, int value)
{
	if (!io->err && !cJSON_AddBoolToObject(o, key, value))
		fail(io, -ENOMEM, key);
}

/* The position of the first byte that is not UTF-8, or of the NUL at the end. */
static size_t utf8_span(const char *value)
{
	size_t len = strlen(value), i = 0, step;

	while (i < len) {
		step = json_utf8_length((const unsigned char *)value + i, len - i);
		if (step == 0)
			break;
		i += step;
	}
	return i;
}

static int is_utf8(struct json_io *io, const char *key, const char *value)
{
	if (value[utf8_span(value)] == '\0')
		return 1;
	fail(io, -EILSEQ, key);
	return 0;
}

void json_append_text(struct json_io *io, cJSON *a, const char *value)
{
	if (is_utf8(io, NULL, value))
		append(io, a, cJSON_CreateString(value));
}

void json_put_text(struct json_io *io, cJSON *o, const char *key, const char *value)
{
	if (!value || !is_utf8(io, key, value) || io->err)
		return;
	if (!cJSON_AddStringToObject(o, key, value))
		fail(io, -ENOMEM, key);
}

void json_put_lossy(struct json_io *io, cJSON *o, const char *key, const char *value)
{
	_cleanup_free_ char *copy = strdup(value);
	char *p;

	if (!copy) {
		fail(io, -ENOMEM, key);
		return;
	}
	for (p = copy + utf8_span(copy); *p; p += utf8_span(p))
		*p = '?';
	json_put_text(io, o, key, copy);
}
