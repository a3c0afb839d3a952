/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which modules recount-init loads when: for the machine's disks, for its file systems, for its
 * frequency, heat, BMC and watchdog. Called by the worker; logs failures. */
#ifndef RECOUNT_RUNNER_DRIVERS_H
#define RECOUNT_RUNNER_DRIVERS_H

#include "initramfs/modules.h"
#include "runner/watch.h"

/* Loads what the hardware asks for from @prefix/lib/modules/RELEASE ("": the initrd's own). 0 also
 * when there is no such folder: everything may be built in. */
int drivers_load(struct watch *w, const char *prefix, enum modules_pass pass) _must_check_;

/* Loads the file system @name from the initrd. Where it is built in, or missing, the mount tells.
 */
void drivers_filesystem(const char *name);

/* What keeps the last words of a dying kernel, from @prefix: efi_pstore on an EFI machine, ramoops
 * where @cmdline gives it a place. Firmware's own (ERST) is always built in. */
void drivers_evidence(const char *prefix, const char *cmdline);

/* What reaches the BMC (bmc_modules), from @prefix. */
void drivers_bmc(struct watch *w, const char *prefix);

/* Where no driver has made /dev/watchdog, loads softdog from @prefix: it cannot cure a dead kernel,
 * but it does a PID 1 that no longer runs. */
void drivers_watchdog(const char *prefix);

#endif
