/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The plan of a campaign: everything that will happen, fixed before the first reboot.
 * `recount start` draws and writes it once; recount-init and the referee only read it.
 * Pure data and codec; no logging. Keys are those of plan.json in recount-results(5).
 */
#ifndef RECOUNT_RESULTS_PLAN_H
#define RECOUNT_RESULTS_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "results/macro.h"

#define PLAN_SCHEMA	  1
#define PLAN_BYTES_MAX	  (8u << 20) /* a larger plan.json is refused */
#define PLAN_JOBS_MAX	  1024u
#define PLAN_SHA256	  65	 /* 64 hex digits and NUL */
#define PLAN_BOOTS_MAX	  10000u /* boots are numbered 0000 to 9999 in file names */
#define PLAN_TRIALS_MAX	  99u	 /* of one boot; 01 to 99 in file names */
#define PLAN_RETRIES_MAX  9u
#define PLAN_ROUNDS_MAX	  9999u
#define PLAN_ATTEMPTS_MAX 1000000u
#define PLAN_WORKERS_MAX  4096u
#define PLAN_ARGS_MAX	  60u	/* words of a command; -jN is one more */
#define PLAN_BMC_S_MAX	  6553u /* what a BMC's watchdog counts */
#define PLAN_NAME_MAX	  63u	/* bytes of a label, a workload's or a load's name */
#define PLAN_EXACT_MAX	  ((INT64_C(1) << 53) - 1) /* what a JSON number holds exactly */

/* One bootable thing under comparison. */
struct plan_entry {
	char *label;   /* the Kernel column */
	char *id;      /* GRUB entry id, ^recount-[a-z0-9_-]+$ */
	char *version; /* what uname -r must say */
	char *kernel;  /* path from the machine's root, e.g. /boot/vmlinuz-6.1.0 */
	char *initrd;  /* the same, or NULL */
	char *cmdline; /* the whole kernel command line without the recount.* words */
	char kernel_sha256[PLAN_SHA256];
	char initrd_sha256[PLAN_SHA256]; /* "": no initrd, or its hash is not known */
	char *twin_of;			 /* label, or NULL */
	unsigned bmc_s; /* the BMC's watchdog, armed before a boot into it; 0: it is not */
};

struct plan_workload {
	char *name;    /* "kernel" */
	char *dir;     /* the tree, relative to the arena */
	char **clean;  /* argv, NULL-terminated: {"make", "clean"} */
	char **build;  /* argv, NULL-terminated; -jN is put in after argv[0] */
	char *product; /* file, or folder whose object files are hashed; relative to dir */
	char product_sha256[PLAN_SHA256];
	char tree_sha256[PLAN_SHA256];
	int64_t build_ns; /* cold build time measured at prepare, for estimates */
};

struct plan_load {
	char *name; /* "none", "mem", "io", "process" */
	char *kind; /* the same set: what runs under this name */
	uint64_t bytes;
	unsigned workers;
	unsigned steady_ms; /* how long it must run before T0 (mem: 0, one full pass) */
};

struct plan_trial {
	unsigned trial; /* from 1, in the order of running */
	char *workload;
	char *load;
	unsigned jobs;
};

struct plan_boot {
	unsigned boot;	/* 0 is the canary */
	unsigned round; /* 0 for the canary, then from 1 */
	char *entry;	/* label */
	struct plan_trial *trials;
	size_t n_trials;
};

struct plan_pair { /* name and value: sysctls, toolchain files */
	char *name;
	char *value;
};

