/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JSON for the codecs: strict reading with limits, typed fields, exact integers. Reading and
 * writing go through a json_io that remembers the first error, so that a codec is a plain list of
 * fields and looks at `err` once, at the end. No logging, no files. Only codecs include this.
 */
#ifndef RECOUNT_RESULTS_JSON_H
#define RECOUNT_RESULTS_JSON_H

#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "results/macro.h"

#define JSON_DEPTH_MAX 16
#define JSON_EXACT_MAX ((INT64_C(1) << 53) - 1) /* cJSON keeps numbers as double */

struct json_io {
	int err;	 /* 0, or the first error; nothing more is done after it */
	const char *why; /* the key it was met at, static */
};

/*
 * Parses one JSON object. Refuses what RFC 8259 does (also control characters in strings, text that
 * is not UTF-8, anything but white space after the object), \u0000, and more than JSON_DEPTH_MAX
 * levels: -EBADMSG. -E2BIG over @max bytes. Owned by caller, cJSON_Delete().
 */
int json_parse(const char *text, size_t len, size_t max, cJSON **out) _must_check_;
static inline void cleanup_json(cJSON **o)
{
	cJSON_Delete(*o);
}

/* Length of the UTF-8 sequence at @p, of which @n >= 1 bytes may be read (Unicode 15, table 3-7);
 * 0 when there is none. Pure. */
size_t json_utf8_length(const unsigned char *p, size_t n);

/* The text of @o, newline at the end; @len may be NULL. Owned by caller, free(). */
int json_print(const cJSON *o, char **text, size_t *len) _must_check_;

/* Sets -EPROTONOSUPPORT when the key "schema" is above @newest; absent means 1. */
void json_get_schema(struct json_io *io, const cJSON *o, int64_t newest);

/*
 * Fields of an object that must be there with the right type and range, else io->err is -EBADMSG
 * and the answer is 0 or NULL. Integers must be exact: 1.5 and anything past JSON_EXACT_MAX are
 * refused. The _or form takes an absent key for @absent.
 */
int64_t json_get_int(struct json_io *io, const cJSON *o, const char *key, int64_t min, int64_t max);
int64_t json_get_int_or(struct json_io *io, const cJSON *o, const char *key, int64_t min,
			int64_t max, int64_t absent);
double json_get_double(struct json_io *io, const cJSON *o, const char *key);
int json_get_bool_or(struct json_io *io, const cJSON *o, const char *key, int absent);
const cJSON *json_get_object(struct json_io *io, const cJSON *o, const char *key);
const cJSON *json_get_array(struct json_io *io, const cJSON *o, const char *key, size_t *n);
/* Borrowed, or NULL when the key is absent. */
const cJSON *json_get_object_or_null(struct json_io *io, const cJSON *o, const char *key);
/* A copy, owned by caller. The _or_null form takes an absent key or null for NULL. */
char *json_get_string(struct json_io *io, const cJSON *o, const char *key);
char *json_get_string_or_null(struct json_io *io, const cJSON *o, const char *key);
/* Into @buf, which must hold it whole. The _or_empty form takes an absent key for "". */
void json_get_text(struct json_io *io, const cJSON *o, const char *key, char *buf, size_t size);
void json_get_text_or_empty(struct json_io *io, const cJSON *o, const char *key, char *buf,
			    size_t size);
/* The same for an array's element @item; @key is only named in io->why. */
char *json_item_string(struct json_io *io, const cJSON *item, const char *key);
void json_item_text(struct json_io *io, const cJSON *item, const char *key, char *buf, size_t size);

/* A new object or array, in @o under @key; borrowed. NULL with io->err set when memory ends; the
 * other functions take NULL for @o then. */
cJSON *json_put_object(struct json_io *io, cJSON *o, const char *key);
cJSON *json_put_array(struct json_io *io, cJSON *o, const char *key);
/* A new object at the end of the array @a, borrowed. */
cJSON *json_append_object(struct json_io *io, cJSON *a);
void json_append_text(struct json_io *io, cJSON *a, const char *value);
/* Integers past JSON_EXACT_MAX set -ERANGE, doubles that are not finite -EDOM: neither is written.
 */
void json_put_int(struct json_io *io, cJSON *o, const char *key, int64_t value);
void json_put_double(struct json_io *io, cJSON *o, const char *key, double value);
void json_put_bool(struct json_io *io, cJSON *o, const char *key, int value);
/* Text that is not UTF-8 sets -EILSEQ. A NULL @value writes no key. */
void json_put_text(struct json_io *io, cJSON *o, const char *key, const char *value);
/* For text from elsewhere: each byte that is not UTF-8 becomes '?'. */
void json_put_lossy(struct json_io *io, cJSON *o, const char *key, const char *value);

#endif
