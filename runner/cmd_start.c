/* SPDX-License-Identifier: GPL-3.0-or-later */
/* recount start: check, plan, agree, install, arm, reboot. */
#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <time.h>

#include "results/digest.h"
#include "results/log.h"
#include "runner/amount.h"
#include "runner/check.h"
#include "runner/install.h"
#include "runner/launch.h"
#include "runner/planner.h"

#define DAY_CHARS 10 /* 2026-11-30 */

/* Is it 2026-11-30-a? */
static int is_dated(const char *id)
{
	static const char shape[] = "dddd-dd-dd-l";
	size_t i;

	for (i = 0; shape[i]; i++)
		if (shape[i] == 'd'   ? id[i] < '0' || id[i] > '9'
		    : shape[i] == 'l' ? id[i] < 'a' || id[i] > 'z'
				      : id[i] != shape[i])
			return 0;
	return id[i] == '\0';
}

/*
 * 2026-11-30-a, -b …: behind every other in the order of names, which is taken for that of time
 * (resume and report choose the last). A clock that has gone back gets the day of the last one.
 */
static int free_id(struct store *s, char id[STORE_ID])
{
	char **ids = NULL, day[16], letter = 'a';
	size_t n = 0, i;
	time_t now = time(NULL);
	struct tm tm;
	int r;

	r = store_campaigns(s, &ids, &n);
	if (r < 0)
		return log_errno(r, "list the campaigns");
	strftime(day, sizeof(day), "%Y-%m-%d", localtime_r(&now, &tm));
	for (i = n; i-- > 0 && !is_dated(ids[i]);)
		;
	if (i < n && strncmp(ids[i], day, DAY_CHARS) >= 0) {
		snprintf(day, sizeof(day), "%.*s", DAY_CHARS, ids[i]);
		letter = (char)(ids[i][DAY_CHARS + 1] + 1);
	}
	store_names_free(ids, n);
	if (letter > 'z')
		return log_errno(-EBUSY, "name a campaign: the store has one called %s-z", day);
	snprintf(id, STORE_ID, "%s-%c", day, letter);
	return 0;
}

static void end_of_day_text(int64_t ns, char text[32])
{
	time_t end = time(NULL) + ns / INT64_C(1000000000);
	struct tm tm;

	strftime(text, 32, ns > INT64_C(86400000000000) ? "%Y-%m-%d %H:%M" : "%H:%M",
		 localtime_r(&end, &tm));
}

static void print_summary(const struct plan *plan)
{
	unsigned kernels = 0, trials = 0, boots = 0;
	char length[AMOUNT_BYTES], end[32];
	size_t i;

	for (i = 0; i < plan->n_entries; i++)
		if (plan_is_compared(plan, plan->entries[i].label) && !plan->entries[i].twin_of)
			kernels++;
	for (i = 0; i < plan->n_boots; i++) {
		if (plan->boots[i].round == 0)
			continue;
		boots++;
		trials += plan->boots[i].n_trials;
	}
	printf("campaign %s: %u kernel%s", plan->id, kernels, kernels == 1 ? "" : "s");
	for (i = 0; i < plan->n_entries; i++)
		if (plan->entries[i].twin_of)
			printf(" + twin of %s", plan->entries[i].twin_of);
	printf(", %u round%s, %zu load%s = %u trial%s in %u boot%s (+1 trial boot)\n",
	       plan->rounds_max, plan->rounds_max == 1 ? "" : "s", plan->n_loads,
	       plan->n_loads == 1 ? "" : "s", trials, trials == 1 ? "" : "s", boots,
	       boots == 1 ? "" : "s");
	amount_duration(length, planner_estimate_ns(plan));
	end_of_day_text(planner_estimate_ns(plan), end);
	printf("about %s; ends about %s. Ctrl-C now, or `recount stop` at any normal boot, leaves "
	       "the machine as it is.\n",
	       length, end);
}

/* Checks and draws with the store read-only: a refusal has changed nothing. Exit code. */
static int draw(const struct options *o, const struct machine *m, struct plan **plan)
{
	struct prepared *prepared = NULL;
	struct store *s = NULL;
	char id[STORE_ID];
	struct findings f = {NULL, 0, 0};
	int r, code = EXIT_REFUSED;

	if (machine_may_open_store(m)) {
		r = machine_peek_store(m, &s);
		if (r < 0)
			return EXIT_REFUSED;
		r = prepared_load(s, &prepared);
		if (r < 0 && r != -ENOENT)
			log_errno(r, "read prepared/manifest.json on the store");
		check_active(&f, s);
	}
	check_machine(&f, o, m, s, prepared);
	if (f.obstacles || !s || !prepared) {
		log_info("refused; nothing was changed. `recount check` tells all");
	} else if (free_id(s, id) == 0) {
		r = planner_draw(o, m, prepared, id, plan);
		if (r == 0)
			code = EXIT_DONE;
		else if (r != -EINVAL)
			code = EXIT_FAILED;
	}
	prepared_free(prepared);
	if (s && machine_close_store(s) < 0 && code == EXIT_DONE)
		code = EXIT_FAILED;
	return code;
}

