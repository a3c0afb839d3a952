/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arming: the three keys of the store's environment block. */
#include "grub/oneshot.h"

#include <errno.h>
#include <string.h>

#include "grub/envblock.h"
#include "grub/oneshot_text.h"

static int get(const struct envblock *b, const char *key, char *value, size_t size)
{
	int r = envblock_get(b, key, value, size);

	if (r == -ENOENT)
		*value = '\0';
	return r == -ENOENT ? 0 : r < 0 ? -EBADMSG : 0;
}

int oneshot_read(const char *grubenv, struct oneshot_state *out)
{
	_cleanup_free_ struct envblock *b = malloc(sizeof(*b));
	struct oneshot_state s;
	int r;

	if (!b)
		return -ENOMEM;
	r = envblock_read(grubenv, b, NULL);
	if (r < 0)
		return r;
	r = get(b, "next_entry", s.next_entry, sizeof(s.next_entry));
	if (r == 0)
		r = get(b, "recount_token", s.token, sizeof(s.token));
	if (r == 0)
		r = get(b, "recount_taken", s.taken, sizeof(s.taken));
	if (r < 0)
		return r;
	*out = s;
	return 0;
}

static int is_token(const char *s)
{
	const struct oneshot_state *limit = NULL;
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

	return n > 0 && n < sizeof(limit->token) && !s[n];
}

/* Reads the block to be changed; 0 or 1 as envblock_decode(). What GRUB could not read either
 * holds nothing worth keeping. */
static int read_for_change(const char *grubenv, struct envblock *b)
{
	int r = envblock_read(grubenv, b, NULL);

	if (r == -ENOENT || r == -EBADMSG) {
		envblock_init(b);
		return 1;
	}
	return r;
}

/* What GRUB's save_env will need: its own write must not fail for want of room. */
static int has_room(const struct envblock *b, const char *token)
{
	_cleanup_free_ struct envblock *after = malloc(sizeof(*after));
	int r;

	if (!after)
		return -ENOMEM;
	memcpy(after, b, sizeof(*after));
	r = envblock_set(after, "recount_taken", token);
	return r < 0 ? r : 0;
}

/* In place; only a file that is not there or has another size is made anew. */
static int write_back(const char *grubenv, const struct envblock *b)
{
	int r = envblock_write(grubenv, b);

	return r == -ENOENT || r == -EINVAL ? envblock_create(grubenv, b) : r;
}

int oneshot_arm(const char *grubenv, const char *id, const char *token)
{
	_cleanup_free_ struct envblock *b = malloc(sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	if (!oneshot_is_id(id) || !is_token(token))
		return -EINVAL;
	r = read_for_change(grubenv, b);
	if (r < 0)
		return r;
	r = envblock_set(b, "next_entry", id);
	if (r == 0)
		r = envblock_set(b, "recount_token", token);
	if (r == 0)
		r = has_room(b, token);
	return r < 0 ? r : write_back(grubenv, b);
}

int oneshot_disarm(const char *grubenv)
{
	_cleanup_free_ struct envblock *b = malloc(sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	if (access(grubenv, F_OK) < 0 && errno == ENOENT)
		return 0;
	r = read_for_change(grubenv, b);
	if (r < 0)
		return r;
	r = envblock_set(b, "next_entry", NULL);
	if (r == 0)
		r = envblock_set(b, "recount_token", NULL);
	return r < 0 ? r : write_back(grubenv, b);
}