struct plan {
	char *id;	   /* ^[a-z0-9][a-z0-9-]{0,47}$ */
	char *created_utc; /* YYYY-MM-DDThh:mm:ssZ */
	int64_t rtc_offset_s;
	uint64_t seed;	 /* at most PLAN_EXACT_MAX */
	char *boot_mode; /* "initramfs" */
	char *mode;	 /* "as-shipped" */
	char *baseline;	 /* label */
	double margin;
	unsigned rounds_max;
	unsigned home_every_rounds; /* the machine comes home after so many; 0: never between */
	unsigned retries;	    /* attempts in all */
	unsigned boots_max;
	int64_t boot_timeout_ms, trial_timeout_ms, load_start_timeout_ms;
	unsigned build_uid;
	unsigned umask;
	int nice;
	int oom_score_adj;
	char *default_uname; /* uname -r at `start`; the canary must come home to it */
	char *store_uuid;
	char *root_uuid, *root_fstype;
	char *root_options; /* mount options, or NULL for none */
	char *arena_uuid, *arena_partuuid, *arena_fstype;
	char *arena_options; /* mount options, or NULL for none */
	uint64_t arena_bytes;
	char *swap_uuid; /* NULL: no swap */
	uint64_t swap_bytes;
	uint64_t memtotal_bytes;
	struct plan_pair *panic; /* sysctl names such as "kernel.panic" and values */
	size_t n_panic;
	struct plan_pair *toolchain; /* path and SHA-256 */
	size_t n_toolchain;
	struct plan_entry *entries;
	size_t n_entries;
	struct plan_workload *workloads;
	size_t n_workloads;
	struct plan_load *loads;
	size_t n_loads;
	struct plan_boot *boots;
	size_t n_boots;
};

/*
 * Reads @len bytes of JSON. Everything is checked before it is believed: types, ranges, name
 * syntax, that paths are relative or absolute as documented and hold no "..", that each boot's
 * entry and each trial's workload and load exist, that boots are numbered 0, 1, 2 … without gaps
 * in order of their rounds, and trials 1, 2, 3 …; no entry twice in a round, no cell twice in a
 * boot. Returns 0, -EBADMSG (not JSON, cut short or a rule broken; @why, if given, gets a static
 * text naming the key), -EPROTONOSUPPORT (newer schema), -E2BIG, -ENOMEM. Owned by caller, free
 * with plan_free(). Pure.
 */
int plan_decode(const char *json, size_t len, struct plan **out, const char **why) _must_check_;

/* The JSON text of @plan, deterministic for equal plans, newline at the end. -EBADMSG for a plan
 * that plan_check() refuses, -EILSEQ for text in it that is not UTF-8. Owned by caller, free().
 * Pure.
 */
int plan_encode(const struct plan *plan, char **json, size_t *len) _must_check_;

void plan_free(struct plan *plan);
/* For structs that hold a part of a plan: frees what @w owns and empties it; frees @pairs. */
void plan_workload_clear(struct plan_workload *w);
void plan_pairs_free(struct plan_pair *pairs, size_t n);

/* The rules that plan_decode() enforces, on a plan made in memory: 0, or -EBADMSG with @why as
 * there. Pure. */
int plan_check(const struct plan *plan, const char **why) _must_check_;

/* The same for a part: one workload; 1 when each pair is an absolute path and a SHA-256. Pure. */
int plan_check_workload(const struct plan_workload *w, const char **why) _must_check_;
int plan_is_toolchain(const struct plan_pair *pairs, size_t n);

/* The syntax of a plan's texts, for those who read the same from elsewhere: a campaign's id,
 * ^[a-z0-9][a-z0-9-]{0,47}$; a label, 1 to PLAN_NAME_MAX printable ASCII characters without a blank
 * at either end; a name, of letters, digits and "_.+@%-", not started by "." or "-"; a SHA-256, a
 * UUID, a time as created_utc. NULL is none of them. Pure. */
int plan_is_id(const char *id);
int plan_is_label(const char *s);
int plan_is_name(const char *s);
int plan_is_sha256(const char *s);
int plan_is_uuid(const char *s);
int plan_is_utc(const char *s);

/* A relative path that stays in its folder, of at most 1023 bytes without control characters; a
 * command of at most PLAN_ARGS_MAX such words (of 2047 bytes), the first not empty. Pure. */
int plan_is_inside(const char *path);
int plan_is_command(char **argv);

/* Look-ups by name; borrowed, NULL when there is none. Pure. */
const struct plan_entry *plan_find_entry(const struct plan *plan, const char *label);
const struct plan_workload *plan_find_workload(const struct plan *plan, const char *name);
const struct plan_load *plan_find_load(const struct plan *plan, const char *name);

/* 1: before a boot into some entry the BMC's watchdog is armed. Pure. */
int plan_uses_bmc(const struct plan *plan);

/* 1: a round boots the entry @label; 0: it is an entry for the canary alone, or none. Pure. */
int plan_is_compared(const struct plan *plan, const char *label);

static inline void cleanup_plan(struct plan **plan)
{
	plan_free(*plan);
}

#endif
