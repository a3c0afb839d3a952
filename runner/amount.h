/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Amounts as people say them. Pure. */
#ifndef RECOUNT_RUNNER_AMOUNT_H
#define RECOUNT_RUNNER_AMOUNT_H

#include <stdint.h>

#define AMOUNT_BYTES 32

/* "42 s", "5 min 02 s", "9 h 20 min". Negative is 0. */
void amount_duration(char text[AMOUNT_BYTES], int64_t ns);

/* "812 kB", "14 MB", "3.6 GB": decimal, as disks are sold. */
void amount_size(char text[AMOUNT_BYTES], uint64_t bytes);

#endif
