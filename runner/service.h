/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is asked of the machine's service manager and of the people at its terminals. Every call
 * concerns the running machine: with --root nobody may call it.
 */
#ifndef RECOUNT_RUNNER_SERVICE_H
#define RECOUNT_RUNNER_SERVICE_H

#include "results/macro.h"

/* An ordinary `systemctl reboot`, never forced. Returns when it was accepted. Logs failures. */
int service_reboot(void) _must_check_;

/* Loads these modules (NULL-terminated, five at most). 1: all are there; 0: not, or not within a
 * minute. */
int service_modprobe(const char *const modules[]);

/* Stops the timers that would start package and trim jobs in this boot; they are back after the
 * next. Those that do not exist are passed over. */
void service_stop_timers(void);

/* Lets the service manager forget a unit whose file has gone. */
void service_reload(void);

/* What whoever logs in reads. For a signal handler, which may unlink(2) it but call nothing else.
 */
#define SERVICE_NOTICE "/run/motd.d/recount"

/* Prints @text on every terminal (wall), or on the console alone where there is no wall; whoever
 * logs in later reads it, too (pam_motd(8) shows /run/motd.d), until the next service_tell() of the
 * same file @notice, its service_untell() or a reboot. */
void service_tell(const char *notice, const char *text);
void service_untell(const char *notice);

/* The same of something that is over in @left_s. From then on, in this boot, service_told_s() knows
 * for how many seconds it lasts, in other processes as well; 0: it is over, or nothing is told. */
void service_tell_until(const char *notice, const char *text, unsigned left_s);
unsigned service_told_s(const char *notice);

#endif
