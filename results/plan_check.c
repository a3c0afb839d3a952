/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rules of a plan: syntax of names and paths, ranges, and that everything named exists. */
#include "results/plan.h"

#include <errno.h>
#include <string.h>

#define ID_CHARS   "abcdefghijklmnopqrstuvwxyz0123456789-"
#define HEX_CHARS  "0123456789abcdef"
#define WORD_CHARS "abcdefghijklmnopqrstuvwxyz0123456789_"
#define NAME_CHARS WORD_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZ.+@%-"

#define ENTRIES_MAX 999u
#define LIST_MAX    99u	  /* workloads, loads */
#define TEXT_MAX    2047u /* COMMAND_LINE_SIZE of x86 without its NUL */
#define PATH_BYTES  1023u
#define WEEK_MS	    (7 * 24 * 3600 * INT64_C(1000))

static int refuse(const char **why, const char *key)
{
	if (why)
		*why = key;
	return -EBADMSG;
}

/* 1 to @max characters, all of @chars. */
static int is_of(const char *s, const char *chars, size_t max)
{
	return s && s[0] && strlen(s) <= max && s[strspn(s, chars)] == '\0';
}

/* At most @max bytes, none of them a control character. */
static int is_text(const char *s, size_t max)
{
	const unsigned char *p;

	if (!s || strlen(s) > max)
		return 0;
	for (p = (const unsigned char *)s; *p; p++)
		if (*p < 0x20 || *p == 0x7f)
			return 0;
	return 1;
}

int plan_is_label(const char *s)
{
	const char *p;

	if (!is_text(s, PLAN_NAME_MAX) || !s[0] || s[0] == ' ' || s[strlen(s) - 1] == ' ')
		return 0;
	for (p = s; *p; p++)
		if ((unsigned char)*p >= 0x80)
			return 0;
	return 1;
}

int plan_is_name(const char *s)
{
	return is_of(s, NAME_CHARS, PLAN_NAME_MAX) && s[0] != '.' && s[0] != '-';
}

int plan_is_sha256(const char *s)
{
	return is_of(s, HEX_CHARS, 64) && strlen(s) == 64;
}

int plan_is_uuid(const char *s)
{
	return is_of(s, HEX_CHARS "ABCDEF-", 36);
}

/* As kernel_image_version() gives it. */
static int is_version(const char *s)
{
	return is_of(s, NAME_CHARS "~:", 64) && s[0] != '.' && s[0] != '-';
}

static int is_fstype(const char *s)
{
	return is_of(s, WORD_CHARS, 15);
}

static int is_options(const char *s)
{
	return !s || is_of(s, NAME_CHARS "=,:/", 255);
}

int plan_is_utc(const char *s)
{
	static const char shape[] = "dddd-dd-ddTdd:dd:ddZ";
	size_t i;

	if (!s || strlen(s) != sizeof(shape) - 1)
		return 0;
	for (i = 0; shape[i]; i++)
		if (shape[i] == 'd' ? s[i] < '0' || s[i] > '9' : s[i] != shape[i])
			return 0;
	return 1;
}

/* A path that stays where it starts. */
static int is_path(const char *s, int absolute)
{
	const char *p;

	if (!is_text(s, PATH_BYTES) || !s[0] || (s[0] == '/') != absolute)
		return 0;
	for (p = s; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || p[2] == '\0'))
			return 0;
	}
	return 1;
}

int plan_is_inside(const char *path)
{
	return is_path(path, 0);
}

/* "kernel.panic": dots become slashes below /proc/sys, so no part may be empty. */
static int is_sysctl(const char *s)
{
	return is_of(s, WORD_CHARS "-.", PLAN_NAME_MAX) && s[0] != '.' && !strstr(s, "..") &&
	       s[strlen(s) - 1] != '.';
}

int plan_is_command(char **argv)
{
	size_t n;

	if (!argv || !argv[0] || !argv[0][0])
		return 0;
	for (n = 0; argv[n]; n++)
		if (!is_text(argv[n], TEXT_MAX))
			return 0;
	return n <= PLAN_ARGS_MAX;
}

int plan_is_toolchain(const struct plan_pair *pairs, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!is_path(pairs[i].name, 1) || !plan_is_sha256(pairs[i].value))
			return 0;
	return 1;
}

static int is_exact(int64_t v)
{
	return v >= 0 && v <= PLAN_EXACT_MAX;
}

int plan_is_id(const char *id)
{
	return is_of(id, ID_CHARS, 48) && id[0] != '-';
}

