/* SPDX-License-Identifier: GPL-3.0-or-later */
/* recount resume: goes on with a campaign that was stopped, or that waits for a person. */
#include <errno.h>
#include <string.h>
#include <sys/file.h>

#include "initramfs/cmdline.h"
#include "results/log.h"
#include "runner/check.h"
#include "runner/install.h"
#include "runner/launch.h"
#include "runner/settle.h"
#include "runner/unchanged.h"

#define RESUMES_MAX 99 /* of one attempt */

static int read_plan(struct store *s, const char *id, struct plan **plan, char sha256[PLAN_SHA256])
{
	const char *why = NULL;
	int r = store_plan(s, id, plan, sha256, &why);

	if (r < 0)
		log_errno(r, "read campaigns/%s/plan.json on the store%s%s%s", id,
			  why ? " (damaged or cut short, at " : "", why ? why : "", why ? ")" : "");
	return r;
}

/* 1 unfinished, 0 over; -errno: not known, which is logged. */
static int is_unfinished(struct store *s, const char *id)
{
	_cleanup_(cleanup_plan) struct plan *plan = NULL;
	_cleanup_(cleanup_campaign) struct campaign *c = NULL;
	unsigned boot, attempt;
	int r = read_plan(s, id, &plan, NULL);

	if (r < 0)
		return r;
	r = campaign_load(s, plan, NULL, &c);
	if (r < 0)
		return log_errno(r, "read campaign %s", id);
	return campaign_open_attempt(c, &boot, &attempt) ||
	       campaign_next(c, &boot, &attempt) == CAMPAIGN_BOOT;
}

/* The campaign named, else the active one, else the newest that is unfinished. */
static int choose(struct store *s, const char *wanted, char id[STORE_ID])
{
	char **ids = NULL, active[STORE_ID] = "";
	size_t n = 0;
	int r = store_active(s, active);

	if (r == 0 && wanted && strcmp(wanted, active) != 0) {
		log_info("%s is active; recount stop first", active);
		return -EBUSY;
	}
	if (r == 0 || wanted) {
		if (snprintf(id, STORE_ID, "%s", wanted ? wanted : active) >= STORE_ID)
			return log_errno(-ENAMETOOLONG, "find campaign %s", wanted);
		return 0;
	}
	r = store_campaigns(s, &ids, &n);
	if (r < 0)
		return log_errno(r, "list the campaigns");
	for (size_t i = n; r == 0 && i-- > 0;) {
		r = is_unfinished(s, ids[i]);
		snprintf(id, STORE_ID, "%s", ids[i]);
	}
	store_names_free(ids, n);
	if (r > 0)
		return 0;
	if (r == 0)
		log_info("no campaign on the store is unfinished; recount start begins one");
	else
		log_info("refused: whether %s is unfinished is not known; name the one to go on "
			 "with: recount resume ID (recount status lists them)",
			 id);
	return r == 0 ? -ENOENT : r;
}

static int is_unfinished_entry(const struct campaign *c, const char *label)
{
	size_t b, i;

	for (b = 0; b < c->plan->n_boots; b++) {
		const struct plan_boot *boot = &c->plan->boots[b];

		for (i = 0; i < boot->n_trials && !strcmp(boot->entry, label); i++)
			if (!campaign_cell_finished(c, boot->boot, boot->trials[i].trial))
				return 1;
	}
	return 0;
}

/* Figures of two kernels or compilers under one name would be worse than none. What is not booted
 * any more may change. */
static int is_unchanged(const struct machine *m, struct store *s, const struct plan *plan)
{
	_cleanup_(cleanup_campaign) struct campaign *c = NULL;
	const char *which;
	int same, r = campaign_load(s, plan, NULL, &c);
	size_t i;

	if (r < 0) {
		log_errno(r, "read campaign %s", plan->id);
		return 0;
	}
	same = unchanged_toolchain(m->root, plan, &which) == 0;
	for (i = 0; i < plan->n_entries; i++)
		if (is_unfinished_entry(c, plan->entries[i].label))
			same &= unchanged_entry(m->root, plan, &plan->entries[i]) == 0;
	if (!same)
		log_info("refused: this campaign cannot go on with other files; put them back, or "
			 "recount start begins a new one");
	return same;
}

/* The plan's swap partition may be another machine's by now, or reformatted. */
static int has_swap(const struct machine *m, const struct plan *plan)
{
	const struct device *d;

	if (!plan->swap_uuid)
		return 1;
	if (devices_by_uuid(&m->devices, plan->swap_uuid, &d) == 0 && !strcmp(d->type, "swap"))
		return 1;
	log_info("refused: the plan's swap partition is not found, UUID=%s; attach it, or give one "
		 "that UUID: mkswap -U %s DEV",
		 plan->swap_uuid, plan->swap_uuid);
	return 0;
}

/* The names of the plan's loads as --loads would have them. Owned by caller, free(). */
static char *join_loads(const struct plan *plan)
{
	char *text = NULL;
	size_t len, i;
	FILE *f = open_memstream(&text, &len);

	for (i = 0; f && i < plan->n_loads; i++)
		fprintf(f, "%s%s", i ? "," : "", plan->loads[i].name);
	if (f)
		fclose(f);
	return text;
}

