/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A whole campaign whose power goes once, at each of the calls that change its disk: what was done
 * stays, the campaign ends, and the cut costs the attempt it hit, or nothing when GRUB had not
 * taken it. GRUB, recount-init and the referee are played in the order of recount(8); what they
 * write goes through the product's own code. Linked with --wrap for every call that writes.
 */
#include "tests/unit/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "grub/envblock.h"
#include "results/digest.h"
#include "results/log.h"
#include "runner/arm.h"
#include "runner/settle.h"

#define NEVER	 1000000
#define BOOTS	 3 /* the canary and two */
#define STEPS	 60
#define SECTOR	 512
#define REARMS	 3
#define FILE_MAX 65536

/* What is left of the call in which the power goes. */
enum last { LAST_NOTHING, LAST_HALF, LAST_ALL };

static struct {
	int calls, dies_at; /* nothing after the dies_at-th call reaches the disk */
	enum last last;
} power;

static struct {
	char dir[SAMPLE_FOLDER], env[64];
	struct plan *plan;
	char sha256[PLAN_SHA256];
	struct store *store;
	int done[BOOTS][8]; /* attempt whose record of a trial was acknowledged */
} world;

/* --- the disk --------------------------------------------------------------------------------- */

ssize_t __real_write(int fd, const void *buf, size_t len);
ssize_t __real_pwrite64(int fd, const void *buf, size_t len, off_t at);
int __real_fsync(int fd);
int __real_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int __real_mkdirat(int dir, const char *name, mode_t mode);
int __real_unlinkat(int dir, const char *name, int flags);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off_t at);
int __wrap_fsync(int fd);
int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int __wrap_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_unlinkat(int dir, const char *name, int flags);

static int is_off(void)
{
	return power.calls >= power.dies_at;
}

/* 1: the call reaches the disk, at least half of it. The caller hears nothing but EIO when the
 * power went in it. */
static int reaches(void)
{
	power.calls++;
	return power.calls < power.dies_at ||
	       (power.calls == power.dies_at && power.last != LAST_NOTHING);
}

static ssize_t heard(ssize_t result)
{
	if (!is_off())
		return result;
	errno = EIO;
	return -1;
}

static size_t part(size_t len, size_t half)
{
	return power.calls == power.dies_at && power.last == LAST_HALF && half < len ? half : len;
}

ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
	/* The log is no part of the disk. */
	if (fd == STDERR_FILENO || !reaches())
		return heard(len);
	return heard(__real_write(fd, buf, part(len, len / 2)));
}

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off_t at)
{
	return reaches() ? heard(__real_pwrite64(fd, buf, part(len, SECTOR), at)) : heard(len);
}

int __wrap_fsync(int fd)
{
	return (int)heard(reaches() ? __real_fsync(fd) : 0);
}

int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	return (int)heard(reaches() ? __real_renameat2(from_dir, from, to_dir, to, flags) : 0);
}

int __wrap_mkdirat(int dir, const char *name, mode_t mode)
{
	return (int)heard(reaches() ? __real_mkdirat(dir, name, mode) : 0);
}

int __wrap_unlinkat(int dir, const char *name, int flags)
{
	return (int)heard(reaches() ? __real_unlinkat(dir, name, flags) : 0);
}

/* --- what runs on it -------------------------------------------------------------------------- */

/* 1 when GRUB has taken the one-shot; -EIO when the power went. */
static int grub(char token[RECORD_TOKEN])
{
	struct envblock *b = malloc(sizeof(*b));
	struct oneshot_state s;
	int r = oneshot_read(world.env, &s);

	assert_non_null(b);
	if (r == 0 && s.next_entry[0] && envblock_read(world.env, b, NULL) >= 0) {
		assert_int_equal(envblock_set(b, "next_entry", ""), 0);
		assert_int_equal(envblock_set(b, "recount_taken", s.token), 0);
		r = envblock_write(world.env, b);
		strcpy(token, s.token);
		r = r < 0 ? r : 1;
	} else {
		r = 0;
	}
	free(b);
	return r;
}

static int put(const struct attempt_record *a, const char *stem, char *json)
{
	char path[256];
	int r;

	store_boot_path(path, world.plan->id, a->boot, stem, a->attempt, "json");
	r = store_put(world.store, path, json, strlen(json));
	free(json);
	return r;
}

static int put_trial(const struct attempt_record *a, const struct plan_trial *t)
{
	struct trial_record r;
	char stem[32], *json = NULL;
	int err;

	trial_record_init(&r);
	r.boot = a->boot;
	r.round = world.plan->boots[a->boot].round;
	r.attempt = a->attempt;
	r.trial = t->trial;
	r.jobs = t->jobs;
	r.wall_ns = 1000000000;
	r.status = a->boot ? TRIAL_OK : TRIAL_DISCARDED;
	strcpy(r.entry, a->entry);
	strcpy(r.workload, t->workload);
	strcpy(r.load, t->load);
	assert_int_equal(trial_encode(&r, &json), 0);
	snprintf(stem, sizeof(stem), "trial-%02u", t->trial);
	err = put(a, stem, json);
	/* "ok" on the console */
	if (err == 0)
		world.done[a->boot][t->trial] = (int)a->attempt;
	return err;
}

