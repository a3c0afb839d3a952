/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Can a kernel stop the BMC's watchdog? One that cannot would be reset by it in its trials. */
#ifndef RECOUNT_RUNNER_BMC_KERNEL_H
#define RECOUNT_RUNNER_BMC_KERNEL_H

#include "results/macro.h"

/* The driver that kernel @version below @root lacks to reach the BMC, neither built in nor in its
 * /lib/modules; static. NULL: it lacks none. */
const char *bmc_kernel_lacks(const char *root, const char *version);

/* Why the watchdog of a BMC cannot be used on this machine, whatever the kernel, for people;
 * static, reads after "it is not used: ". @root: where /sys is. NULL: it can. */
const char *bmc_kernel_unfit(const char *root);

#endif
