/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Strict JSON reading: what cJSON is too lenient about is refused before or after it parses. */
#include "results/json.h"

#include <errno.h>
#include <math.h>
#include <string.h>

size_t json_utf8_length(const unsigned char *p, size_t n)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t len, i;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		len = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		len = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		len = 4;
	else
		return 0;
	if (n < len)
		return 0;
	if (p[0] == 0xe0)
		low = 0xa0;
	if (p[0] == 0xed)
		high = 0x9f;
	if (p[0] == 0xf0)
		low = 0x90;
	if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (i = 2; i < len; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return len;
}

/* Steps over the string whose opening quote is before @i; the position after it, or 0. cJSON would
 * take raw control characters, and end a text early at \u0000. */
static size_t scan_string(const unsigned char *p, size_t len, size_t i)
{
	while (i < len && p[i] != '"') {
		size_t step = json_utf8_length(p + i, len - i);

		if (step == 0 || p[i] < 0x20)
			return 0;
		if (p[i] == '\\') {
			if (len - i >= 6 && memcmp(p + i, "\\u0000", 6) == 0)
				return 0;
			step = 2;
		}
		i += step;
	}
	return i < len ? i + 1 : 0;
}

/* RFC 8259 section 6; cJSON leaves it to strtod(), which also takes "01", "1." and "-.5". */
static size_t scan_number(const unsigned char *p, size_t len, size_t i)
{
	size_t digits;

	if (i < len && p[i] == '-')
		i++;
	for (digits = i; i < len && p[i] >= '0' && p[i] <= '9'; i++)
		;
	if (i == digits || (p[digits] == '0' && i > digits + 1))
		return 0;
	if (i < len && p[i] == '.') {
		for (digits = ++i; i < len && p[i] >= '0' && p[i] <= '9'; i++)
			;
		if (i == digits)
			return 0;
	}
	if (i < len && (p[i] == 'e' || p[i] == 'E')) {
		i++;
		if (i < len && (p[i] == '+' || p[i] == '-'))
			i++;
		for (digits = i; i < len && p[i] >= '0' && p[i] <= '9'; i++)
			;
		if (i == digits)
			return 0;
	}
	return i;
}

