/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A power cut in the middle of a write to the store's environment block: of the two sectors, or at
 * any byte, one part is new and the other old. What GRUB's guard then does is played on the bytes,
 * as grub_envblk_iterate() and grub_envblk_set() treat them; what the referee does is asked of it.
 */
#include "tests/unit/sample.h"

#include <sys/stat.h>

#include "grub/envblock.h"
#include "grub/oneshot.h"
#include "runner/referee.h"

#define SECTOR	512
#define SIG	"# GRUB Environment Block\n"
#define SIG_LEN (sizeof(SIG) - 1)
#define OTHER	"2026-11-30-a-0001-1-0a1b2c3d"
#define OPEN	"2026-11-30-a-0002-1-4e5f6071"
#define PICKED	"recount-e02" /* the entry that OPEN is armed for */

struct block {
	char bytes[ENVBLOCK_BYTES];
};

struct variables {
	char next[128], token[128], taken[128];
};

static char folder[SAMPLE_FOLDER], grubenv[64];
static struct plan *plan;

/* --- GRUB ------------------------------------------------------------------------------------- */

static const char *next_line(const char *p, const char *end)
{
	while (p < end && *p != '\n')
		p += *p == '\\' ? 2 : 1;
	return p + 1;
}

static void load_one(const char *name, const char *value, size_t n, struct variables *v)
{
	char *to = NULL;

	if (!strncmp(name, "next_entry=", 11))
		to = v->next;
	else if (!strncmp(name, "recount_token=", 14))
		to = v->token;
	else if (!strncmp(name, "recount_taken=", 14))
		to = v->taken;
	if (to)
		snprintf(to, sizeof(v->next), "%.*s", (int)n, value);
}

static void load_env(const struct block *b, struct variables *v)
{
	const char *p = b->bytes + SIG_LEN, *end = b->bytes + sizeof(b->bytes), *name, *value;

	for (; p < end; p = next_line(p, end)) {
		if (*p == '#')
			continue;
		name = p;
		p = memchr(p, '=', end - p);
		if (!p)
			return;
		value = ++p;
		p = next_line(p, end) - 1;
		if (p >= end)
			return;
		load_one(name, value, p - value, v);
	}
}

static int set_env(struct block *b, const char *key, const char *value)
{
	char *p = b->bytes + SIG_LEN, *end = b->bytes + sizeof(b->bytes), *space = end - 1, *rest;
	size_t key_len = strlen(key), len = strlen(value);

	while (*space == '#')
		space--;
	if (*space++ != '\n')
		return 0;
	while (p + key_len + 1 < end && (memcmp(p, key, key_len) != 0 || p[key_len] != '='))
		p = (char *)next_line(p, end);
	if (p + key_len + 1 >= end) {
		if ((size_t)(end - space) < key_len + len + 2)
			return 0;
		p = mempcpy(space, key, key_len);
		*p++ = '=';
		*(char *)mempcpy(p, value, len) = '\n';
		return 1;
	}
	p += key_len + 1;
	rest = (char *)next_line(p, end) - 1;
	if (rest >= end || space + len > rest - p + end)
		return 0;
	memmove(p + len, rest, space - rest);
	if (p + len < rest)
		memset(space + len - (rest - p), '#', rest - p - len);
	memcpy(p, value, len);
	return 1;
}

/* The guard of custom.cfg: 1 when it picks @entry and starts it with @token. */
static int guard(struct block *b, char entry[128], char token[128])
{
	struct variables v = {"", "", ""}, again = {"unread", "unread", "unread"};

	if (memcmp(b->bytes, SIG, SIG_LEN) != 0)
		return 0;
	load_env(b, &v);
	if (!v.next[0])
		return 0;
	/* save_env takes its keys one by one and writes the block when all are set. */
	struct block saved = *b;

	if (!set_env(&saved, "next_entry", "") || !set_env(&saved, "recount_token", v.token) ||
	    !set_env(&saved, "recount_taken", v.token))
		return 0;
	*b = saved;
	load_env(b, &again);
	strcpy(entry, v.next);
	strcpy(token, again.token);
	return !again.next[0] && !strcmp(again.taken, again.token) &&
	       (!strcmp(v.next, "recount-e01") || !strcmp(v.next, PICKED));
}

