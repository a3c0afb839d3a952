/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The person comes first: the referee's reboot waits for package managers, for programs that hold
 * off a shutdown and for people who are logged in, and is announced before it comes. Whoever comes
 * during the notice is waited for as well. The store must be closed meanwhile: `recount stop` has
 * to find it free.
 */
#ifndef RECOUNT_RUNNER_POSTPONE_H
#define RECOUNT_RUNNER_POSTPONE_H

#include "results/macro.h"

struct postpone {	  /* all borrowed */
	const char *root; /* "" on the running machine; else only package managers are asked */
	const char *who, *what; /* "recount 2026-11-30-a", "boot 3 of 12 begins": in what is said */
	unsigned notice_s;
	unsigned after_s; /* nothing is said or done before so many seconds are over */
};

/*
 * Returns 1 when after_s are over, the reboot may come and has been announced for notice_s; 0 when
 * recount was removed from the machine meanwhile (`recount stop`). Says on the console, to those
 * who are logged in and to those who log in what is waited for, once, and when it ends.
 */
int postpone(const struct postpone *p);

#endif