static int is_space(unsigned char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Everything cJSON does not check; the grammar of objects and arrays is left to it. */
static int scan(const unsigned char *p, size_t len)
{
	size_t i = 0, depth = 0;

	while (i < len) {
		if (p[i] == '"') {
			i = scan_string(p, len, i + 1);
			if (i == 0)
				return -EBADMSG;
			continue;
		}
		if (p[i] == '-' || (p[i] >= '0' && p[i] <= '9')) {
			i = scan_number(p, len, i);
			if (i == 0)
				return -EBADMSG;
			continue;
		}
		if (p[i] == '{' || p[i] == '[') {
			if (++depth > JSON_DEPTH_MAX)
				return -EBADMSG;
		} else if (p[i] == '}' || p[i] == ']') {
			if (depth-- == 0)
				return -EBADMSG;
		} else if (!is_space(p[i]) && (p[i] == '\0' || !strchr("truefalsn,:", p[i]))) {
			return -EBADMSG;
		}
		i++;
	}
	return depth ? -EBADMSG : 0;
}

int json_parse(const char *text, size_t len, size_t max, cJSON **out)
{
	_cleanup_(cleanup_json) cJSON *o = NULL;
	const char *end = NULL;
	int err;

	if (len > max)
		return -E2BIG;
	err = scan((const unsigned char *)text, len);
	if (err)
		return err;
	o = cJSON_ParseWithLengthOpts(text, len, &end, 0);
	if (!cJSON_IsObject(o))
		return -EBADMSG;
	for (; end < text + len; end++)
		if (!is_space(*end))
			return -EBADMSG;
	*out = TAKE_PTR(o);
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

/* cJSON's shorter look-up ignores case. */
static const cJSON *look_up(struct json_io *io, const cJSON *o, const char *key)
{
	return io->err ? NULL : cJSON_GetObjectItemCaseSensitive(o, key);
}

void json_get_schema(struct json_io *io, const cJSON *o, int64_t newest)
{
	if (json_get_int_or(io, o, "schema", 1, JSON_EXACT_MAX, 1) > newest)
		fail(io, -EPROTONOSUPPORT, "schema");
}

static int64_t item_int(struct json_io *io, const cJSON *item, const char *key, int64_t min,
			int64_t max)
{
	double v = cJSON_IsNumber(item) ? item->valuedouble : NAN;

	/* The bounds are exact as double, so a value that passes fits. */
	if (!(v >= -(double)JSON_EXACT_MAX && v <= (double)JSON_EXACT_MAX) || v != trunc(v) ||
	    (int64_t)v < min || (int64_t)v > max) {
		fail(io, -EBADMSG, key);
		return 0;
	}
	return (int64_t)v;
}

int64_t json_get_int(struct json_io *io, const cJSON *o, const char *key, int64_t min, int64_t max)
{
	return item_int(io, look_up(io, o, key), key, min, max);
}

int64_t json_get_int_or(struct json_io *io, const cJSON *o, const char *key, int64_t min,
			int64_t max, int64_t absent)
{
	const cJSON *item = look_up(io, o, key);

	return item ? item_int(io, item, key, min, max) : absent;
}

double json_get_double(struct json_io *io, const cJSON *o, const char *key)
{
	const cJSON *item = look_up(io, o, key);

	if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) {
		fail(io, -EBADMSG, key);
		return 0;
	}
	return item->valuedouble;
}

int json_get_bool_or(struct json_io *io, const cJSON *o, const char *key, int absent)
{
	const cJSON *item = look_up(io, o, key);

	if (!item)
		return absent;
	if (!cJSON_IsBool(item))
		fail(io, -EBADMSG, key);
	return cJSON_IsTrue(item);
}

const cJSON *json_get_object_or_null(struct json_io *io, const cJSON *o, const char *key)
{
	const cJSON *item = look_up(io, o, key);

	return !item || cJSON_IsObject(item) ? item : fail(io, -EBADMSG, key);
}

const cJSON *json_get_object(struct json_io *io, const cJSON *o, const char *key)
{
	const cJSON *item = json_get_object_or_null(io, o, key);

	return item ? item : fail(io, -EBADMSG, key);
}

const cJSON *json_get_array(struct json_io *io, const cJSON *o, const char *key, size_t *n)
{
	const cJSON *item = look_up(io, o, key);

	*n = 0;
	if (!cJSON_IsArray(item))
		return fail(io, -EBADMSG, key);
	*n = cJSON_GetArraySize(item);
	return item;
}

char *json_item_string(struct json_io *io, const cJSON *item, const char *key)
{
	char *copy;

	if (!cJSON_IsString(item))
		return fail(io, -EBADMSG, key);
	copy = strdup(item->valuestring);
	return copy ? copy : fail(io, -ENOMEM, key);
}

char *json_get_string(struct json_io *io, const cJSON *o, const char *key)
{
	return json_item_string(io, look_up(io, o, key), key);
}

char *json_get_string_or_null(struct json_io *io, const cJSON *o, const char *key)
{
	const cJSON *item = look_up(io, o, key);

	return !item || cJSON_IsNull(item) ? NULL : json_item_string(io, item, key);
}

void json_item_text(struct json_io *io, const cJSON *item, const char *key, char *buf, size_t size)
{
	size_t len;

	buf[0] = '\0';
	if (!cJSON_IsString(item)) {
		fail(io, -EBADMSG, key);
		return;
	}
	len = strlen(item->valuestring);
	if (len >= size) {
		fail(io, -EBADMSG, key);
		return;
	}
	memcpy(buf, item->valuestring, len + 1);
}

void json_get_text(struct json_io *io, const cJSON *o, const char *key, char *buf, size_t size)
{
	json_item_text(io, look_up(io, o, key), key, buf, size);
}

void json_get_text_or_empty(struct json_io *io, const cJSON *o, const char *key, char *buf,
			    size_t size)
{
	const cJSON *item = look_up(io, o, key);

	buf[0] = '\0';
	if (item)
		json_item_text(io, item, key, buf, size);
}
