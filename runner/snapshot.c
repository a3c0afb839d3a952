/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads one file per fact; the list is the whole of it. */
#include "runner/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>

#include "results/environment.h"

#define FACT_BYTES 16384

static const struct {
	const char *name, *path;
} facts[] = {
	{"proc_version", "/proc/version"},
	{"cmdline", "/proc/cmdline"},
	{"clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
	{"scaling_driver", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"},
	{"scaling_governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
	{"energy_performance_preference",
	 "/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference"},
	{"no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"},
	{"boost", "/sys/devices/system/cpu/cpufreq/boost"},
	{"smt_control", "/sys/devices/system/cpu/smt/control"},
	{"cpus_online", "/sys/devices/system/cpu/online"},
	{"transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled"},
	{"meltdown", "/sys/devices/system/cpu/vulnerabilities/meltdown"},
	{"spectre_v1", "/sys/devices/system/cpu/vulnerabilities/spectre_v1"},
	{"spectre_v2", "/sys/devices/system/cpu/vulnerabilities/spectre_v2"},
	{"retbleed", "/sys/devices/system/cpu/vulnerabilities/retbleed"},
	{"mds", "/sys/devices/system/cpu/vulnerabilities/mds"},
	{"vm_swappiness", "/proc/sys/vm/swappiness"},
	{"vm_dirty_ratio", "/proc/sys/vm/dirty_ratio"},
	{"vm_dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio"},
	{"vm_overcommit_memory", "/proc/sys/vm/overcommit_memory"},
	{"sched_autogroup_enabled", "/proc/sys/kernel/sched_autogroup_enabled"},
	{"randomize_va_space", "/proc/sys/kernel/randomize_va_space"},
	{"tainted", "/proc/sys/kernel/tainted"},
	{"lockdown", "/sys/kernel/security/lockdown"},
	{"meminfo", "/proc/meminfo"},
	{"swaps", "/proc/swaps"},
	{"modules", "/proc/modules"},
};

static char *read_fact(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[FACT_BYTES];
	ssize_t n;

	if (fd < 0)
		return NULL;
	n = read(fd, buf, sizeof(buf) - 1);
	if (n <= 0)
		return NULL;
	while (n > 0 && buf[n - 1] == '\n')
		n--;
	buf[n] = '\0';
	return strdup(buf);
}

int snapshot_take(char **json)
{
	struct plan_pair pairs[ARRAY_SIZE(facts)];
	int r;

	/* Under Secure Boot a kernel may be locked down. There may be no securityfs, or it may be
	 * mounted already: then there is nothing to add. */
	(void)mount("securityfs", "/sys/kernel/security", "securityfs",
		    MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
		pairs[i] = (struct plan_pair){(char *)facts[i].name, read_fact(facts[i].path)};
	r = environment_encode(pairs, ARRAY_SIZE(pairs), json);
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		free(pairs[i].value);
	return r;
}
