/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The records of a campaign, one JSON file each: attempt (armed), reached, trial, done, failed.
 * Plain structs and codecs; no logging, no files. A figure that could not be read is ABSENT in
 * the struct and has no key in the file; it is never written as 0.
 */
#ifndef RECOUNT_RESULTS_RECORD_H
#define RECOUNT_RESULTS_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "results/macro.h"
#include "results/plan.h"

#define ABSENT		   ((int64_t)-1)
#define RECORD_TOKEN	   96 /* campaign-boot-attempt-random and NUL */
#define RECORD_BYTES_MAX   (1u << 20)
#define RECORD_NAME	   64
#define RECORD_TEXT	   4096 /* command line, uname */
#define RECORD_VOIDS_MAX   8
#define RECORD_ATTEMPT_MAX 99u

struct attempt_record { /* attempt-N.json: written before the reboot */
	char token[RECORD_TOKEN];
	unsigned boot, attempt;
	unsigned sequence; /* from 1, in the order of arming; 0: not known */
	char entry[RECORD_NAME];
	char armed_utc[32];
	char plan_sha256[PLAN_SHA256];
	unsigned bmc_s; /* the BMC's watchdog was to be armed for so long; 0: it was not */
};

struct reached_record { /* reached-N.json: the worker saw the right token */
	char token[RECORD_TOKEN];
	char uname[512];
	char cmdline[RECORD_TEXT];
	int64_t reached_monotonic_ns;
};

struct done_record { /* done-N.json: every cell of the boot was tried */
	char token[RECORD_TOKEN];
	int64_t done_monotonic_ns;
};

struct failed_record { /* failed-N.json */
	char reason[RECORD_NAME];
	char evidence[RECORD_NAME]; /* file name beside it, or "" */
};

enum trial_status { TRIAL_OK, TRIAL_VOID, TRIAL_FAILED, TRIAL_TIMEOUT, TRIAL_DISCARDED };

/* Cumulative stall times, deltas from T0 to T2 of /proc/pressure. */
struct record_psi {
	int64_t cpu_some_ns, memory_some_ns, memory_full_ns, io_some_ns, io_full_ns;
};

struct record_load {
	int64_t work;
	char unit[16];
	int64_t elapsed_ns, user_ns, sys_ns;
};

struct record_cold {
	int64_t cached_bytes, slab_reclaimable_bytes, dentries; /* after the flush */
	int64_t device_read_bytes; /* read from the arena's device from T0 to T2 */
	int ok;			   /* 0 or 1; ABSENT when unknown */
};

struct trial_record {
	unsigned boot, round, attempt, trial;
	char entry[RECORD_NAME], workload[RECORD_NAME], load[RECORD_NAME];
	unsigned jobs;
	enum trial_status status;
	char voids[RECORD_VOIDS_MAX][RECORD_NAME]; /* causes, "void" in JSON */
	unsigned n_voids;
	int64_t wall_ns; /* T0 to T1: exit of the build */
	int64_t sync_ns; /* T1 to T2: syncfs of the arena */
	int64_t user_ns, sys_ns;
	int64_t major_faults, minor_faults, voluntary_switches, involuntary_switches;
	int64_t read_bytes, write_bytes; /* of the arena's device, T0 to T2 */
	int64_t swap_in_bytes, swap_out_bytes;
	int64_t peak_rss_bytes; /* of the largest single process of the build */
	int64_t dirty_at_exit_bytes;
	int64_t memtotal_bytes;
	int64_t steal_ns;
	struct record_psi psi;
	int has_load_result;
	struct record_load load_result;
	struct record_cold cold;
	char arena_restore[16]; /* "clean", or "checked" when its own fsck ran first */
	char arena_fstype[16];
	char product_sha256[PLAN_SHA256]; /* "" when there is none */
};

/* Sets every figure of @r to ABSENT and every text to "". */
void trial_record_init(struct trial_record *r);

/* Adds a void cause and makes an ok or discarded record void; a failed one or a timeout stays what
 * it is. The same cause is kept once; causes past RECORD_VOIDS_MAX are dropped. */
void trial_record_void(struct trial_record *r, const char *cause);

/* The word of the JSON key `status`; borrowed, static. */
const char *trial_status_name(enum trial_status status);

/*
 * Encoders give the JSON text, newline at the end, owned by caller, free(). Decoders check types
 * and ranges and return 0, -EBADMSG, -EPROTONOSUPPORT (newer schema), -E2BIG or -ENOMEM; unknown
 * keys are ignored. A trial that is ok or discarded has wall_ns > 0 and no void cause, a void one
 * has a cause; texts are printable ASCII but for uname and cmdline; evidence is a name without "/",
 * not started by a dot: else decoders say -EBADMSG and encoders, so that nothing unreadable is
 * stored, -EINVAL. In uname and cmdline bytes that are not UTF-8 are written as '?'. All pure.
 */
int attempt_encode(const struct attempt_record *r, char **json) _must_check_;
int attempt_decode(const char *json, size_t len, struct attempt_record *out) _must_check_;
int reached_encode(const struct reached_record *r, char **json) _must_check_;
int reached_decode(const char *json, size_t len, struct reached_record *out) _must_check_;
int done_encode(const struct done_record *r, char **json) _must_check_;
int done_decode(const char *json, size_t len, struct done_record *out) _must_check_;
int failed_encode(const struct failed_record *r, char **json) _must_check_;
int failed_decode(const char *json, size_t len, struct failed_record *out) _must_check_;
int trial_encode(const struct trial_record *r, char **json) _must_check_;
int trial_decode(const char *json, size_t len, struct trial_record *out) _must_check_;

#endif
