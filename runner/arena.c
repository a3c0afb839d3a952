/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks, mounts, unmounts and clears the arena. */
#include "runner/arena.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "initramfs/devices.h"
#include "initramfs/mounts.h"
#include "results/log.h"
#include "runner/watch.h"

#define FSCK_TIMEOUT_MS 900000

void arena_kill_leftovers(void)
{
	/* As root, -1 means everybody but PID 1 and ourselves. Orphans come to us, so that none is
	 * left when there is no child. */
	do
		kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0);
}

/* The root's own e2fsck; 0 clean or repaired, 1 repaired (e2fsck(8)). */
static int run_fsck(const struct place *p)
{
	struct spawn_user root = {.umask = 022};
	char device[PATH_MAX], *argv[] = {"e2fsck", "-p", device, NULL};
	struct spawn s = {
		.chroot_dir = p->root_dir, .dir = "/", .argv = argv, .user = &root, .err_fd = -1};
	int status, r;

	snprintf(device, sizeof(device), "%s", p->arena_device);
	p->step(p->arg, 2 * FSCK_TIMEOUT_MS);
	r = spawn_watched(&s, FSCK_TIMEOUT_MS, WATCH_SLICE_MS, p->alive, p->arg, &status);
	arena_kill_leftovers();
	p->step(p->arg, p->plan->boot_timeout_ms);
	if (r < 0)
		return r;
	return WIFEXITED(status) && WEXITSTATUS(status) <= 1 ? 0 : -EUCLEAN;
}

int arena_check(struct place *p)
{
	struct ext4_facts facts;
	int r = device_ext4_facts(p->arena_device, &facts);

	p->arena_restore = "clean";
	if (r == 0 && (facts.needs_recovery || !facts.clean)) {
		log_info("the arena was not cleanly unmounted: checking it");
		r = run_fsck(p);
		p->arena_restore = "checked";
	}
	return r < 0 ? log_errno(r, "use the arena %s", p->arena_device) : 0;
}

int arena_mount(const struct place *p)
{
	char tmp[PATH_MAX];
	int r = mount_device(p->arena_device, p->plan->arena_fstype, "noatime,nosuid,nodev",
			     p->arena_dir);

	if (r < 0)
		return log_errno(r, "mount the arena %s", p->arena_device);
	r = spawn_make_home(p->arena_dir, p->user.uid);
	if (r < 0)
		return r;
	snprintf(tmp, sizeof(tmp), "%s/.recount/tmp", p->arena_dir);
	if (mount(tmp, p->tmp_dir, NULL, MS_BIND, NULL))
		return log_errno(-errno, "bind %s to %s", tmp, p->tmp_dir);
	return 0;
}

int arena_unmount(const struct place *p)
{
	int r = unmount_dir(p->tmp_dir);

	if (r == 0)
		r = unmount_dir(p->arena_dir);
	return r < 0 ? log_errno(r, "unmount the arena %s", p->arena_device) : 0;
}
