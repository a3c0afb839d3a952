/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Waiting between two looks at something. */
#ifndef RECOUNT_RUNNER_PAUSE_H
#define RECOUNT_RUNNER_PAUSE_H

/* Sleeps for all of @ms, whatever signals are handled meanwhile. */
void pause_ms(unsigned ms);

#endif
