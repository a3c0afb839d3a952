/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mounts folders of its own over /tmp and /run. */
#include "runner/own_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "initramfs/mounts.h"
#include "results/log.h"
#include "runner/spawn.h"

/* Whatever the umask of who called: the build user must get through. */
static int make_dir(const char *dir)
{
	return mkdir(dir, 0755) || chmod(dir, 0755) ? -errno : 0;
}

static int mount_run(const char *arena)
{
	int r;

	if (mount("none", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"))
		return -errno;
	r = make_dir("/run/recount");
	if (r == 0)
		r = make_dir(SPAWN_ARENA);
	if (r == 0 && mount(arena, SPAWN_ARENA, NULL, MS_BIND, NULL))
		r = -errno;
	if (r < 0)
		umount2("/run", MNT_DETACH);
	return r;
}

int own_folders_enter(void)
{
	_cleanup_close_ int arena = open(SPAWN_ARENA, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char path[64];
	int r;

	if (arena < 0)
		return log_errno(-errno, "open " SPAWN_ARENA);
	if (mount(SPAWN_HOME "/tmp", "/tmp", NULL, MS_BIND, NULL))
		return log_errno(-errno, "bind " SPAWN_HOME "/tmp to /tmp");
	/* By its descriptor the arena is found also where /run hides it. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", arena);
	r = mount_run(path);
	if (r == 0)
		return 0;
	umount2("/tmp", UMOUNT_NOFOLLOW);
	return log_errno(r, "mount an empty /run");
}

int own_folders_leave(void)
{
	static const char *const dirs[] = {SPAWN_ARENA, "/run", "/tmp"};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++)
		r = unmount_dir(dirs[i]);
	return r;
}
