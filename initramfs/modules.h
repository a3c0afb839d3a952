/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Kernel modules by modalias through libkmod. recount-init calls it: once from the initrd's own
 * /lib/modules for everything the hardware asks for but network, multimedia, display and wireless,
 * and once from the root's for cpu:, acpi:, hwmon and watchdogs. One module that fails never stops
 * the rest. No process is started: a module that modprobe.d wants to be loaded by a command
 * ("install") is left alone and named in the log.
 */
#ifndef RECOUNT_INITRAMFS_MODULES_H
#define RECOUNT_INITRAMFS_MODULES_H

#include "results/macro.h"

enum modules_pass {
	/* Every modalias under /sys, except those of PCI devices of class 02, 03, 04 or 0d and of
	 * what hangs on them. */
	MODULES_HARDWARE,
	/* Of cpu: and acpi: aliases what lies in drivers/, of the rest what lies in drivers/hwmon
	 * and drivers/watchdog, and what makes a watchdog's device: cpufreq, thermal, fan,
	 * iTCO_wdt; not the ciphers and hypervisors that a CPU's flags ask for too. The same
	 * devices are left out. */
	MODULES_PLATFORM,
};

struct modules_result {
	unsigned loaded;     /* modules that an alias asked for and that are new in the kernel */
	unsigned failed;     /* of those, the ones refused; a driver that finds no hardware of its
				own (ENODEV) is not counted */
	unsigned text_index; /* 1: the .bin indexes were missing or damaged, modules.dep was read
				as text */
};

/*
 * Loads from @dir (a /lib/modules/VERSION folder, e.g. "/lib/modules/6.1.0-57-amd64") what the
 * modaliases below @sys ("/sys") ask for, and again until nothing new appears (bounded). May be
 * called again when a device is late. Soft dependencies, options and blacklists of the modprobe.d
 * folders beside that lib/ (@dir/../../../etc/modprobe.d …) and of the kernel command line are
 * honoured as libkmod does (soft dependencies with the text index: modules.softdep only).
 * -ENOENT when @dir does not exist (all drivers built in: no error for the caller). Failures are
 * logged by module name, one that was built for another kernel with both versions.
 */
int modules_load(const char *dir, const char *sys, enum modules_pass pass,
		 struct modules_result *out) _must_check_;

/*
 * Loads one module by name with what it depends on ("ext4"); 0 also when built in or loaded
 * already. -ENOENT when @dir has no such module: a kernel without a modules folder may still have
 * it built in, which only its use can tell.
 */
int modules_load_name(const char *dir, const char *name) _must_check_;

#endif
