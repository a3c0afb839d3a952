/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The hardware (or soft) watchdog, Documentation/watchdog/watchdog-api.rst: opened by PID 1 as soon
 * as a driver is there, petted only while the boot makes progress, and left running through the
 * reboot, so that a reboot that hangs is cured too.
 */
#ifndef RECOUNT_RUNNER_WATCHDOG_H
#define RECOUNT_RUNNER_WATCHDOG_H

#include "results/macro.h"

#define WATCHDOG_TIMEOUT_S 300 /* the longest that is asked for */

/* Opens /dev/watchdog and sets its longest timeout up to WATCHDOG_TIMEOUT_S. What the driver
 * really took, in seconds, into @timeout_s. A descriptor, or -ENOENT (no watchdog), -EBUSY … */
int watchdog_open(int *timeout_s) _must_check_;

void watchdog_pet(int fd);

#endif
