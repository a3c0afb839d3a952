/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mounts the machine's store and arena for this process alone. */
#include "runner/machine.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "initramfs/mounts.h"
#include "results/log.h"

static int make_dir(const char *dir)
{
	if ((mkdir("/run/recount", 0755) && errno != EEXIST) ||
	    (mkdir(dir, 0755) && errno != EEXIST))
		return log_errno(-errno, "make the folder %s", dir);
	return 0;
}

static int mount_privately(const struct machine *m, const struct device *d, const char *options,
			   const char *dir)
{
	const struct mountinfo_entry *elsewhere;
	int r;

	elsewhere = mountinfo_of_device(&m->mounts, d->maj, d->min);
	if (elsewhere)
		return log_errno(-EBUSY, "use %s, it is mounted at %s (umount it)", d->path,
				 elsewhere->point);
	r = make_dir(dir);
	if (r < 0)
		return r;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return log_errno(-errno, "make a mount namespace");
	r = mount_device(d->path, "ext4", options, dir);
	return r < 0 ? log_errno(r, "mount %s at %s", d->path, dir) : 0;
}

static int open_store(const struct machine *m, const char *options, struct store **out)
{
	int r;

	if (!m->store)
		return log_errno(m->store_err, "find one partition labelled " MACHINE_STORE_LABEL);
	r = mount_privately(m, m->store, options, STORE_DIR);
	if (r < 0)
		return r;
	r = store_open(STORE_DIR, out);
	if (r == 0)
		return 0;
	if (unmount_dir(STORE_DIR) < 0)
		log_warn("%s stays mounted", STORE_DIR);
	return log_errno(r, "open the store on %s", m->store->path);
}

int machine_may_open_store(const struct machine *m)
{
	struct stat st;

	return m->store && geteuid() == 0 && !strcmp(m->store->type, "ext4") &&
	       !mountinfo_of_device(&m->mounts, m->store->maj, m->store->min) &&
	       stat(m->store->path, &st) == 0 && S_ISBLK(st.st_mode);
}

int machine_open_store(const struct machine *m, struct store **out)
{
	return open_store(m, "rw,noatime", out);
}

int machine_peek_store(const struct machine *m, struct store **out)
{
	return open_store(m, "ro,noload", out);
}

static int unmount(const char *dir)
{
	int r;

	sync();
	r = unmount_dir(dir);
	return r < 0 ? log_errno(r, "unmount %s", dir) : 0;
}

int machine_close_store(struct store *s)
{
	store_close(s);
	return unmount(STORE_DIR);
}

int machine_mount_arena(const struct machine *m)
{
	if (!m->arena)
		return log_errno(m->arena_err, "find one partition labelled " MACHINE_ARENA_LABEL);
	return mount_privately(m, m->arena, "rw,noatime", ARENA_DIR);
}

int machine_unmount_arena(void)
{
	return unmount(ARENA_DIR);
}