static int has_space(const struct plan *plan, size_t archive_len)
{
	uint64_t need = launch_store_bytes(plan, archive_len), there;
	char need_text[AMOUNT_BYTES], there_text[AMOUNT_BYTES];
	struct statvfs fs;

	if (statvfs(STORE_DIR, &fs))
		return log_errno(-errno, "ask for the store's free space");
	there = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (there >= need)
		return 1;
	amount_size(need_text, need);
	amount_size(there_text, there);
	log_info("the store has %s free and this plan can need %s: plan fewer rounds, or take old "
		 "campaigns off the store",
		 there_text, need_text);
	return 0;
}

/* Writes the plan down and launches it; a failure leaves neither. */
static int launch(struct launch *l, const char *json, size_t json_len)
{
	char path[256], active[STORE_ID];
	int r, arming = 0;

	r = store_active(l->store, active);
	if (r != -ENOENT) {
		log_info("another campaign is active; see recount status, recount stop");
		return -EBUSY;
	}
	snprintf(path, sizeof(path), "campaigns/%s/plan.json", l->plan->id);
	r = store_put(l->store, path, json, json_len);
	if (r < 0)
		return log_errno(r, "write %s on the store", path);
	r = launch_install(l, &arming);
	if (r == 0 || arming)
		return r;
	if (store_remove(l->store, path) == 0) {
		snprintf(path, sizeof(path), STORE_DIR "/campaigns/%s", l->plan->id);
		rmdir(path);
	}
	return r;
}

/* Exit code. */
static int set_off(const struct options *o, const struct machine *m, const struct plan *plan,
		   unsigned *bmc_s)
{
	_cleanup_free_ void *archive = NULL;
	_cleanup_free_ char *json = NULL;
	struct launch l = {.options = o, .machine = m, .plan = plan, .boot = 0, .attempt = 1};
	char sha256[PLAN_SHA256];
	size_t json_len;
	int r, code;

	if (install_archive_build(&archive, &l.archive_len) < 0)
		return EXIT_FAILED;
	r = plan_encode(plan, &json, &json_len);
	if (r < 0) {
		log_errno(r, "write the plan as JSON");
		return EXIT_FAILED;
	}
	digest_bytes(json, json_len, sha256);
	l.plan_sha256 = sha256;
	l.archive = archive;
	l.bmc_s = launch_reboots(o) ? bmc_s : NULL;
	if (machine_open_store(m, &l.store) < 0)
		return EXIT_FAILED;
	r = has_space(plan, l.archive_len);
	if (r == 0)
		code = EXIT_REFUSED;
	else
		code = r < 0 || launch(&l, json, json_len) < 0 ? EXIT_FAILED : EXIT_DONE;
	if (machine_close_store(l.store) < 0) {
		/* The journal may hold what GRUB has to see. */
		log_info("the store could not be unmounted: do not reboot; recount stop");
		code = EXIT_FAILED;
	}
	return code;
}

int verb_start(const struct options *o)
{
	_cleanup_(cleanup_machine) struct machine *m = NULL;
	_cleanup_(cleanup_plan) struct plan *plan = NULL;
	_cleanup_close_ int lock = -1;
	unsigned bmc_s = 0;
	int r, code;

	if (!launch_bmc_is_quiet(o))
		return EXIT_REFUSED;
	if (machine_read(o, &m) < 0)
		return EXIT_FAILED;
	r = machine_lock(m, "start", LOCK_EX | LOCK_NB, &lock);
	if (r < 0)
		return r == -EBUSY ? EXIT_REFUSED : EXIT_FAILED;
	code = draw(o, m, &plan);
	if (code != EXIT_DONE)
		return code;
	print_summary(plan);
	r = launch_confirm(o, o->no_reboot ? "Install and arm it?" : "Reboot now?");
	if (r == -ENOTTY)
		return EXIT_REFUSED;
	if (r <= 0) {
		printf("nothing was changed\n");
		return EXIT_DONE;
	}
	code = set_off(o, m, plan, &bmc_s);
	return code == EXIT_DONE ? launch_reboot(o, plan->id, bmc_s) : code;
}
