/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The machine as `recount` finds it on the running system: its devices, root, store, arena, menu,
 * kernels. Facts only: what is unfit is said by check.c. Reads, never writes. Everything lies below
 * options.root ("" for the running machine); where that folder has no proc/ or sys/ of its own (a
 * rescue system), the real ones are read.
 */
#ifndef RECOUNT_RUNNER_MACHINE_H
#define RECOUNT_RUNNER_MACHINE_H

#include <stdint.h>

#include "grub/kernels.h"
#include "grub/menu.h"
#include "initramfs/devices.h"
#include "results/store.h"
#include "runner/mountinfo.h"
#include "runner/options.h"

#define MACHINE_STORE_LABEL "RECOUNT"
#define MACHINE_ARENA_LABEL "RECOUNT-ARENA"
#define MACHINE_TEXT	    512

struct machine {
	const char *root; /* borrowed from the options */
	char uname[256];  /* uname -r; below a fake root from ROOT/proc/sys/kernel/osrelease */
	char *cmdline;	  /* /proc/cmdline */
	unsigned cpus;
	uint64_t memtotal_bytes;
	int64_t rtc_offset_s; /* of the hardware clock from UTC, in quarters of an hour */
	struct mountinfo mounts;
	struct device_list devices;
	int devices_err; /* 0, or why the list is empty */
	/* Borrowed; what / and /boot lie on; NULL: no plain block device. */
	const struct device *root_dev, *boot_dev;
	char root_fstype[32], boot_fstype[32];
	char boot_prefix[256]; /* what GRUB puts before a path below /boot: "" or "/boot" */
	const struct device *store, *arena, *swap; /* borrowed; NULL: not found */
	int store_err, arena_err, swap_err;	   /* 0, -ENOENT, -ENOTUNIQ: why it is NULL */
	struct menu *menu;			   /* NULL: no grub.cfg (menu_err says why) */
	int menu_err;
	struct kernel_list kernels; /* unsigned ones are skipped when secure_boot */
	int kernels_err;
	int secure_boot, efi;
	int turbo;    /* 1 on, 0 off, -1 unknown */
	int watchdog; /* 1: there is a watchdog device */
	int bmc;      /* 1: there is a management controller (IPMI), with a driver for it */
	const char *bmc_unfit; /* static: why its watchdog cannot be used; NULL: it can */
	int systemd; /* 1: the machine's normal boot is systemd's, which starts the referee */
};

/* -ENOTDIR when options.root is no folder; failures are logged. Owned by caller, machine_free(). */
int machine_read(const struct options *o, struct machine **out) _must_check_;

/* Only root, uname, efi, secure_boot, bmc and kernels: needs no device, and so no privilege. */
int machine_read_kernels(const struct options *o, struct machine **out) _must_check_;

/* Only root, uname, cmdline, efi, secure_boot, bmc, mounts and devices: what is quick, for those
 * that need no kernel and no menu (every initrd of the list is decompressed to its end). */
int machine_read_devices(const struct options *o, struct machine **out) _must_check_;

void machine_free(struct machine *m);
static inline void cleanup_machine(struct machine **m)
{
	machine_free(*m);
}

/* The kernel of the list with @label; borrowed or NULL. */
const struct kernel *machine_find_kernel(const struct machine *m, const char *label);

/* The kernel that runs: the first with its version that can be booted; borrowed or NULL. */
const struct kernel *machine_running_kernel(const struct machine *m);

/* Why there is no one partition labelled @label (@err: store_err or arena_err), naming those that
 * are, and what to do; for people. */
void machine_missing(const struct machine *m, const char *label, int err, char text[MACHINE_TEXT]);

/* The last component of @path: what a menu names a kernel by. Borrowed. Pure. */
const char *machine_file_name(const char *path);

#define MACHINE_REFEREE "referee"

/*
 * Of the verbs that change the store one may run at a time. Takes flock(2) @operation, LOCK_EX with
 * or without LOCK_NB, on /run/recount/lock-MAJOR:MINOR of the store. -EBUSY when another process
 * has it, which is named and logged as are failures; the verb MACHINE_REFEREE, which is done with
 * the store in a moment, is waited for up to a minute. The lock lasts until *@fd (owned by caller,
 * close()) is closed. 0 with *@fd untouched when there is no store that could be opened.
 */
int machine_lock(const struct machine *m, const char *verb, int operation, int *fd) _must_check_;

#define STORE_DIR "/run/recount/store"
#define ARENA_DIR "/run/recount/arena"

/*
 * Mounts the store read-write at STORE_DIR in a mount namespace of this process alone, so that
 * nothing is left mounted whatever happens to it, and opens it. machine_close_store() syncs and
 * unmounts: only then can GRUB, which does not replay journals, see what was written. Both need
 * root. -EBUSY when it is mounted elsewhere: unmounting it here would then not empty the journal.
 * -ENOENT, -ENOTUNIQ: there is no one store. Failures are logged.
 */
int machine_open_store(const struct machine *m, struct store **out) _must_check_;
int machine_close_store(struct store *s) _must_check_;

/* 1: the store is one ext4 on a block device that is not mounted, and this process is root: it can
 * be opened. 0: check_machine() tells why not (a fake machine's never can). */
int machine_may_open_store(const struct machine *m);

/* The same, read-only and without replaying the journal: not one byte of the partition changes.
 * Closed by machine_close_store() as well. */
int machine_peek_store(const struct machine *m, struct store **out) _must_check_;

/* The same for the arena at ARENA_DIR. */
int machine_mount_arena(const struct machine *m) _must_check_;
int machine_unmount_arena(void) _must_check_;

/* The exit code of a verb that got @err from opening the store and has changed nothing: refused
 * when the store is missing, there twice or mounted elsewhere, else failed. Pure. */
int machine_open_exit(int err);

#endif
