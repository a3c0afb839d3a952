/* SPDX-License-Identifier: GPL-3.0-or-later */
/* environment-N.json: what the machine said of itself in one boot, as names and texts. Pure. */
#ifndef RECOUNT_RESULTS_ENVIRONMENT_H
#define RECOUNT_RESULTS_ENVIRONMENT_H

#include <stddef.h>

#include "results/plan.h"

/* One JSON object of strings; bytes that are not UTF-8 become '?', a NULL value writes no key.
 * Owned by caller, free(). -ENOMEM. */
int environment_encode(const struct plan_pair *facts, size_t n, char **json) _must_check_;

#endif
