/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mounts the machine's store and arena for this process alone. */
#include "runner/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "initramfs/mounts.h"
#include "results/log.h"

/* Neither partition holds anything that could give its reader a privilege. */
#define SAFE ",nosuid,nodev"

/* The referee has the store for moments only; they may take this long on a slow disk. */
#define REFEREE_WAIT_MS 60000
#define REFEREE_POLL_MS 100

#define LOCK_WORDS 64 /* what a lock file holds: "prepare (process 4711)" */

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
	/* A slave, so that a /boot which is mounted on demand shows up here as well. */
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return log_errno(-errno, "make a mount namespace");
	return mount_device(d->path, "ext4", options, dir);
}

static int say_missing(const struct machine *m, const char *label, int err)
{
	char text[MACHINE_TEXT];

	machine_missing(m, label, err, text);
	log_info("refused: %s", text);
	return err;
}

static int open_store(const struct machine *m, const char *options, struct store **out)
{
	int r;

	if (!m->store)
		return say_missing(m, MACHINE_STORE_LABEL, m->store_err);
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
	return open_store(m, "rw,noatime" SAFE, out);
}

int machine_peek_store(const struct machine *m, struct store **out)
{
	return open_store(m, "ro,noload" SAFE, out);
}

int machine_open_exit(int err)
{
	return err == -ENOENT || err == -ENOTUNIQ || err == -EBUSY ? EXIT_REFUSED : EXIT_FAILED;
}

/* The name says which store: several machines below --root may be worked on at a time. */
static int open_lock(const struct machine *m, char path[64])
{
	struct stat st;
	int fd;

	if (stat(m->store->path, &st))
		return log_errno(-errno, "look at %s", m->store->path);
	if (mkdir("/run/recount", 0755) && errno != EEXIST)
		return log_errno(-errno, "make the folder /run/recount");
	snprintf(path, 64, "/run/recount/lock-%u:%u", major(st.st_rdev), minor(st.st_rdev));
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? log_errno(-errno, "open %s", path) : fd;
}

static int say_locked(const char *words, const char *path)
{
	log_info("refused: recount %s holds %s; wait until it ends, or end it, then try again",
		 *words ? words : "(of another process)", path);
	return -EBUSY;
}

/* Takes the lock, of whose holder *words tells when it could not be had. */
static int take_lock(int fd, int operation, char words[LOCK_WORDS])
{
	struct timespec tick = {.tv_nsec = REFEREE_POLL_MS * 1000000L};

	words[0] = '\0';
	for (int waited_ms = 0;; waited_ms += REFEREE_POLL_MS) {
		ssize_t n;

		if (flock(fd, operation) == 0)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return -errno;
		n = pread(fd, words, LOCK_WORDS - 1, 0);
		words[n < 0 ? 0 : n] = '\0';
		if (strncmp(words, MACHINE_REFEREE " ", strlen(MACHINE_REFEREE " ")) != 0 ||
		    waited_ms >= REFEREE_WAIT_MS)
			return -EBUSY;
		nanosleep(&tick, NULL);
	}
}

int machine_lock(const struct machine *m, const char *verb, int operation, int *out)
{
	_cleanup_close_ int fd = -1;
	char path[64], words[LOCK_WORDS];
	int r;

	if (!machine_may_open_store(m))
		return 0;
	fd = open_lock(m, path);
	if (fd < 0)
		return fd;
	r = take_lock(fd, operation, words);
	if (r == -EBUSY)
		return say_locked(words, path);
	if (r < 0)
		return log_errno(r, "lock %s", path);
	r = snprintf(words, sizeof(words), "%s (process %d)", verb, (int)getpid());
	if (ftruncate(fd, 0) || pwrite(fd, words, (size_t)r, 0) != r)
		return log_errno(-EIO, "write %s", path);
	*out = TAKE_FD(fd);
	return 0;
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
		return say_missing(m, MACHINE_ARENA_LABEL, m->arena_err);
	return mount_privately(m, m->arena, "rw,noatime" SAFE, ARENA_DIR);
}

int machine_unmount_arena(void)
{
	return unmount(ARENA_DIR);
}