/* --- the store -------------------------------------------------------------------------------- */

static void put(const struct block *b)
{
	FILE *f = fopen(grubenv, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(b->bytes, 1, sizeof(b->bytes), f), sizeof(b->bytes));
	assert_int_equal(fclose(f), 0);
}

static struct block get(void)
{
	struct block b;
	FILE *f = fopen(grubenv, "r");

	assert_non_null(f);
	assert_int_equal(fread(b.bytes, 1, sizeof(b.bytes), f), sizeof(b.bytes));
	fclose(f);
	return b;
}

/* The block as it is after boot 1, with @filler bytes of somebody else's in front of our keys. */
static struct block idle(size_t filler)
{
	char value[ENVBLOCK_BYTES];
	struct envblock *b = malloc(sizeof(*b));
	struct block out;

	assert_non_null(b);
	envblock_init(b);
	memset(value, 'x', sizeof(value));
	value[filler] = '\0';
	if (filler)
		assert_int_equal(envblock_set(b, "foreign", value), 0);
	assert_int_equal(envblock_set(b, "next_entry", ""), 0);
	assert_int_equal(envblock_set(b, "recount_token", OTHER), 0);
	assert_int_equal(envblock_set(b, "recount_taken", OTHER), 0);
	memcpy(out.bytes, b->bytes, sizeof(out.bytes));
	free(b);
	return out;
}

/* What the referee makes of it: attempt 1 of boot 2 carries OPEN and nothing has come of it. */
static struct referee_finding judge(const struct oneshot_state *state)
{
	struct attempt_state done = {.exists = 1, .reached = 1, .done = 1}, open = {.exists = 1};
	struct boot_state boots[16] = {0};
	struct campaign c = {.plan = plan, .boots = boots};

	assert_true(plan->n_boots <= ARRAY_SIZE(boots));
	strcpy(done.armed.token, OTHER);
	strcpy(open.armed.token, OPEN);
	boots[1] = (struct boot_state){.attempts = &done, .n_attempts = 1};
	boots[2] = (struct boot_state){.attempts = &open, .n_attempts = 1};
	return referee_judge(&c, state, "", 0);
}

/* --- the cut ---------------------------------------------------------------------------------- */

static struct {
	int picked, home, rearmed, booked; /* how often each came out */
} seen;

/* The machine is switched on with @b on the disk, until the campaign goes on. */
static void power_back(struct block *b, const char *what, size_t at)
{
	char entry[128] = "", token[128] = "";
	struct oneshot_state state = {0};
	struct referee_finding f;
	int r;

	if (guard(b, entry, token)) {
		seen.picked++;
		/* recount-init runs nothing for a token that is not the open attempt's. */
		if (!strcmp(token, OPEN) && strcmp(entry, PICKED) != 0)
			fail_msg("%s at %zu: %s was started for %s", what, at, entry, OPEN);
		if (!strcmp(token, OPEN))
			return;
	}
	seen.home++;
	/* Never twice. */
	if (guard(b, entry, token))
		fail_msg("%s at %zu: taken again: %s %s", what, at, entry, token);
	put(b);
	r = oneshot_read(grubenv, &state);
	if (r < 0)
		state = (struct oneshot_state){0}; /* as settle_open() */
	f = judge(&state);
	if (f.boot != 2 || f.attempt != 1)
		fail_msg("%s at %zu: boot %u, attempt %u is blamed", what, at, f.boot, f.attempt);
	seen.rearmed += f.verdict == REFEREE_REARM;
	seen.booked += f.verdict == REFEREE_BOOK;
	/* Only what GRUB has marked as taken may be blamed. */
	if (f.verdict != REFEREE_REARM &&
	    (f.verdict != REFEREE_BOOK || strcmp(state.taken, OPEN) != 0))
		fail_msg("%s at %zu: verdict %d with taken %s", what, at, f.verdict, state.taken);
	/* It can be armed again on what is left of the block, and is then taken. */
	r = oneshot_arm(grubenv, PICKED, OPEN);
	if (r < 0)
		fail_msg("%s at %zu: cannot be armed again: %d", what, at, r);
	*b = get();
	if (!guard(b, entry, token) || strcmp(entry, PICKED) != 0 || strcmp(token, OPEN) != 0)
		fail_msg("%s at %zu: armed again and not taken", what, at);
}