static int check_entry(const struct plan *plan, size_t i, const char **why)
{
	const struct plan_entry *e = &plan->entries[i];
	size_t k;

	if (!plan_is_label(e->label))
		return refuse(why, "label");
	if (!e->id || strncmp(e->id, "recount-", 8) != 0 || !is_of(e->id + 8, ID_CHARS "_", 47))
		return refuse(why, "id");
	if (!is_version(e->version))
		return refuse(why, "version");
	if (!is_path(e->kernel, 1))
		return refuse(why, "kernel");
	if (e->initrd && !is_path(e->initrd, 1))
		return refuse(why, "initrd");
	if (!is_text(e->cmdline, TEXT_MAX))
		return refuse(why, "cmdline");
	if (!plan_is_sha256(e->kernel_sha256))
		return refuse(why, "kernel_sha256");
	if (e->initrd_sha256[0] && (!e->initrd || !plan_is_sha256(e->initrd_sha256)))
		return refuse(why, "initrd_sha256");
	if (e->bmc_s > PLAN_BMC_S_MAX)
		return refuse(why, "bmc_s");
	for (k = 0; k < i; k++) {
		if (strcmp(plan->entries[k].label, e->label) == 0)
			return refuse(why, "label");
		if (strcmp(plan->entries[k].id, e->id) == 0)
			return refuse(why, "id");
	}
	return 0;
}

static int check_entries(const struct plan *plan, const char **why)
{
	const struct plan_entry *twin;
	size_t i;
	int err;

	if (plan->n_entries < 1 || plan->n_entries > ENTRIES_MAX)
		return refuse(why, "entries");
	for (i = 0; i < plan->n_entries; i++) {
		err = check_entry(plan, i, why);
		if (err)
			return err;
	}
	for (i = 0; i < plan->n_entries; i++) {
		if (!plan->entries[i].twin_of)
			continue;
		twin = plan_find_entry(plan, plan->entries[i].twin_of);
		if (!twin || twin == &plan->entries[i])
			return refuse(why, "twin_of");
	}
	return plan_find_entry(plan, plan->baseline) ? 0 : refuse(why, "baseline");
}

int plan_check_workload(const struct plan_workload *w, const char **why)
{
	if (!plan_is_name(w->name))
		return refuse(why, "name");
	if (!plan_is_inside(w->dir))
		return refuse(why, "dir");
	if (!plan_is_command(w->clean))
		return refuse(why, "clean");
	if (!plan_is_command(w->build))
		return refuse(why, "build");
	if (!plan_is_inside(w->product))
		return refuse(why, "product");
	if (!plan_is_sha256(w->product_sha256))
		return refuse(why, "product_sha256");
	if (!plan_is_sha256(w->tree_sha256))
		return refuse(why, "tree_sha256");
	return is_exact(w->build_ns) ? 0 : refuse(why, "build_ns");
}

static int check_workloads(const struct plan *plan, const char **why)
{
	size_t i;
	int err;

	if (plan->n_workloads < 1 || plan->n_workloads > LIST_MAX)
		return refuse(why, "workloads");
	for (i = 0; i < plan->n_workloads; i++) {
		const struct plan_workload *w = &plan->workloads[i];

		/* One that comes before it under the same name would hide it. */
		if (plan_find_workload(plan, w->name) != w)
			return refuse(why, "name");
		err = plan_check_workload(w, why);
		if (err)
			return err;
	}
	return 0;
}

static int check_loads(const struct plan *plan, const char **why)
{
	size_t i;

	if (plan->n_loads < 1 || plan->n_loads > LIST_MAX)
		return refuse(why, "loads");
	for (i = 0; i < plan->n_loads; i++) {
		const struct plan_load *l = &plan->loads[i];

		if (!plan_is_name(l->name) || plan_find_load(plan, l->name) != l)
			return refuse(why, "name");
		if (!plan_is_name(l->kind))
			return refuse(why, "kind");
		if (l->bytes > (uint64_t)PLAN_EXACT_MAX)
			return refuse(why, "bytes");
		if (l->workers > PLAN_WORKERS_MAX)
			return refuse(why, "workers");
		if (l->steady_ms > WEEK_MS)
			return refuse(why, "steady_ms");
	}
	return 0;
}

static int check_trials(const struct plan *plan, const struct plan_boot *b, const char **why)
{
	size_t i, k;

	if (b->n_trials < 1 || b->n_trials > PLAN_TRIALS_MAX)
		return refuse(why, "trials");
	for (i = 0; i < b->n_trials; i++) {
		const struct plan_trial *t = &b->trials[i];

		if (t->trial != i + 1)
			return refuse(why, "trial");
		if (!plan_find_workload(plan, t->workload))
			return refuse(why, "workload");
		if (!plan_find_load(plan, t->load))
			return refuse(why, "load");
		if (t->jobs < 1 || t->jobs > PLAN_JOBS_MAX)
			return refuse(why, "jobs");
		for (k = 0; k < i; k++)
			if (b->trials[k].jobs == t->jobs &&
			    strcmp(b->trials[k].load, t->load) == 0 &&
			    strcmp(b->trials[k].workload, t->workload) == 0)
				return refuse(why, "trial");
	}
	return 0;
}

static int check_boots(const struct plan *plan, const char **why)
{
	size_t i, k;
	int err;

	if (plan->n_boots < 1 || plan->n_boots > PLAN_BOOTS_MAX)
		return refuse(why, "boots");
	for (i = 0; i < plan->n_boots; i++) {
		const struct plan_boot *b = &plan->boots[i];

		if (b->boot != i)
			return refuse(why, "boot");
		if (b->round > plan->rounds_max || (b->round == 0) != (i == 0) ||
		    (i > 0 && b->round < plan->boots[i - 1].round))
			return refuse(why, "round");
		if (!plan_find_entry(plan, b->entry))
			return refuse(why, "entry");
		for (k = i; k-- > 0 && plan->boots[k].round == b->round;)
			if (strcmp(plan->boots[k].entry, b->entry) == 0)
				return refuse(why, "entry");
		err = check_trials(plan, b, why);
		if (err)
			return err;
	}
	return 0;
}

