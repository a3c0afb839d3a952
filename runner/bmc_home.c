/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stops a timer that another boot has left, or outlasts it. */
#include "runner/bmc_home.h"

#include <time.h>

#include "results/log.h"
#include "runner/bmc.h"
#include "runner/referee.h"
#include "runner/service.h"

/* Of the attempt that was armed last. */
static unsigned last_bmc_s(const struct campaign *c)
{
	unsigned boot, attempt;
	int64_t armed_s;

	return referee_last_armed(c, &boot, &attempt, &armed_s)
		       ? c->boots[boot].attempts[attempt - 1].armed.bmc_s
		       : 0;
}

unsigned bmc_home(const struct campaign *c)
{
	struct timespec up;
	unsigned armed_s, left_s;
	char text[200], until[16];
	time_t end_s;
	struct tm tm;

	if (!plan_uses_bmc(c->plan) || bmc_stop("") == 0)
		return 0;
	armed_s = last_bmc_s(c);
	clock_gettime(CLOCK_BOOTTIME, &up);
	if (up.tv_sec >= (time_t)armed_s)
		return 0;
	left_s = armed_s - (unsigned)up.tv_sec;
	end_s = time(NULL) + left_s;
	strftime(until, sizeof(until), "%H:%M:%S", localtime_r(&end_s, &tm));
	snprintf(text, sizeof(text),
		 "recount %s: the BMC does not answer; its watchdog may reset this machine until "
		 "%s (ipmitool mc watchdog off stops it)",
		 c->plan->id, until);
	service_tell(text);
	log_warn("%s", text);
	return left_s;
}
