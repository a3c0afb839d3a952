/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The hardware (or soft) watchdog, Documentation/watchdog/watchdog-api.rst: opened as soon as a
 * driver is there, petted only while the boot makes progress, and left running through the reboot,
 * so that a reboot that hangs is cured too. A driver may wait for its hardware (IPMI does), so a
 * thread of PID 1 has it: PID 1 itself must not wait.
 */
#ifndef RECOUNT_RUNNER_WATCHDOG_H
#define RECOUNT_RUNNER_WATCHDOG_H

#include <semaphore.h>
#include <stdatomic.h>

#include "results/macro.h"

#define WATCHDOG_TIMEOUT_S 300 /* the longest that is asked for */

struct watchdog {
	sem_t turn;
	_Atomic int timeout_s; /* what the driver really took; 0: not open (yet) */
};

/* Starts the thread. @w lives as long as the process. */
int watchdog_start(struct watchdog *w) _must_check_;

/* Lets the thread open /dev/watchdog, at its longest time up to WATCHDOG_TIMEOUT_S, or pet it. Who
 * stops to call this lets the machine be reset. Never blocks. */
void watchdog_turn(struct watchdog *w);

#endif
