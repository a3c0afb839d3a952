/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The BMC's watchdog on the normal boot, where the referee takes it back: whatever has become of a
 * boot, its timer must not go off while people work.
 */
#ifndef RECOUNT_RUNNER_BMC_HOME_H
#define RECOUNT_RUNNER_BMC_HOME_H

#include "results/campaign.h"

/*
 * Stops the watchdog of a campaign that uses it; its drivers are loaded before
 * (service_load_bmc()). 0: it does not run for us. Where nothing can be said to the BMC, everybody
 * is told until when the timer of the last attempt may be counting (the notice stays, whatever
 * becomes of the campaign), and it returns for how many seconds from now: it was armed before this
 * kernel started. For the running machine only.
 */
unsigned bmc_home(const struct campaign *c);

#endif
