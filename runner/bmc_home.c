/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arms the timer with the reboot; stops what another boot has left, or tells how long it lasts. */
#include "runner/bmc_home.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "results/log.h"
#include "runner/bmc.h"
#include "runner/referee.h"
#include "runner/service.h"

int bmc_home_load(void)
{
	return bmc_wait("", 0) || (service_modprobe(bmc_modules) && bmc_wait("", BMC_DEVICE_MS));
}

static void tell(unsigned left_s)
{
	time_t end_s = time(NULL) + left_s;
	char text[160], until[32];
	struct tm tm;

	strftime(until, sizeof(until), "%F %T", localtime_r(&end_s, &tm));
	snprintf(text, sizeof(text),
		 "recount: the BMC does not obey; its watchdog may reset this machine until %s "
		 "(ipmitool mc watchdog off stops it)",
		 until);
	service_tell_until(BMC_HOME_NOTICE, text, left_s);
	log_warn("%s", text);
}

static int reboot_guarded(unsigned bmc_s)
{
	int r, armed = bmc_arm("", bmc_s);

	if (armed < 0)
		log_warn("the BMC's watchdog is not armed: a kernel that hangs early would need a "
			 "power cycle");
	r = service_reboot();
	if (r == 0)
		return 0;
	if (bmc_stop("") == 0)
		service_untell(BMC_HOME_NOTICE);
	else if (armed == 0 || armed == -EINPROGRESS)
		tell(bmc_s);
	return r;
}

int bmc_home_reboot(unsigned bmc_s)
{
	sigset_t enders, before;
	int r;

	sigemptyset(&enders);
	sigaddset(&enders, SIGINT);
	sigaddset(&enders, SIGHUP);
	sigaddset(&enders, SIGTERM);
	sigprocmask(SIG_BLOCK, &enders, &before);
	r = bmc_s ? reboot_guarded(bmc_s) : service_reboot();
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

unsigned bmc_home_armed_s(const struct campaign *c)
{
	const struct attempt_state *last;
	unsigned boot, attempt;
	int64_t armed_s;

	if (!plan_uses_bmc(c->plan) || !referee_last_armed(c, &boot, &attempt, &armed_s))
		return 0;
	last = &c->boots[boot].attempts[attempt - 1];
	/* A boot that is done has stopped it, or had never begun its trials. */
	return last->done ? 0 : last->armed.bmc_s;
}

unsigned bmc_home_stop(unsigned armed_s)
{
	struct timespec up;

	if (bmc_stop("") == 0) {
		service_untell(BMC_HOME_NOTICE);
		return 0;
	}
	clock_gettime(CLOCK_BOOTTIME, &up);
	if (up.tv_sec >= (time_t)armed_s)
		return 0;
	tell(armed_s - (unsigned)up.tv_sec);
	return armed_s - (unsigned)up.tv_sec;
}

unsigned bmc_home_left_s(int uses_bmc)
{
	if (!uses_bmc && !service_told_s(BMC_HOME_NOTICE))
		return 0;
	if (!bmc_home_load() || bmc_stop("") < 0)
		return service_told_s(BMC_HOME_NOTICE);
	service_untell(BMC_HOME_NOTICE);
	return 0;
}
