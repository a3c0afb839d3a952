/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The cold order before a trial, and the proof that it was cold: empty swap, arena unmounted and
 * mounted, caches dropped; the gauges after it, and afterwards what was really read from the
 * device. What is not cold makes the record void.
 */
#ifndef RECOUNT_RUNNER_COLD_H
#define RECOUNT_RUNNER_COLD_H

#include "results/record.h"
#include "runner/place.h"

/* Swap starts every trial empty, so that none inherits the pages of another. */
void cold_swap(const struct place *p, struct trial_record *out);

/* Takes everything out of the page cache: unmounting empties the tree's on every kernel. An arena
 * that something holds open voids the record. -errno only when the arena cannot be mounted any
 * more. */
int cold_flush(const struct place *p, struct trial_record *out) _must_check_;

/* Fills the gauges of @out->cold and says whether they are what the boot's first flush left.
 * Before the build only global counters are looked at: statting the tree would warm it. */
void cold_check(struct place *p, struct trial_record *out);

/* After the build: whether what it read from the device is what a cold build reads. */
void cold_verdict(const struct place *p, struct trial_record *out);

#endif
