/* SPDX-License-Identifier: GPL-3.0-or-later */
/* recount referee: run by systemd at every normal boot while a campaign is active. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>

#include "initramfs/cmdline.h"
#include "results/log.h"
#include "runner/arm.h"
#include "runner/bmc.h"
#include "runner/bmc_home.h"
#include "runner/disarm.h"
#include "runner/install.h"
#include "runner/launch.h"
#include "runner/machine.h"
#include "runner/pause.h"
#include "runner/postpone.h"
#include "runner/service.h"
#include "runner/settle.h"
#include "runner/unchanged.h"

#define STORE_WAIT_S   60 /* for a disk that appears late */
#define STORE_POLL_S   2
#define BMC_SPARE_S    30 /* a clock is not another */
#define REBOOT_TRIES   3
#define REBOOT_AGAIN_S 60

enum course {
	COURSE_FAILED,	/* something could not be done; nothing is armed */
	COURSE_REFUSED, /* there is no one store to be read; nothing was changed */
	COURSE_ENDED,	/* nothing is to be done in this boot */
	COURSE_HOME,	/* reboot into the default */
	COURSE_BOOT,	/* arm, then reboot */
	COURSE_AGAIN,	/* the reboot was refused */
};

struct referee {
	const struct options *options;
	const struct machine *machine;
	char id[STORE_ID];
	struct plan *plan;
	char plan_sha256[PLAN_SHA256];
	unsigned boot, attempt; /* to be armed */
	int again;		/* it was armed before and GRUB did not take it */
	unsigned bmc_s;		/* for how long the BMC's watchdog is to be armed with it */
	int bmc_settled;	/* what another boot has left of it */
};

/* The referee runs early, and a store on a slow bus may not be there yet. */
static void await_store(const char *root)
{
	unsigned waited_s;

	for (waited_s = 0; waited_s < STORE_WAIT_S && !*root; waited_s += STORE_POLL_S) {
		struct device_list list = {0};
		const struct device *d;
		int r = devices_scan(root, &list);

		if (r == 0)
			r = devices_by_label(&list, MACHINE_STORE_LABEL, &d);
		device_list_free(&list);
		if (r != -ENOENT)
			return;
		pause_ms(STORE_POLL_S * 1000);
	}
}

static enum course clean_up(const struct referee *f)
{
	if (!install_outside_present(f->machine->root))
		return COURSE_ENDED;
	log_info("no campaign is active: removing what an earlier one left outside the store");
	if (install_outside_remove(f->machine->root) < 0)
		return COURSE_FAILED;
	if (!*f->machine->root)
		service_reload();
	return COURSE_ENDED;
}

/* `active` goes before what is installed outside: whatever is left then, the next referee removes.
 */
static enum course end_campaign(struct referee *f, struct settle *s,
				const struct referee_finding *finding, enum referee_step step)
{
	_cleanup_free_ char *why = NULL;
	enum course course = COURSE_ENDED;
	int r;

	if (referee_explain(s->campaign, step, finding, f->machine->uname, &why) < 0 ||
	    settle_report(s, why) < 0)
		course = COURSE_FAILED;
	if (why && *why)
		log_info("%s %s", f->id, why);
	r = oneshot_disarm(STORE_DIR "/grub/grubenv");
	if (r < 0)
		log_errno(r, "clear the one-shot key");
	r = store_deactivate(s->store);
	if (r < 0) {
		log_errno(r, "end campaign %s", f->id);
		return COURSE_FAILED;
	}
	if (install_outside_remove(s->root) < 0)
		return COURSE_FAILED;
	if (!*s->root)
		service_reload();
	log_info("campaign %s is over: recount report %s", f->id, f->id);
	return course;
}

static enum course ask_person(const struct referee *f, const char *why)
{
	log_info("%s waits: %s. Nothing is armed. recount resume goes on, recount stop ends it",
		 f->id, why);
	return COURSE_ENDED;
}