static int arm_next(unsigned boot)
{
	struct campaign *c = NULL;
	char token[RECORD_TOKEN];
	unsigned next, attempt;
	int r = campaign_load(world.store, world.plan, NULL, &c);

	assert_int_equal(r, 0);
	if (boot > 0 && campaign_next(c, &next, &attempt) == CAMPAIGN_BOOT)
		r = arm_boot(world.store, world.dir, world.plan, world.sha256, next, attempt, token,
			     NULL);
	else
		r = oneshot_disarm(world.env);
	campaign_free(c);
	return r;
}

static int serve(const struct attempt_record *a, const int todo[8])
{
	const struct plan_boot *boot = &world.plan->boots[a->boot];
	struct reached_record reached = {.reached_monotonic_ns = 1};
	struct done_record done = {.done_monotonic_ns = 2};
	char *json = NULL;
	int r;

	strcpy(reached.token, a->token);
	strcpy(done.token, a->token);
	assert_int_equal(reached_encode(&reached, &json), 0);
	r = put(a, "reached", json);
	for (size_t t = 0; r == 0 && t < boot->n_trials; t++)
		if (todo[t])
			r = put_trial(a, &boot->trials[t]);
	if (r < 0)
		return r;
	assert_int_equal(done_encode(&done, &json), 0);
	r = put(a, "done", json);
	return r < 0 ? r : arm_next(a->boot);
}

/* recount-init: a token that is not the open attempt's runs nothing. */
static int worker(const char *token)
{
	struct attempt_record armed;
	struct campaign *c = NULL;
	unsigned boot, attempt;
	int todo[8] = {0}, is_it;

	assert_int_equal(campaign_load(world.store, world.plan, NULL, &c), 0);
	is_it = campaign_open_attempt(c, &boot, &attempt);
	if (is_it) {
		armed = c->boots[boot].attempts[attempt - 1].armed;
		is_it = !strcmp(armed.token, token);
	}
	for (size_t t = 0; is_it && t < world.plan->boots[boot].n_trials; t++)
		todo[t] = !campaign_cell_record(c, boot, world.plan->boots[boot].trials[t].trial);
	campaign_free(c);
	return is_it ? serve(&armed, todo) : 0;
}

/* The report goes to standard output, which is the test's. */
static int mute(void)
{
	int kept;

	fflush(stdout);
	kept = dup(STDOUT_FILENO);
	assert_non_null(freopen("/dev/null", "w", stdout));
	return kept;
}

static void unmute(int kept)
{
	fflush(stdout);
	dup2(kept, STDOUT_FILENO);
	close(kept);
}

static int end_campaign(struct settle *s)
{
	int kept = mute(), r = settle_report(s, "");

	unmute(kept);
	if (r == 0)
		r = oneshot_disarm(world.env);
	return r == 0 ? store_deactivate(world.store) : r;
}

static int referee(void)
{
	struct settle s = {.store = world.store,
			   .store_dir = world.dir,
			   .root = "/nowhere",
			   .plan = world.plan,
			   .plan_sha256 = world.sha256};
	struct referee_finding f;
	enum referee_step step;
	char token[RECORD_TOKEN];
	unsigned boot, attempt;
	int r = settle_load(&s);

	if (r == 0)
		r = settle_open(&s, "", &f);
	if (r == 0) {
		step = settle_next(&s, &f, world.plan->default_uname, 0, &boot, &attempt);
		assert_int_not_equal(step, REFEREE_WAIT);
		if (step != REFEREE_ARM)
			r = end_campaign(&s);
		else if (f.verdict == REFEREE_REARM)
			r = settle_rearmed(&s, boot, attempt, REARMS);
		if (r == 0 && step == REFEREE_ARM)
			r = arm_boot(world.store, world.dir, world.plan, world.sha256, boot,
				     attempt, token, NULL);
	}
	settle_clear(&s);
	return r;
}

/* From one firmware to the next. 1: the campaign is over. */
static int boot_once(void)
{
	char token[RECORD_TOKEN] = "", id[STORE_ID];
	int r = grub(token);

	if (r > 0)
		r = worker(token);
	else if (r == 0 && store_active(world.store, id) == -ENOENT)
		r = 1;
	else if (r == 0)
		r = referee();
	if (r < 0 && !is_off())
		fail_msg("boot failed without a power cut: %d", r);
	return r;
}

