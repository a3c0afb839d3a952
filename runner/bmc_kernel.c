/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Looks for the drivers between a kernel and the BMC. */
#include "runner/bmc_kernel.h"

#include <limits.h>
#include <string.h>

#include "grub/drivers.h"
#include "initramfs/modindex.h"
#include "runner/bmc.h"

static int has_module(const char *root, const char *version, const char *name)
{
	static const char *const folders[] = {"/usr/lib/modules", "/lib/modules"};
	char dir[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		_cleanup_(cleanup_modindex) struct modindex *index = NULL;
		struct modindex_list list = {0};
		int r;

		if (snprintf(dir, sizeof(dir), "%s%s/%s", root, folders[i], version) >=
			    (int)sizeof(dir) ||
		    modindex_open(dir, &index) < 0)
			continue;
		r = modindex_resolve(index, name, &list);
		free(list.paths);
		if (r == 0)
			return 1;
	}
	return 0;
}

const char *bmc_kernel_lacks(const char *root, const char *version)
{
	/* In the order of bmc_modules. */
	static const char *const options[] = {"CONFIG_IPMI_SI", "CONFIG_IPMI_DEVICE_INTERFACE"};

	for (size_t i = 0; bmc_modules[i]; i++)
		if (!has_module(root, version, bmc_modules[i]) &&
		    drivers_config(root, version, options[i]) != 'y')
			return bmc_modules[i];
	return NULL;
}

const char *bmc_kernel_unfit(const char *root)
{
	char path[PATH_MAX], driver[PATH_MAX];
	const char *slash;
	ssize_t n;

	/* systemd leaves that one running through a reboot, and it would be overwritten by it. */
	snprintf(path, sizeof(path), "%s/sys/module/ipmi_watchdog", root);
	if (access(path, F_OK) == 0)
		return "ipmi_watchdog has it (rmmod ipmi_watchdog, and keep it from being loaded: "
		       "systemd lets its timer run through a reboot, and it could reset a trial)";
	snprintf(path, sizeof(path), "%s/sys/class/ipmi/ipmi0/device/driver", root);
	n = readlink(path, driver, sizeof(driver) - 1);
	driver[n < 0 ? 0 : n] = '\0';
	slash = strrchr(driver, '/');
	if (slash && strcmp(slash + 1, "ipmi_si") != 0)
		return "it is not reached through ipmi_si, the one way that recount-init knows";
	return NULL;
}