/* What a boot would need, but for the kernels: those were looked at one by one. */
static enum course check_needs(const struct referee *f, const struct settle *s)
{
	const struct machine *m = f->machine;
	const char *missing, *which;
	char why[256];
	size_t i;
	int r;

	for (i = 0; i < m->devices.n; i++) {
		if (!device_is_hibernated(&m->devices.devices[i]))
			continue;
		snprintf(why, sizeof(why),
			 "%s holds a hibernated system, which a boot of another kernel would "
			 "destroy",
			 m->devices.devices[i].path + strlen(m->root));
		return ask_person(f, why);
	}
	missing = install_missing(m->root, STORE_DIR);
	if (missing) {
		snprintf(why, sizeof(why), "%s is missing", missing);
		return ask_person(f, why);
	}
	r = unchanged_toolchain(m->root, s->plan, &which);
	if (r < 0)
		return COURSE_FAILED;
	if (r == 0)
		return COURSE_BOOT;
	log_info("%s waits: figures from another %s could not be compared. Nothing is armed. Put "
		 "the planned one back and reboot, or recount stop and then recount start",
		 f->id, which);
	return COURSE_ENDED;
}

static enum course decide(struct referee *f, struct settle *s, const char *token)
{
	struct referee_finding finding = {0};
	enum referee_step step;
	enum course course;
	unsigned bmc_s;

	if (settle_load(s) < 0)
		return COURSE_FAILED;
	bmc_s = bmc_home_armed_s(s->campaign);
	if (!*f->machine->root && bmc_s)
		(void)bmc_home_stop(bmc_s);
	f->bmc_settled = 1;
	if (settle_open(s, token, &finding) < 0)
		return COURSE_FAILED;
	if (finding.verdict == REFEREE_GO_HOME)
		return COURSE_HOME;
	if (finding.verdict == REFEREE_STAY) {
		log_info("this boot is one of recount's own, but not one that is waited for: "
			 "nothing is armed; reboot to go on");
		return COURSE_ENDED;
	}
	if (settle_changed(s, &finding) < 0)
		return COURSE_FAILED;
	step = settle_next(s, &finding, f->machine->uname, 0, &f->boot, &f->attempt);
	if (referee_waits_for(step))
		return ask_person(f, referee_waits_for(step));
	if (step != REFEREE_ARM)
		return end_campaign(f, s, &finding, step);
	course = check_needs(f, s);
	f->again = finding.verdict == REFEREE_REARM;
	if (course == COURSE_BOOT && f->again)
		log_info("boot %u, attempt %u: GRUB never took it; it is armed again", f->boot,
			 f->attempt);
	return course;
}

/* With the store open. */
static enum course judge(struct referee *f, struct store *store)
{
	_cleanup_(settle_clear) struct settle s = {
		.store = store,
		.store_dir = STORE_DIR,
		.root = f->machine->root,
	};
	char token[RECORD_TOKEN] = "";
	const char *why = NULL;
	enum course course;
	/* Until the very last step nothing is armed: a person who reboots while the referee waits
	 * gets the machine's default. What GRUB took of the key stays. */
	int disarmed = disarm(f->machine->root, STORE_DIR), r = store_active(store, f->id);

	if (r == -ENOENT)
		return clean_up(f);
	if (r < 0) {
		log_errno(r, "read which campaign is active; recount stop ends it");
		return COURSE_FAILED;
	}
	r = store_plan(store, f->id, &f->plan, f->plan_sha256, &why);
	if (r < 0) {
		log_errno(r, "read campaigns/%s/plan.json%s%s%s", f->id,
			  why ? " (damaged or cut short, at " : "", why ? why : "", why ? ")" : "");
		return COURSE_FAILED;
	}
	s.plan = f->plan;
	s.plan_sha256 = f->plan_sha256;
	if (f->machine->cmdline &&
	    cmdline_get(f->machine->cmdline, "recount.token", token, sizeof(token)) < 0)
		token[0] = '\0';
	course = decide(f, &s, token);
	if (disarmed != 0)
		course = COURSE_FAILED;
	if (course == COURSE_FAILED && s.campaign && disarm_is_unwritable(STORE_DIR))
		settle_last_words(&s);
	return course;
}