/* Checks for what this plan needs, not for a new one's defaults. Exit code. */
static int check(const struct options *given, const struct machine *m, struct store *s,
		 const struct plan *plan)
{
	_cleanup_free_ char *loads = join_loads(plan);
	struct prepared *prepared = NULL;
	struct options o = *given;
	char token[RECORD_TOKEN];
	struct findings f = {NULL, 0, 0};
	int r;

	if (m->cmdline && cmdline_get(m->cmdline, "recount.token", token, sizeof(token)) == 0) {
		log_info("this is one of recount's own boots: reboot into the machine's default "
			 "first");
		return EXIT_REFUSED;
	}
	r = prepared_load(s, &prepared);
	if (r < 0 && r != -ENOENT)
		log_errno(r, "read prepared/manifest.json on the store");
	o.loads = loads;
	o.rounds = plan->rounds_max;
	check_machine(&f, &o, m, s, prepared);
	prepared_free(prepared);
	return f.obstacles ? EXIT_REFUSED : EXIT_DONE;
}

/* What to arm, as the referee would find; but a person who says `resume` has come already. */
static int find_next(struct settle *s, const struct machine *m, unsigned *boot, unsigned *attempt)
{
	_cleanup_free_ char *why = NULL;
	struct referee_finding finding = {0};
	enum referee_step step;
	int r = settle_load(s);

	if (r == 0)
		r = settle_open(s, "", &finding);
	if (r < 0)
		return r;
	step = settle_next(s, &finding, m->uname, 1, boot, attempt);
	if (step == REFEREE_ARM && finding.verdict == REFEREE_REARM)
		return settle_rearmed(s, *boot, *attempt, RESUMES_MAX);
	if (step == REFEREE_ARM)
		return 0;
	if (step == REFEREE_COMPLETE)
		log_info("%s is complete: recount report %s", s->plan->id, s->plan->id);
	else if (referee_explain(s->campaign, step, &finding, m->uname, &why) == 0)
		log_info("%s cannot go on: it %s", s->plan->id, why);
	return -ECANCELED;
}

/* Exit code. */
static int go_on(const struct options *o, const struct machine *m, struct launch *l)
{
	_cleanup_(settle_clear) struct settle settle = {
		.store = l->store,
		.store_dir = STORE_DIR,
		.root = m->root,
		.plan = l->plan,
		.plan_sha256 = l->plan_sha256,
	};
	_cleanup_free_ void *archive = NULL;
	int r;

	if (!is_unchanged(m, l->store, l->plan) || !has_swap(m, l->plan))
		return EXIT_REFUSED;
	r = launch_confirm(o, o->no_reboot ? "Install and arm it?" : "Reboot now?");
	if (r == -ENOTTY)
		return EXIT_REFUSED;
	if (r <= 0)
		return -1;
	r = find_next(&settle, m, &l->boot, &l->attempt);
	if (r < 0)
		return r == -ECANCELED ? EXIT_REFUSED : EXIT_FAILED;
	if (install_archive_build(&archive, &l->archive_len) < 0)
		return EXIT_FAILED;
	l->archive = archive;
	return launch_install(l, NULL) < 0 ? EXIT_FAILED : EXIT_DONE;
}

/* Exit code, or -1: the person said no. */
static int resume(const struct options *o, const struct machine *m, struct store *s,
		  char id[STORE_ID], unsigned *bmc_s)
{
	_cleanup_(cleanup_plan) struct plan *plan = NULL;
	char sha256[PLAN_SHA256];
	struct launch l = {.options = o, .machine = m, .store = s, .plan_sha256 = sha256};
	int r;

	if (choose(s, o->n_args ? o->args[0] : NULL, id) < 0)
		return EXIT_REFUSED;
	if (read_plan(s, id, &plan, sha256) < 0) {
		log_info("refused: no campaign can go on without its plan; recount stop ends it if "
			 "it is active, recount start begins a new one");
		return EXIT_REFUSED;
	}
	r = check(o, m, s, plan);
	if (r != EXIT_DONE)
		return r;
	l.plan = plan;
	l.bmc_s = launch_reboots(o) ? bmc_s : NULL;
	printf("campaign %s goes on\n", id);
	return go_on(o, m, &l);
}

int verb_resume(const struct options *o)
{
	_cleanup_(cleanup_machine) struct machine *m = NULL;
	_cleanup_close_ int lock = -1;
	struct store *s = NULL;
	struct findings f = {NULL, 0, 0};
	char id[STORE_ID];
	unsigned bmc_s = 0;
	int r, code;

	if (!launch_bmc_is_quiet(o))
		return EXIT_REFUSED;
	if (machine_read(o, &m) < 0)
		return EXIT_FAILED;
	if (!machine_may_open_store(m)) {
		check_machine(&f, o, m, NULL, NULL);
		log_info("refused; nothing was changed");
		return EXIT_REFUSED;
	}
	r = machine_lock(m, "resume", LOCK_EX | LOCK_NB, &lock);
	if (r < 0)
		return r == -EBUSY ? EXIT_REFUSED : EXIT_FAILED;
	if (machine_open_store(m, &s) < 0)
		return EXIT_FAILED;
	code = resume(o, m, s, id, &bmc_s);
	if (machine_close_store(s) < 0)
		return EXIT_FAILED;
	if (code < 0) {
		printf("nothing was changed\n");
		return EXIT_DONE;
	}
	return code == EXIT_DONE ? launch_reboot(o, id, bmc_s) : code;
}