/* Both parts of a write of @new over @old that was cut at @at: only the first, only the second. */
static void cut(const struct block *old, const struct block *new, const char *what, size_t at)
{
	struct block b = *old;

	/* Where they do not differ on both sides it is no cut. */
	if (!memcmp(old->bytes, new->bytes, at) ||
	    !memcmp(old->bytes + at, new->bytes + at, sizeof(b.bytes) - at))
		return;
	memcpy(b.bytes, new->bytes, at);
	power_back(&b, what, at);
	b = *old;
	memcpy(b.bytes + at, new->bytes + at, sizeof(b.bytes) - at);
	power_back(&b, what, at);
}

struct writes { /* the block before and after each write of a cycle */
	struct block idle, armed, taken, disarmed;
};

static struct writes cycle(size_t filler)
{
	struct writes w = {.idle = idle(filler)};
	char entry[128], token[128];

	put(&w.idle);
	assert_int_equal(oneshot_arm(grubenv, PICKED, OPEN), 0);
	w.armed = w.taken = get();
	assert_int_equal(guard(&w.taken, entry, token), 1);
	assert_string_equal(entry, PICKED);
	assert_string_equal(token, OPEN);
	assert_int_equal(oneshot_disarm(grubenv), 0);
	w.disarmed = get();
	return w;
}

/* In what is written of our keys the cuts are at every byte. */
static void case_28_a_write_cut_at_every_byte(void **state)
{
	static const size_t fillers[] = {0, 100, 300, 420, 480};

	(void)state;
	memset(&seen, 0, sizeof(seen));
	for (size_t i = 0; i < ARRAY_SIZE(fillers); i++) {
		struct writes w = cycle(fillers[i]);

		for (size_t at = 0; at <= ENVBLOCK_BYTES; at++) {
			cut(&w.idle, &w.armed, "arming", at);
			cut(&w.armed, &w.taken, "taking", at);
			cut(&w.armed, &w.disarmed, "disarming", at);
		}
	}
	assert_true(seen.picked > 100 && seen.home > 100);
	assert_true(seen.rearmed > 100 && seen.booked > 10);
}

/* A disk writes whole sectors. The boundary is moved over all of our lines by what others keep in
 * front of them. */
static void case_28_a_write_cut_between_sectors(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	for (size_t filler = 1; filler < 700; filler++) {
		struct writes w = cycle(filler);

		cut(&w.idle, &w.armed, "arming", SECTOR);
		cut(&w.armed, &w.taken, "taking", SECTOR);
		cut(&w.armed, &w.disarmed, "disarming", SECTOR);
	}
	assert_true(seen.picked && seen.home && seen.rearmed && seen.booked);
}

static int setup(void **state)
{
	(void)state;
	sample_folder(folder);
	snprintf(grubenv, sizeof(grubenv), "%s/grubenv", folder);
	plan = sample_plan();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	plan_free(plan);
	sample_folder_remove(folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_28_a_write_cut_at_every_byte),
		cmocka_unit_test(case_28_a_write_cut_between_sectors),
	};

	return cmocka_run_group_tests_name("torn", tests, setup, teardown);
}