/* With the store open again: it may not be the same campaign any more. */
static enum course arm(struct referee *f, struct store *store)
{
	_cleanup_(settle_clear) struct settle s = {
		.store = store,
		.store_dir = STORE_DIR,
		.root = f->machine->root,
		.plan = f->plan,
		.plan_sha256 = f->plan_sha256,
	};
	char active[STORE_ID], token[RECORD_TOKEN];
	int r;

	r = store_active(store, active);
	if (r == -ENOENT || (r == 0 && strcmp(active, f->id) != 0)) {
		log_info("%s was stopped; nothing is armed", f->id);
		return COURSE_ENDED;
	}
	if (r < 0) {
		log_errno(r, "read the active campaign");
		return COURSE_FAILED;
	}
	r = f->again ? settle_rearmed(&s, f->boot, f->attempt, REFEREE_REARMS_MAX) : 0;
	if (r == -ETIME)
		return ask_person(f, "GRUB did not take its one-shot again and again");
	if (r == 0)
		r = arm_boot(store, STORE_DIR, f->plan, f->plan_sha256, f->boot, f->attempt, token,
			     launch_reboots(f->options) ? &f->bmc_s : NULL);
	if (r == 0)
		return COURSE_BOOT;
	if (disarm(f->machine->root, STORE_DIR) < 0)
		log_warn("%s may be armed", f->id);
	if (disarm_is_unwritable(STORE_DIR) && settle_load(&s) == 0)
		settle_last_words(&s);
	return COURSE_FAILED;
}

/* A store that cannot be written can perhaps be read. */
static void tell_unwritable(struct referee *f)
{
	_cleanup_(settle_clear) struct settle s = {.root = f->machine->root};

	if (machine_peek_store(f->machine, &s.store) < 0)
		return;
	if (store_active(s.store, f->id) == 0 &&
	    store_plan(s.store, f->id, &f->plan, f->plan_sha256, NULL) == 0) {
		s.plan = f->plan;
		if (settle_load(&s) == 0)
			settle_last_words(&s);
	}
	if (disarm(f->machine->root, STORE_DIR) < 0)
		log_warn("%s may be armed", f->id);
	if (machine_close_store(s.store) < 0)
		log_warn("the store stays mounted");
}

/* Whoever has it will be done in a moment: a `stop`, most likely, which is then obeyed. */
static int take_lock(const struct referee *f, int *lock)
{
	return machine_lock(f->machine, MACHINE_REFEREE, LOCK_EX, lock);
}

/* With the lock. */
static enum course with_store(struct referee *f,
			      enum course (*step)(struct referee *f, struct store *store))
{
	struct store *store;
	enum course course;
	int r;

	r = machine_open_store(f->machine, &store);
	if (r < 0 && machine_open_exit(r) == EXIT_REFUSED)
		return COURSE_REFUSED;
	if (r < 0) {
		tell_unwritable(f);
		return COURSE_FAILED;
	}
	course = step(f, store);
	return machine_close_store(store) < 0 ? COURSE_FAILED : course;
}

static enum course take_back(struct referee *f, struct store *store)
{
	(void)store;
	return disarm(f->machine->root, STORE_DIR) < 0 ? COURSE_FAILED : COURSE_ENDED;
}

static int exit_code(enum course course)
{
	return course == COURSE_FAILED || course == COURSE_AGAIN ? EXIT_FAILED
	       : course == COURSE_REFUSED			 ? EXIT_REFUSED
								 : EXIT_DONE;
}

/* Waits until nobody minds. @course: now. */
static enum course announce(struct referee *f, enum course course)
{
	char who[STORE_ID + 16], what[160];
	struct postpone p = {.root = f->machine->root,
			     .who = who,
			     .what = what,
			     .notice_s = f->options->notice_s};
	unsigned left_s = *f->machine->root || course != COURSE_BOOT ? 0 : bmc_home_left_s(0);

