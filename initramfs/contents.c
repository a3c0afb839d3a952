/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads what is on block devices, in children. */
#include "initramfs/contents.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "results/log.h"

/* A device that is being read. */
struct inquiry {
	char path[sizeof(((struct device *)0)->path)];
	int fd;	     /* gives the filled-in struct device */
	int is_late; /* has been waited for */
};

/* Of this process, from one call to the next. */
static struct inquiry *open_inquiries;
static size_t n_open;

static void cleanup_probe(blkid_probe *pr)
{
	blkid_free_probe(*pr);
}

static void copy_value(blkid_probe pr, const char *key, char *out, size_t size)
{
	const char *value;

	if (blkid_probe_lookup_value(pr, key, &value, NULL) == 0)
		snprintf(out, size, "%s", value);
}

/* Old signatures of another format beside the real one: whose they are only the UUID can tell. */
static int probe_ambivalent(blkid_probe pr, struct device *d)
{
	static char *names[] = {"ext2", "ext3", "ext4", "xfs", "btrfs", "vfat", NULL};

	d->ambivalent = 1;
	blkid_reset_probe(pr);
	if (blkid_probe_enable_partitions(pr, 0) < 0 ||
	    blkid_probe_filter_superblocks_type(pr, BLKID_FLTR_ONLYIN, names) < 0)
		return -ENOMEM;
	return blkid_do_probe(pr);
}

static int probe(struct device *d)
{
	_cleanup_close_ int fd = open(d->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_(cleanup_probe) blkid_probe pr = NULL;
	int r;

	if (fd < 0)
		return -errno;
	errno = 0;
	pr = blkid_new_probe();
	if (!pr || blkid_probe_set_device(pr, fd, 0, 0) < 0)
		return errno ? -errno : -ENOMEM;
	blkid_probe_enable_superblocks(pr, 1);
	blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_LABEL | BLKID_SUBLKS_UUID |
						      BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE);
	blkid_probe_enable_partitions(pr, 1);
	blkid_probe_set_partitions_flags(pr, BLKID_PARTS_ENTRY_DETAILS);

	errno = 0;
	r = blkid_do_safeprobe(pr);
	if (r == 0)
		copy_value(pr, "PART_ENTRY_UUID", d->partuuid, sizeof(d->partuuid));
	if (r == -2)
		r = probe_ambivalent(pr, d);
	if (r < 0)
		return errno ? -errno : -EIO;
	if (r == 0) {
		copy_value(pr, "UUID", d->uuid, sizeof(d->uuid));
		copy_value(pr, "LABEL", d->label, sizeof(d->label));
		copy_value(pr, "TYPE", d->type, sizeof(d->type));
		copy_value(pr, "USAGE", d->usage, sizeof(d->usage));
	}
	return 0;
}

static void know_nothing(struct device *d, int error)
{
	d->uuid[0] = d->label[0] = d->type[0] = d->usage[0] = d->partuuid[0] = '\0';
	d->error = error;
}

#define KEPT_FD (STDERR_FILENO + 1)

/* Nobody who waits for the last holder of a pipe or a device waits for a dead disk. */
static int keep_only(int fd)
{
	int null;

	if (dup2(fd, KEPT_FD) < 0)
		return fd;
	closefrom(KEPT_FD + 1);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < KEPT_FD; i++)
		dup2(null, i);
	return KEPT_FD;
}

static _Noreturn void answer(struct device *d, int fd)
{
	int r;

	fd = keep_only(fd);
	r = probe(d);
	if (r < 0)
		know_nothing(d, r);
	_Static_assert(sizeof(*d) <= PIPE_BUF, "it comes whole or not at all");
	_exit(write(fd, d, sizeof(*d)) == (ssize_t)sizeof(*d) ? 0 : 1);
}

/* A grandchild, so that nobody who waits for all children waits for it. */
static int begin(const struct device *asked)
{
	struct device d = *asked;
	int fds[2], status = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			answer(&d, fds[1]);
		_exit(pid < 0);
	}
	close(fds[1]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || status) {
		close(fds[0]);
		return -EAGAIN;
	}
	return fds[0];
}

static struct inquiry *find_open(const char *path)
{
	for (size_t i = 0; i < n_open; i++)
		if (!strcmp(open_inquiries[i].path, path))
			return &open_inquiries[i];
	return NULL;
}

static void ask(struct device *d)
{
	struct inquiry *grown = realloc(open_inquiries, (n_open + 1) * sizeof(*grown));
	struct inquiry q = {.fd = -1};

	if (grown) {
		open_inquiries = grown;
		q.fd = begin(d);
	}
	if (q.fd < 0) {
		know_nothing(d, grown ? q.fd : -ENOMEM);
		return;
	}
	strcpy(q.path, d->path);
	open_inquiries[n_open++] = q;
}

static void take_answer(int fd, struct device *d)
{
	struct device answer;

	if (read(fd, &answer, sizeof(answer)) != (ssize_t)sizeof(answer)) {
		know_nothing(d, -EIO);
		return;
	}
	/* The rest is what /sys says now. */
	memcpy(d->uuid, answer.uuid, sizeof(d->uuid));
	memcpy(d->label, answer.label, sizeof(d->label));
	memcpy(d->type, answer.type, sizeof(d->type));
	memcpy(d->usage, answer.usage, sizeof(d->usage));
	memcpy(d->partuuid, answer.partuuid, sizeof(d->partuuid));
	d->ambivalent = answer.ambivalent;
	d->error = answer.error;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* Waits until the answer is there or the pipe has been closed, but not for one that is late. */
static int is_answered(const struct inquiry *q, int64_t deadline_ms)
{
	struct pollfd ready = {.fd = q->fd, .events = POLLIN};
	int64_t left_ms;
	int n;

	do {
		left_ms = q->is_late ? 0 : deadline_ms - now_ms();
		n = poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0);
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

static void await(struct inquiry *q, struct device *d, int64_t deadline_ms)
{
	if (is_answered(q, deadline_ms)) {
		take_answer(q->fd, d);
		close(q->fd);
		*q = open_inquiries[--n_open];
		return;
	}
	if (!q->is_late)
		log_warn("%s does not answer: what is on it is not known", d->path);
	q->is_late = 1;
	know_nothing(d, -ETIMEDOUT);
}

void contents_read(struct device *devices, size_t n)
{
	int64_t deadline_ms;

	for (size_t i = 0; i < n; i++)
		if (!find_open(devices[i].path))
			ask(&devices[i]);
	deadline_ms = now_ms() + CONTENTS_WAIT_MS;
	for (size_t i = 0; i < n; i++) {
		struct inquiry *q = find_open(devices[i].path);

		if (q)
			await(q, &devices[i], deadline_ms);
	}
}