static int check_limits(const struct plan *plan, const char **why)
{
	if (!(plan->margin > 0 && plan->margin < 1))
		return refuse(why, "margin");
	if (plan->rounds_max < 1 || plan->rounds_max > PLAN_ROUNDS_MAX)
		return refuse(why, "rounds_max");
	if (plan->home_every_rounds > PLAN_ROUNDS_MAX)
		return refuse(why, "home_every_rounds");
	if (plan->retries < 1 || plan->retries > PLAN_RETRIES_MAX)
		return refuse(why, "retries");
	if (plan->boots_max < 1 || plan->boots_max > PLAN_ATTEMPTS_MAX)
		return refuse(why, "boots_max");
	if (plan->boot_timeout_ms < 1 || plan->boot_timeout_ms > WEEK_MS)
		return refuse(why, "boot_timeout_ms");
	if (plan->trial_timeout_ms < 1 || plan->trial_timeout_ms > WEEK_MS)
		return refuse(why, "trial_timeout_ms");
	if (plan->load_start_timeout_ms < 1 || plan->load_start_timeout_ms > WEEK_MS)
		return refuse(why, "load_start_timeout_ms");
	/* Builds never run as root; the last number means "unchanged" to chown(2). */
	if (plan->build_uid < 1 || plan->build_uid == UINT32_MAX)
		return refuse(why, "build_uid");
	if (plan->umask > 0777)
		return refuse(why, "umask");
	if (plan->nice < -20 || plan->nice > 19)
		return refuse(why, "nice");
	if (plan->oom_score_adj < -1000 || plan->oom_score_adj > 1000)
		return refuse(why, "oom_score_adj");
	return 0;
}

static int check_partitions(const struct plan *plan, const char **why)
{
	if (!plan_is_uuid(plan->store_uuid))
		return refuse(why, "store_uuid");
	if (!plan_is_uuid(plan->root_uuid) || !is_fstype(plan->root_fstype) ||
	    !is_options(plan->root_options))
		return refuse(why, "root");
	if (!plan_is_uuid(plan->arena_uuid) || !is_fstype(plan->arena_fstype) ||
	    (plan->arena_partuuid && !plan_is_uuid(plan->arena_partuuid)) ||
	    !is_options(plan->arena_options) || plan->arena_bytes > (uint64_t)PLAN_EXACT_MAX)
		return refuse(why, "arena");
	/* The store is unmounted while a trial runs: it cannot be the arena, nor the root. */
	if (strcmp(plan->store_uuid, plan->arena_uuid) == 0 ||
	    strcmp(plan->store_uuid, plan->root_uuid) == 0)
		return refuse(why, "store_uuid");
	if (plan->swap_uuid ? !plan_is_uuid(plan->swap_uuid) : plan->swap_bytes != 0)
		return refuse(why, "swap");
	if (plan->swap_bytes > (uint64_t)PLAN_EXACT_MAX)
		return refuse(why, "swap");
	return 0;
}

int plan_check(const struct plan *plan, const char **why)
{
	int err;
	size_t i;

	if (!plan_is_id(plan->id))
		return refuse(why, "id");
	if (!plan_is_utc(plan->created_utc))
		return refuse(why, "created_utc");
	if (!(plan->rtc_offset_s >= -PLAN_EXACT_MAX && plan->rtc_offset_s <= PLAN_EXACT_MAX))
		return refuse(why, "rtc_offset_s");
	if (plan->seed > (uint64_t)PLAN_EXACT_MAX)
		return refuse(why, "seed");
	if (!plan_is_name(plan->boot_mode))
		return refuse(why, "boot_mode");
	if (!plan_is_name(plan->mode))
		return refuse(why, "mode");
	if (!is_version(plan->default_uname))
		return refuse(why, "default_uname");
	if (plan->memtotal_bytes < 1 || plan->memtotal_bytes > (uint64_t)PLAN_EXACT_MAX)
		return refuse(why, "memtotal_bytes");
	for (i = 0; i < plan->n_panic; i++)
		/* Numbers alone: some of kernel.* take the name of a program, which would be
		 * root's. */
		if (!is_sysctl(plan->panic[i].name) ||
		    !is_of(plan->panic[i].value, "-0123456789", 20))
			return refuse(why, "panic");
	if (!plan_is_toolchain(plan->toolchain, plan->n_toolchain))
		return refuse(why, "toolchain");
	err = check_limits(plan, why);
	if (!err)
		err = check_partitions(plan, why);
	if (!err)
		err = check_entries(plan, why);
	if (!err)
		err = check_workloads(plan, why);
	if (!err)
		err = check_loads(plan, why);
	return err ? err : check_boots(plan, why);
}