	/* The next boot would be reset by what another has left counting. */
	if (left_s)
		p.after_s = left_s + BMC_SPARE_S;
	snprintf(who, sizeof(who), "recount %s", f->id);
	if (course == COURSE_BOOT)
		snprintf(what, sizeof(what), "boot %u of %zu (%s, attempt %u) begins", f->boot,
			 f->plan->n_boots - 1, f->plan->boots[f->boot].entry, f->attempt);
	else
		snprintf(what, sizeof(what), "reboots into the machine's default");
	if (!postpone(&p)) {
		log_info("%s was stopped; nothing is armed", f->id);
		return COURSE_ENDED;
	}
	return course;
}

/* @wanted: the machine goes down. */
static enum course arm_and_reboot(struct referee *f, enum course wanted)
{
	enum course course = wanted == COURSE_BOOT ? with_store(f, arm) : wanted;

	if (course != wanted)
		return course;
	if (!launch_reboots(f->options)) {
		log_info("the reboot is left to you");
		return COURSE_ENDED;
	}
	if (bmc_home_reboot(wanted == COURSE_BOOT ? f->bmc_s : 0) == 0)
		return wanted;
	/* Armed and not rebooted, the next reboot of anyone would be a surprise. */
	if (wanted == COURSE_BOOT && with_store(f, take_back) != COURSE_ENDED)
		log_warn("%s stays armed", f->id);
	return COURSE_AGAIN;
}

/*
 * With the lock from the first to the last, or a `stop` could come between the key and the BMC's
 * watchdog, and find nothing to stop; and so that whoever ends this process finds all of it done or
 * nothing.
 */
static enum course set_off(struct referee *f, enum course wanted)
{
	_cleanup_close_ int lock = -1;
	enum course course;
	sigset_t term;

	if (take_lock(f, &lock) < 0)
		return COURSE_FAILED;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	course = arm_and_reboot(f, wanted);
	sigprocmask(SIG_UNBLOCK, &term, NULL);
	return course;
}

/* Exit code. */
static int go(struct referee *f, enum course wanted)
{
	int live = !*f->machine->root, try;
	enum course course;

	if (live)
		service_stop_timers();
	for (try = 1;; try++) {
		course = announce(f, wanted);
		if (course == wanted)
			course = set_off(f, wanted);
		if (course != COURSE_AGAIN || try == REBOOT_TRIES)
			break;
		log_info("it is tried again in %u s", REBOOT_AGAIN_S);
		pause_ms(REBOOT_AGAIN_S * 1000);
	}
	if (course == wanted)
		return EXIT_DONE;
	if (live)
		service_untell(SERVICE_NOTICE);
	return exit_code(course);
}

static enum course look(struct referee *f)
{
	_cleanup_close_ int lock = -1;

	return take_lock(f, &lock) < 0 ? COURSE_FAILED : with_store(f, judge);
}

/* What is announced to those who log in must not outlive the one who announces it. */
static void on_term(int signal)
{
	unlink(SERVICE_NOTICE);
	_exit(128 + signal);
}

int verb_referee(const struct options *o)
{
	_cleanup_(cleanup_machine) struct machine *m = NULL;
	struct referee f = {.options = o, .bmc_settled = 1};
	enum course course;
	int code;

	if (!*o->root) {
		signal(SIGTERM, on_term);
		/* A timer of ours may be counting, whatever the rest is like. */
		if (o->bmc)
			f.bmc_settled = bmc_home_load() && bmc_stop("") == 0;
	}
	await_store(o->root);
	if (machine_read_devices(o, &m) < 0)
		return EXIT_FAILED;
	f.machine = m;
	course = look(&f);
	/* Where the store does not tell for how long it was armed: the longest. */
	if (!f.bmc_settled)
		(void)bmc_home_stop(BMC_ARM_S);
	if (course == COURSE_BOOT || course == COURSE_HOME)
		code = go(&f, course);
	else
		code = exit_code(course);
	plan_free(f.plan);
	return code;
}
