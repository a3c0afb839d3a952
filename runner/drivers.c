/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loads modules of the running kernel. */
#include "runner/drivers.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "results/log.h"
#include "runner/bmc.h"

#define FOLDER_BYTES 512

static void modules_folder(const char *prefix, char dir[FOLDER_BYTES])
{
	struct utsname uts;

	uname(&uts);
	snprintf(dir, FOLDER_BYTES, "%s/lib/modules/%s", prefix, uts.release);
}

int drivers_load(struct watch *w, const char *prefix, enum modules_pass pass)
{
	static unsigned failed_before = -1U;
	struct modules_result result;
	char dir[FOLDER_BYTES];
	int r;

	modules_folder(prefix, dir);
	/* A host adapter may take its time to find its disks. */
	watch_busy(w, WATCH_WRITEBACK_MS);
	r = modules_load(dir, "/sys", pass, &result);
	watch_answer(w);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return log_errno(r, "load modules from %s", dir);
	if (result.loaded || result.failed != failed_before)
		log_info("modules from %s: %u loaded, %u failed%s", dir, result.loaded,
			 result.failed,
			 result.text_index ? " (no .bin index; modules.dep was read)" : "");
	failed_before = result.failed;
	return 0;
}

void drivers_filesystem(const char *name)
{
	char dir[FOLDER_BYTES];

	modules_folder("", dir);
	if (modules_load_name(dir, name) < 0)
		return;
}

static void load_evidence(const char *dir, const char *name)
{
	int r = modules_load_name(dir, name);

	if (r < 0 && r != -ENOENT)
		log_warn("a panic here may leave no text");
}

void drivers_evidence(const char *prefix, const char *cmdline)
{
	char dir[FOLDER_BYTES];

	modules_folder(prefix, dir);
	if (access("/sys/firmware/efi", F_OK) == 0)
		load_evidence(dir, "efi_pstore");
	if (strstr(cmdline, "ramoops."))
		load_evidence(dir, "ramoops");
}

void drivers_bmc(struct watch *w, const char *prefix)
{
	char dir[FOLDER_BYTES];

	modules_folder(prefix, dir);
	/* A BMC that is slow to answer keeps its driver waiting. */
	watch_busy(w, WATCH_WRITEBACK_MS);
	/* Whether one is built in, the device tells. */
	for (size_t i = 0; bmc_modules[i]; i++)
		(void)!modules_load_name(dir, bmc_modules[i]);
	watch_answer(w);
}

void drivers_watchdog(const char *prefix)
{
	char dir[FOLDER_BYTES];

	if (access("/dev/watchdog", F_OK) == 0)
		return;
	modules_folder(prefix, dir);
	if (modules_load_name(dir, "softdog") < 0)
		log_info("no watchdog: a kernel that dies here stays dead until somebody comes");
	else
		log_info("no hardware watchdog was found; softdog stands in for it");
}
