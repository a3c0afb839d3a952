/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Waits until a reboot disturbs nobody, and announces it. */
#include "runner/postpone.h"

#include <errno.h>
#include <string.h>

#include "results/log.h"
#include "runner/install.h"
#include "runner/packages.h"
#include "runner/pause.h"
#include "runner/people.h"
#include "runner/service.h"

#define LOOK_S	      30 /* between two looks at what is waited for */
#define LOOK_NOTICE_S 5	 /* the same while the reboot is announced */
#define STOP_S	      1	 /* between two looks whether it was stopped */
#define WHY_MAX	      (PEOPLE_TEXT + 96)

static void say(const struct postpone *p, const char *text)
{
	if (!*p->root)
		service_tell(SERVICE_NOTICE, text);
	log_info("%s", text);
}

/* 1 with what is waited for in @why, for people. */
static int find_hold(const struct postpone *p, char why[WHY_MAX])
{
	const char *lock = packages_lock_held(p->root);
	char who[PEOPLE_TEXT];

	if (lock)
		snprintf(why, WHY_MAX, "for the package manager that holds %s", lock);
	else if (*p->root)
		return 0;
	else if (people_inhibit())
		snprintf(why, WHY_MAX,
			 "for a program that holds off a shutdown (systemd-inhibit --list)");
	else if (people_logged_in(who))
		snprintf(why, WHY_MAX, "until nobody is logged in: %s", who);
	else
		return 0;
	return 1;
}

/* 0: it was stopped meanwhile. */
static int wait_s(const struct postpone *p, unsigned seconds)
{
	unsigned i;

	for (i = 0; i < seconds; i += STOP_S) {
		if (!install_outside_present(p->root))
			return 0;
		pause_ms(STOP_S * 1000);
	}
	return install_outside_present(p->root);
}

/* Waits while something holds the reboot back. 0: it was stopped meanwhile. */
static int await_free(const struct postpone *p)
{
	char why[WHY_MAX], said[WHY_MAX] = "", text[2 * WHY_MAX];

	while (find_hold(p, why)) {
		if (strcmp(why, said) != 0) {
			snprintf(text, sizeof(text), "%s: %s, but waits %s. `recount stop` ends it",
				 p->who, p->what, why);
			say(p, text);
			memcpy(said, why, sizeof(said));
		}
		if (!wait_s(p, LOOK_S))
			return 0;
	}
	return 1;
}

/* 1 when the time is over, 0 when it was stopped, -EAGAIN when something came up. */
static int give_notice(const struct postpone *p)
{
	char text[WHY_MAX], why[WHY_MAX];
	unsigned left_s, step_s;

	snprintf(text, sizeof(text), "%s: %s in %u s; `recount stop` leaves the machine as it is",
		 p->who, p->what, p->notice_s);
	if (p->notice_s == 0) {
		log_info("%s", text);
		return 1;
	}
	say(p, text);
	for (left_s = p->notice_s; left_s; left_s -= step_s) {
		step_s = left_s < LOOK_NOTICE_S ? left_s : LOOK_NOTICE_S;
		if (!wait_s(p, step_s))
			return 0;
		if (find_hold(p, why))
			return -EAGAIN;
	}
	return 1;
}

int postpone(const struct postpone *p)
{
	int r;

	if (p->after_s && !wait_s(p, p->after_s))
		return 0;
	do
		r = await_free(p) ? give_notice(p) : 0;
	while (r == -EAGAIN);
	if (r == 0 && !*p->root)
		service_untell(SERVICE_NOTICE);
	return r;
}
