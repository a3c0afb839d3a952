/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sleeps again after each signal. */
#include "runner/pause.h"

#include <errno.h>
#include <time.h>

void pause_ms(unsigned ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}
