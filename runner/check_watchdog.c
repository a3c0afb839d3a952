/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What cures a kernel that hangs: a watchdog, the BMC's, or a person. */
#include <string.h>

#include "runner/bmc.h"
#include "runner/bmc_kernel.h"
#include "runner/check.h"
#include "runner/planner.h"

#define CYCLE                                                                                      \
	"a power cycle, which is safe at any time: ipmitool -I lanplus -H BMC chassis power "      \
	"cycle, from another machine"

/* How many of the chosen kernels can and cannot stop the BMC's watchdog; what the latter lack is
 * said. */
static void count_kernels(struct findings *f, const struct options *o, const struct machine *m,
			  unsigned *can, unsigned *cannot)
{
	const char *lacks;

	*can = *cannot = 0;
	for (size_t i = 0; i < m->kernels.n; i++) {
		const struct kernel *k = &m->kernels.kernels[i];

		if (k->skip || !planner_chooses(o->kernels, k))
			continue;
		lacks = bmc_kernel_lacks(m->root, k->version);
		*can += !lacks;
		*cannot += lacks != NULL;
		if (lacks && !m->bmc_unfit)
			findings_warn(
				f, "bmc",
				"%s could not stop the BMC's watchdog (it has no %s), so none "
				"is armed for it: when it hangs early it needs " CYCLE,
				k->label, lacks);
	}
}

/* What is done about a kernel that hangs before recount-init runs, where nobody opens a watchdog.
 */
static const char *early_cure(struct findings *f, const struct options *o, const struct machine *m,
			      int *needs_person)
{
	unsigned can, cannot;

	*needs_person = 1;
	if (!m->bmc)
		return "a kernel that hangs before recount starts needs the power button (safe at "
		       "any time)";
	count_kernels(f, o, m, &can, &cannot);
	if (m->bmc_unfit)
		findings_warn(f, "bmc", "its watchdog is not used: %s", m->bmc_unfit);
	if (m->bmc_unfit || !can)
		return "a kernel that hangs before recount starts needs " CYCLE;
	*needs_person = 0;
	return cannot ? "of the other kernels one that hangs before recount starts is reset by the "
			"BMC's"
		      : "a kernel that hangs before recount starts is reset by the BMC's";
}

void check_watchdog(struct findings *f, const struct options *o, const struct machine *m)
{
	char when[64] = "";
	int needs_person;
	const char *early = early_cure(f, o, m, &needs_person);

	if (!needs_person)
		snprintf(when, sizeof(when), ", %u min after the reboot", BMC_ARM_S / 60);
	if (m->watchdog)
		findings_ok(f, "watchdog", "found, for hangs in trials; %s%s", early, when);
	else if (!m->bmc)
		findings_warn(f, "watchdog",
			      "none found: %s, and so does one that hangs in a trial", early);
	else if (needs_person)
		findings_warn(f, "watchdog", "none found: %s; one that hangs in a trial does, too",
			      early);
	else
		findings_warn(f, "watchdog",
			      "none found: a kernel that hangs in a trial needs " CYCLE "; %s%s",
			      early, when);
}
