/* SPDX-License-Identifier: GPL-3.0-or-later */
/* recount referee: run by systemd at every normal boot while a campaign is active. */
#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "initramfs/cmdline.h"
#include "results/log.h"
#include "runner/arm.h"
#include "runner/install.h"
#include "runner/machine.h"
#include "runner/packages.h"
#include "runner/service.h"
#include "runner/settle.h"

#define STORE_WAIT_S	60 /* for a disk that appears late */
#define STORE_POLL_S	2
#define PACKAGES_POLL_S 10

enum course {
	COURSE_FAILED,	/* something could not be done; nothing is armed */
	COURSE_REFUSED, /* there is no one store to be read; nothing was changed */
	COURSE_ENDED,	/* nothing is to be done in this boot */
	COURSE_HOME,	/* reboot into the default */
	COURSE_BOOT,	/* arm, then reboot */
};

struct referee {
	const struct options *options;
	const struct machine *machine;
	char id[STORE_ID];
	struct plan *plan;
	char plan_sha256[PLAN_SHA256];
	unsigned boot, attempt; /* to be armed */
	int again;		/* it was armed before and GRUB did not take it */
};

static void wait_s(unsigned seconds)
{
	struct timespec t = {.tv_sec = seconds};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

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
		wait_s(STORE_POLL_S);
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
static enum course end_campaign(struct referee *f, struct settle *s, enum referee_step step)
{
	enum course course = settle_report(s, step) < 0 ? COURSE_FAILED : COURSE_ENDED;
	int r;

	if (step != REFEREE_COMPLETE)
		log_info("%s %s", f->id, referee_why(step));
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

static enum course decide(struct referee *f, struct settle *s, const char *token)
{
	struct referee_finding finding = {0};
	enum referee_step step;

	if (settle_load(s) < 0 || settle_open(s, token, &finding) < 0)
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
	if (step == REFEREE_WAIT)
		return ask_person(f, "the last boot ended long ago, so a person must have come");
	if (step != REFEREE_ARM)
		return end_campaign(f, s, step);
	f->again = finding.verdict == REFEREE_REARM;
	if (f->again)
		log_info("boot %u, attempt %u: GRUB never took it; it is armed again", f->boot,
			 f->attempt);
	return COURSE_BOOT;
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
	int r = store_active(store, f->id);

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
	return decide(f, &s, token);
}

static void await_packages(const char *root)
{
	const char *lock = packages_lock_held(root), *said = NULL;

	for (; lock; lock = packages_lock_held(root)) {
		if (lock != said)
			log_info("waiting for the package manager that holds %s", lock);
		said = lock;
		wait_s(PACKAGES_POLL_S);
	}
}

/* The store is not mounted meanwhile: `recount stop` must find it free. */
static void give_notice(const struct referee *f, enum course course)
{
	char text[320];

	if (course == COURSE_BOOT)
		snprintf(text, sizeof(text),
			 "recount %s: boot %u of %zu (%s, attempt %u) begins in %u s; `recount "
			 "stop` leaves the machine as it is",
			 f->id, f->boot, f->plan->n_boots - 1, f->plan->boots[f->boot].entry,
			 f->attempt, f->options->notice_s);
	else
		snprintf(text, sizeof(text),
			 "recount %s: reboots into the machine's default in %u s", f->id,
			 f->options->notice_s);
	log_info("%s", text);
	if (f->options->notice_s == 0)
		return;
	if (!*f->machine->root)
		service_tell(text);
	wait_s(f->options->notice_s);
}

/* With the store open again: it may not be the same campaign any more. */
static enum course arm(struct referee *f, struct store *store)
{
	struct settle s = {.store = store, .plan = f->plan};
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
		r = arm_boot(store, STORE_DIR, f->plan, f->plan_sha256, f->boot, f->attempt, token);
	return r < 0 ? COURSE_FAILED : COURSE_BOOT;
}

static enum course with_store(struct referee *f,
			      enum course (*step)(struct referee *f, struct store *store))
{
	_cleanup_close_ int lock = -1;
	struct store *store;
	enum course course;
	int r;

	/* Whoever has it will be done in a moment: a `stop`, most likely, which is then obeyed. */
	if (machine_lock(f->machine, "referee", LOCK_EX, &lock) < 0)
		return COURSE_FAILED;
	r = machine_open_store(f->machine, &store);
	if (r < 0)
		return machine_open_exit(r) == EXIT_REFUSED ? COURSE_REFUSED : COURSE_FAILED;
	course = step(f, store);
	return machine_close_store(store) < 0 ? COURSE_FAILED : course;
}

static enum course disarm(struct referee *f, struct store *store)
{
	(void)f;
	(void)store;
	return oneshot_disarm(STORE_DIR "/grub/grubenv") < 0 ? COURSE_FAILED : COURSE_ENDED;
}

static int exit_code(enum course course)
{
	return course == COURSE_FAILED	  ? EXIT_FAILED
	       : course == COURSE_REFUSED ? EXIT_REFUSED
					  : EXIT_DONE;
}

/* Exit code. */
static int go(struct referee *f, enum course course)
{
	int live = !*f->machine->root;

	if (live)
		service_stop_timers();
	await_packages(f->machine->root);
	give_notice(f, course);
	if (course == COURSE_BOOT)
		course = with_store(f, arm);
	if (course != COURSE_BOOT && course != COURSE_HOME)
		return exit_code(course);
	if (!live || f->options->no_reboot) {
		log_info("the reboot is left to you");
		return EXIT_DONE;
	}
	if (service_reboot() == 0)
		return EXIT_DONE;
	/* Armed and not rebooted, the next reboot of anyone would be a surprise. */
	if (course == COURSE_BOOT && with_store(f, disarm) != COURSE_ENDED)
		log_warn("%s stays armed", f->id);
	return EXIT_FAILED;
}

int verb_referee(const struct options *o)
{
	_cleanup_(cleanup_machine) struct machine *m = NULL;
	struct referee f = {.options = o};
	enum course course;
	int code;

	await_store(o->root);
	if (machine_read_devices(o, &m) < 0)
		return EXIT_FAILED;
	f.machine = m;
	course = with_store(&f, judge);
	if (course == COURSE_BOOT || course == COURSE_HOME)
		code = go(&f, course);
	else
		code = exit_code(course);
	plan_free(f.plan);
	return code;
}
