/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Who or what wants the running machine to stay up: people who are logged in, and programs with an
 * inhibitor lock. systemd-logind is asked through loginctl(1); where it does not answer, utmp(5)
 * tells who is logged in. Concerns the running machine only: with --root nobody may ask.
 */
#ifndef RECOUNT_RUNNER_PEOPLE_H
#define RECOUNT_RUNNER_PEOPLE_H

#include "results/macro.h"

#define PEOPLE_TEXT 128

/*
 * 1 when somebody is logged in, with "ann on tty1, bob on pts/0" in @who; else 0. A session counts
 * when it is one of a person (class "user…") and not being closed: neither greeters nor cron jobs
 * nor a getty that waits for a name, but a console that logs in by itself does.
 */
int people_logged_in(char who[PEOPLE_TEXT]);

/* 1 when a program holds a lock that blocks a shutdown (systemd-inhibit --mode=block); else 0, also
 * when logind does not answer. */
int people_inhibit(void);

#endif