/* --- a campaign ------------------------------------------------------------------------------- */

static void set_up(void)
{
	char path[256], *json, token[RECORD_TOKEN];
	size_t len;

	memset(&world, 0, sizeof(world));
	power.dies_at = NEVER;
	sample_folder(world.dir);
	snprintf(world.env, sizeof(world.env), "%s/grub/grubenv", world.dir);
	world.plan = sample_plan();
	assert_int_equal(store_open(world.dir, &world.store), 0);
	assert_int_equal(plan_encode(world.plan, &json, &len), 0);
	digest_bytes(json, len, world.sha256);
	snprintf(path, sizeof(path), "campaigns/%s/plan.json", world.plan->id);
	assert_int_equal(store_put(world.store, path, json, len), 0);
	free(json);
	assert_int_equal(store_activate(world.store, world.plan->id), 0);
	/* `recount start` makes the folder and arms the canary. */
	assert_int_equal(
		arm_boot(world.store, world.dir, world.plan, world.sha256, 0, 1, token, NULL), 0);
}

static void tear_down(size_t n_boots)
{
	store_close(world.store);
	world.plan->n_boots = n_boots;
	plan_free(world.plan);
	sample_folder_remove(world.dir);
}

struct hit { /* what a cut has found */
	int open, taken;
	unsigned boot, attempt;
};

static struct hit look(void)
{
	struct campaign *c = NULL;
	struct oneshot_state s = {0};
	struct hit h = {0};

	assert_int_equal(campaign_load(world.store, world.plan, NULL, &c), 0);
	assert_int_equal(c->damaged, 0);
	h.open = campaign_open_attempt(c, &h.boot, &h.attempt);
	if (oneshot_read(world.env, &s) == 0 && h.open)
		h.taken = !strcmp(s.taken, c->boots[h.boot].attempts[h.attempt - 1].armed.token);
	campaign_free(c);
	return h;
}

static int is_lost(const struct hit *h, unsigned boot, unsigned attempt)
{
	return h->open && h->taken && h->boot == boot && h->attempt == attempt;
}

/* What the store says at the end, with what was acknowledged and what the cut may have cost. */
static void judge(const struct hit *h, int n)
{
	struct campaign *c = NULL;
	unsigned boot, a, trial;

	assert_int_equal(campaign_load(world.store, world.plan, NULL, &c), 0);
	assert_int_equal(c->damaged, 0);
	for (boot = 0; boot < BOOTS; boot++) {
		const struct boot_state *b = &c->boots[boot];

		for (a = 1; a <= b->n_attempts; a++)
			if (b->attempts[a - 1].failed && !is_lost(h, boot, a))
				fail_msg("cut at call %d: boot %u, attempt %u is booked as %s", n,
					 boot, a, b->attempts[a - 1].failure.reason);
		for (trial = 1; trial <= world.plan->boots[boot].n_trials; trial++) {
			const struct trial_record *r = campaign_cell_record(c, boot, trial);

			if (!r || (world.done[boot][trial] &&
				   r->attempt > (unsigned)world.done[boot][trial]))
				fail_msg("cut at call %d: trial %u of boot %u is lost", n, trial,
					 boot);
		}
	}
	campaign_free(c);
}

/* 1 when the campaign was over before its @n-th call. */
static int run(int n, enum last last, int *lost)
{
	struct hit h = {0};
	size_t n_boots;
	int steps, over = 0, was_cut = 0;

	set_up();
	n_boots = world.plan->n_boots;
	world.plan->n_boots = BOOTS;
	power.calls = 0;
	power.dies_at = n;
	power.last = last;
	for (steps = 0; over != 1 && steps < STEPS; steps++) {
		over = boot_once();
		if (!is_off())
			continue;
		was_cut = 1;
		power.dies_at = NEVER;
		over = 0;
		h = look();
	}
	if (over != 1)
		fail_msg("cut at call %d: the campaign does not end", n);
	judge(&h, n);
	*lost += h.open && h.taken;
	tear_down(n_boots);
	return !was_cut;
}

static void a_power_cut_at_every_call_of_a_campaign(void **state)
{
	int n, calls[LAST_ALL] = {0}, lost = 0;

	(void)state;
	log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
	for (enum last last = LAST_NOTHING; last < LAST_ALL; last++) {
		for (n = 1; !run(n, last, &lost); n++)
			;
		calls[last] = n - 1;
	}
	/* Three boots, and in each eight files of at least five calls. */
	assert_true(calls[LAST_NOTHING] > 100);
	assert_int_equal(calls[LAST_HALF], calls[LAST_NOTHING]);
	assert_true(lost > 50 && lost < calls[LAST_NOTHING] * LAST_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_power_cut_at_every_call_of_a_campaign),
	};

	return cmocka_run_group_tests_name("cycle", tests, NULL, NULL);
}
