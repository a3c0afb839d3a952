/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The BMC's watchdog on the normal boot, where it is armed with a reboot and taken back: whatever
 * has become of a boot, its timer must not go off while people work. All concerns the running
 * machine.
 */
#ifndef RECOUNT_RUNNER_BMC_HOME_H
#define RECOUNT_RUNNER_BMC_HOME_H

#include "results/campaign.h"

/* What whoever logs in reads when a timer that nobody could stop may be counting, and until when.
 * It stays, whatever becomes of the campaign, until the timer is stopped or the machine reboots. */
#define BMC_HOME_NOTICE "/run/motd.d/recount-bmc"

/* Loads the drivers of /dev/ipmi0, which few systems do by themselves, and waits for the device;
 * more than a minute when a driver hangs. 1: it is there. */
int bmc_home_load(void);

/* service_reboot() with the watchdog armed for @bmc_s just before (0: left alone); it is stopped
 * again where the reboot is refused, or everybody is told. What the BMC does not do is logged and
 * keeps nobody from rebooting. Who ends this process by a signal finds all of it done or nothing.
 */
int bmc_home_reboot(unsigned bmc_s) _must_check_;

/* For how long the attempt that was armed last had the watchdog armed, if that may still be
 * counting; else 0. Pure. */
unsigned bmc_home_armed_s(const struct campaign *c);

/*
 * Stops what another boot has left; its drivers are loaded before (bmc_home_load()). 0: it does not
 * run for us. Where nothing can be said to the BMC, everybody is told until when a timer that was
 * armed for @armed_s, before this kernel started, may be counting, and it returns for how many
 * seconds from now.
 */
unsigned bmc_home_stop(unsigned armed_s);

/* For how many seconds a timer of which everybody was told may still be counting. It is tried once
 * more to stop it; with @uses_bmc also where nobody was told, as before the referee has come so
 * far. 0: none is, or it is stopped. */
unsigned bmc_home_left_s(int uses_bmc);

#endif
