/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The boot steps of recount-init, from loading modules to the next one-shot. Runs as a child of
 * PID 1, which watches it; may block anywhere.
 */
#ifndef RECOUNT_RUNNER_WORKER_H
#define RECOUNT_RUNNER_WORKER_H

#include "runner/watch.h"

/* Serves the boot. 0, or -errno when it gave up; in both cases the machine is to be rebooted, and
 * if nothing was armed it comes home to its own default. */
int worker_run(struct watch *watch) _must_check_;

/* For the child that PID 1 starts when the worker died or hangs: ends what still runs and books the
 * attempt as failed with @reason, unless the worker had come to its end. May block anywhere, too.
 */
int worker_bury(struct watch *watch, const char *reason) _must_check_;

#endif
