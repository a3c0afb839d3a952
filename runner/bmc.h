/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The watchdog timer of the machine's management controller (BMC), by IPMI through Linux's
 * /dev/ipmi0 (<linux/ipmi.h>). It alone cures a kernel that hangs before recount-init runs: armed
 * just before the reboot, it goes on counting through firmware, GRUB and kernel. Whoever reboots
 * into an entry arms it: start, resume, the referee, recount-init; recount-init and the referee
 * stop it. The messages are those of the IPMI specification, second generation, v2.0 rev. 1.1, §27.
 *
 * The timer has one user at a time, which is part of its state. Ours is "OS Load". A timer that
 * runs for another (ipmi_watchdog's "SMS/OS", the firmware's) is never touched.
 */
#ifndef RECOUNT_RUNNER_BMC_H
#define RECOUNT_RUNNER_BMC_H

#include <stdint.h>

#include "results/macro.h"

/*
 * For how long it is armed. It must outlast all that lies between the call for a reboot and the
 * moment when recount-init has the root's drivers: the shutdown (services have 90 s each), a
 * server's firmware (up to 10 min with much memory and many controllers), GRUB, the kernel, host
 * adapters that look for their disks, up to 60 s each for store, arena and root. What is longer
 * only costs time, once for each kernel that hangs; what is shorter would blame a kernel for its
 * machine.
 */
#define BMC_ARM_S 1200u

/* The modules that make the device: the way to the BMC, and /dev/ipmi0. NULL-terminated. */
extern const char *const bmc_modules[];

/* How long the device may take to appear once its drivers are loaded. */
#define BMC_DEVICE_MS 10000

/* How often a boot asks it to stop before it gives up. */
#define BMC_STOP_TRIES 4

/* "timer use" */
enum { BMC_USE_OS_LOAD = 3 };

struct bmc_timer { /* what Get Watchdog Timer answers */
	unsigned use;
	int runs; /* "timer is started"; a simulator may tell it by the countdown alone */
	unsigned initial_ticks, left_ticks; /* the countdown, in 100 ms */
	int has_fired; /* the expiration flag of OS Load: it has reset the machine since armed */
};

#define BMC_SET_BYTES 6 /* data of Set Watchdog Timer's request */

/* Set Watchdog Timer's data: OS Load, a hard reset after @seconds (at most 6553), no warning
 * before, logged by the BMC, its expiration flag cleared. A timer that runs is stopped by it. Pure.
 */
void bmc_encode_arm(unsigned seconds, uint8_t data[BMC_SET_BYTES]);

/* The same to leave it stopped and harmless: no action. Pure. */
void bmc_encode_stop(uint8_t data[BMC_SET_BYTES]);

/* Reads Get Watchdog Timer's answer, completion code first. -EBADMSG: too short, -EIO: the code is
 * not 0. Pure. */
int bmc_decode_timer(const uint8_t *data, size_t len, struct bmc_timer *out) _must_check_;

/* 1: it runs for somebody else than us. 1: it runs, or may run, for us (what is stopped keeps a
 * countdown, too). Pure. */
int bmc_is_foreign(const struct bmc_timer *t);
int bmc_is_ours(const struct bmc_timer *t);

/* The name of a timer use, as the specification has it. Static. Pure. */
const char *bmc_use_name(unsigned use);

/*
 * Each opens the device below @root ("": the running machine's). A command is given up after three
 * times 2 s without an answer, so that a BMC which stops answering in the middle costs half a
 * minute at most. What was done is logged, and so are failures, but for -ENODEV: there is no
 * device.
 */

/* 1: the BMC answers, and its timer runs for nobody else. What is armed otherwise would cost each
 * entry a boot. */
int bmc_may_be_armed(const char *root);

/* Arms it for @seconds. -EBUSY: it runs for somebody else, which is said. -EINPROGRESS: it may run
 * all the same. */
int bmc_arm(const char *root, unsigned seconds) _must_check_;

/* Stops it where it runs, or may run, for us. Says so, and whether it has fired. 0 also when it
 * does not, or runs for somebody else, which is said. */
int bmc_stop(const char *root) _must_check_;

/* 1: the device is there, or came within @ms. */
int bmc_wait(const char *root, int ms);

#endif
