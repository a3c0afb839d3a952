/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The store as recount-init uses it: mounted, read or written, unmounted. */
#include "runner/visit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "grub/oneshot.h"
#include "initramfs/cmdline.h"
#include "initramfs/mounts.h"
#include "results/log.h"
#include "runner/arm.h"
#include "runner/bmc.h"
#include "runner/snapshot.h"

#define STORE_MOUNT "/run/recount/store"
#define DMESG_BYTES (128 << 10) /* the last of them; the store is small */

enum { SYSLOG_READ_ALL = 3 }; /* syslog(2) */

static int open_store(const struct visit *v, struct store **out)
{
	int r;

	mkdir("/run/recount", 0755);
	mkdir(STORE_MOUNT, 0755);
	r = mount_device(v->store_device, "ext4", "noatime", STORE_MOUNT);
	if (r < 0)
		return log_errno(r, "mount the store %s", v->store_device);
	r = store_open(STORE_MOUNT, out);
	if (r < 0) {
		log_errno(r, "open the store %s", v->store_device);
		if (unmount_dir(STORE_MOUNT) < 0)
			log_warn("the store stays mounted");
	}
	return r;
}

/* What the session gave, or why the store could not be unmounted. */
static int close_store(struct store *s, int result)
{
	int r;

	store_close(s);
	r = unmount_dir(STORE_MOUNT);
	if (r < 0)
		log_errno(r, "unmount the store");
	return result < 0 ? result : r;
}

static int put_text(struct store *s, const struct visit *v, const char *stem, const char *ext,
		    const char *text)
{
	char path[256];

	store_boot_path(path, v->plan->id, v->boot->boot, stem, v->attempt, ext);
	return arm_put_text(s, path, text);
}

static int word(const struct visit *v, const char *key, char *value, size_t size)
{
	int r = cmdline_get(v->cmdline, key, value, size);

	return r < 0 ? log_errno(r, "find %s= on the kernel's command line", key) : 0;
}

int visit_read_cmdline(struct visit *v)
{
	_cleanup_close_ int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, v->cmdline, sizeof(v->cmdline) - 1);
	int r;

	if (n < 0)
		return log_errno(-errno, "read /proc/cmdline");
	while (n > 0 && v->cmdline[n - 1] == '\n')
		n--;
	v->cmdline[n] = '\0';
	r = word(v, "recount.token", v->token, sizeof(v->token));
	if (r == 0)
		r = word(v, "recount.store", v->store_uuid, sizeof(v->store_uuid));
	if (r == 0)
		r = word(v, "recount.plan", v->plan_sha256, sizeof(v->plan_sha256));
	return r;
}

static void name_damage(const char *path, int err)
{
	log_errno(err, "use %s on the store", path);
}

/* The kernel took the hardware clock for UTC, where other systems keep local time in it. */
static void correct_clock(int64_t rtc_offset_s)
{
	struct timespec now;

	if (rtc_offset_s == 0)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec -= rtc_offset_s;
	if (clock_settime(CLOCK_REALTIME, &now))
		log_errno(-errno, "set the clock to UTC");
}

static int read_plan(struct visit *v, struct store *s)
{
	char id[STORE_ID], sha256[PLAN_SHA256];
	const char *why = NULL;
	int r = store_active(s, id);

	if (r < 0)
		return log_errno(r, "find an active campaign on the store");
	r = store_plan(s, id, &v->plan, sha256, &why);
	if (r < 0)
		return log_errno(r, "read the plan of campaign %s (%s)", id, why ? why : "file");
	if (strcmp(sha256, v->plan_sha256) != 0) {
		log_warn("the plan of campaign %s is not the one this boot was armed for", id);
		return -EPERM;
	}
	correct_clock(v->plan->rtc_offset_s);
	return 0;
}

static int find_canary_bytes(struct visit *v, const struct campaign *c)
{
	const struct plan_boot *canary = &v->plan->boots[0];

	v->canary_read_bytes = calloc(v->plan->n_workloads, sizeof(*v->canary_read_bytes));
	if (!v->canary_read_bytes)
		return -ENOMEM;
	for (size_t w = 0; w < v->plan->n_workloads; w++) {
		v->canary_read_bytes[w] = ABSENT;
		for (size_t t = 0; v->boot->boot > 0 && t < canary->n_trials; t++) {
			const struct trial_record *r =
				campaign_cell_record(c, 0, canary->trials[t].trial);

			if (r && !strcmp(r->workload, v->plan->workloads[w].name) &&
			    !strcmp(r->load, "none"))
				v->canary_read_bytes[w] = r->cold.device_read_bytes;
		}
	}
	return 0;
}

static int find_attempt(struct visit *v, const struct campaign *c)
{
	unsigned boot, attempt;
	const struct attempt_state *state;

	if (!campaign_open_attempt(c, &boot, &attempt)) {
		log_warn("no attempt is armed, so nothing is run");
		return -EPERM;
	}
	state = &c->boots[boot].attempts[attempt - 1];
	if (strcmp(state->armed.token, v->token) != 0) {
		log_warn("this boot's token is %s, but %s is armed, so nothing is run", v->token,
			 state->armed.token);
		return -EPERM;
	}
	v->boot = &v->plan->boots[boot];
	v->attempt = attempt;
	v->bmc_s = state->armed.bmc_s;
	v->entry = plan_find_entry(v->plan, v->boot->entry);
	v->todo = calloc(v->boot->n_trials + 1, 1);
	if (!v->todo || !v->entry)
		return -ENOMEM;
	for (size_t t = 0; t < v->boot->n_trials; t++)
		v->todo[t] = !campaign_cell_record(c, boot, v->boot->trials[t].trial);
	return find_canary_bytes(v, c);
}

int visit_take_over(void)
{
	return unmount_dir(STORE_MOUNT);
}

int visit_identify(struct visit *v)
{
	_cleanup_(cleanup_campaign) struct campaign *c = NULL;
	struct store *s;
	int r = open_store(v, &s);

	if (r < 0)
		return r;
	r = read_plan(v, s);
	if (r == 0)
		r = campaign_load(s, v->plan, name_damage, &c);
	if (r == 0)
		r = find_attempt(v, c);
	return close_store(s, r);
}

/* GRUB puts BOOT_IMAGE in front, and may quote words that need it in another way. */
static int cmdline_is_entrys(const struct visit *v)
{
	return strpbrk(v->entry->cmdline, "\"'\\") || strstr(v->cmdline, v->entry->cmdline);
}

static int put_reached(const struct visit *v, struct store *s)
{
	_cleanup_free_ char *json = NULL;
	struct reached_record record = {.reached_monotonic_ns = spawn_now_ns()};
	struct utsname uts;
	int r;

	uname(&uts);
	snprintf(record.token, sizeof(record.token), "%s", v->token);
	snprintf(record.uname, sizeof(record.uname), "%s", uts.release);
	snprintf(record.cmdline, sizeof(record.cmdline), "%s", v->cmdline);
	r = reached_encode(&record, &json);
	if (r == 0)
		r = put_text(s, v, "reached", "json", json);
	if (r < 0)
		return r;
	if (!strcmp(uts.release, v->entry->version) && cmdline_is_entrys(v))
		return 0;
	log_warn("kernel %s or its command line is not that of entry %s", uts.release,
		 v->entry->label);
	return -EPERM;
}

int visit_reached(struct visit *v)
{
	struct store *s;
	int r = open_store(v, &s);

	return r < 0 ? r : close_store(s, put_reached(v, s));
}

int visit_put_environment(const struct visit *v)
{
	_cleanup_free_ char *json = NULL;
	struct store *s;
	int r = snapshot_take(&json);

	if (r < 0)
		return r;
	r = open_store(v, &s);
	return r < 0 ? r : close_store(s, put_text(s, v, "environment", "json", json));
}

/* A result that cannot be kept is at least shown; the kernel's log takes short lines only. */
static void show_record(char *json)
{
	char *save = NULL;

	log_warn("this record could not be written:");
	for (char *line = strtok_r(json, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		log_info("%s", line);
}

int visit_put_trial(const struct visit *v, const struct trial_record *record, const char *errors)
{
	_cleanup_free_ char *json = NULL;
	char stem[32];
	struct store *s;
	int r = trial_encode(record, &json);

	if (r < 0)
		return log_errno(r, "encode the record of trial %u", record->trial);
	r = open_store(v, &s);
	if (r == 0) {
		snprintf(stem, sizeof(stem), "trial-%02u", record->trial);
		r = put_text(s, v, stem, "json", json);
		if (r == 0 && record->status == TRIAL_FAILED && *errors) {
			snprintf(stem, sizeof(stem), "errors-%02u", record->trial);
			r = put_text(s, v, stem, "txt", errors);
		}
		r = close_store(s, r);
	}
	if (r < 0)
		show_record(json);
	return r;
}

static int put_dmesg(const struct visit *v, struct store *s)
{
	_cleanup_free_ char *buf = malloc(DMESG_BYTES);
	int n = buf ? klogctl(SYSLOG_READ_ALL, buf, DMESG_BYTES - 1) : -1;

	if (n < 0)
		return log_errno(-errno, "read the kernel's messages");
	buf[n] = '\0';
	return put_text(s, v, "dmesg", "txt", buf);
}

/* The reason first: it is small, and the store may be full. */
static int put_failure(const struct visit *v, struct store *s, const char *reason)
{
	int r = arm_book_failure(s, v->plan, v->boot->boot, v->attempt, reason, "");

	if (put_dmesg(v, s) < 0)
		log_warn("going on without the kernel's messages");
	if (oneshot_disarm(STORE_MOUNT "/grub/grubenv") < 0)
		log_warn("the one-shot key stays as it is");
	return r;
}

int visit_fail(const struct visit *v, const char *reason)
{
	struct store *s;
	int r = open_store(v, &s);

	if (r < 0)
		return r;
	log_warn("boot %u, attempt %u: %s", v->boot->boot, v->attempt, reason);
	return close_store(s, put_failure(v, s, reason));
}

/* A kernel without a way to the BMC cannot arm its watchdog for the next boot: the referee can. */
static int comes_home(const struct visit *v, const struct campaign *c, unsigned next)
{
	if (campaign_comes_home(v->plan, v->boot->boot, next))
		return 1;
	if (!campaign_bmc_s(c, next) || bmc_wait("", 0))
		return 0;
	log_info("the BMC's watchdog cannot be armed from this kernel: home first");
	return 1;
}

static int arm_next(const struct visit *v, struct store *s, unsigned *bmc_s)
{
	_cleanup_(cleanup_campaign) struct campaign *c = NULL;
	struct campaign_counts n;
	unsigned boot, attempt;
	char token[RECORD_TOKEN];
	int r = campaign_load(s, v->plan, NULL, &c);

	if (r < 0)
		return log_errno(r, "read the campaign");
	campaign_count(c, &n);
	log_info("done %u of %u, void %u, failed %u", n.trials_finished, n.trials_planned,
		 n.records_void, n.records_failed);
	/* After the canary the referee must have seen the machine's own default come up. */
	if (campaign_next(c, &boot, &attempt) == CAMPAIGN_BOOT && !comes_home(v, c, boot))
		return arm_boot(s, STORE_MOUNT, v->plan, v->plan_sha256, boot, attempt, token,
				bmc_s);
	r = oneshot_disarm(STORE_MOUNT "/grub/grubenv");
	return r < 0 ? log_errno(r, "clear the one-shot") : 0;
}

static int put_done(const struct visit *v, struct store *s)
{
	_cleanup_free_ char *json = NULL;
	struct done_record record = {.done_monotonic_ns = spawn_now_ns()};
	int r;

	snprintf(record.token, sizeof(record.token), "%s", v->token);
	r = done_encode(&record, &json);
	return r < 0 ? r : put_text(s, v, "done", "json", json);
}

int visit_done(const struct visit *v, unsigned *bmc_s)
{
	struct store *s;
	int r = open_store(v, &s);

	*bmc_s = 0;
	if (r < 0)
		return r;
	/* The messages may be what a full store has no room for. */
	r = put_done(v, s);
	if (put_dmesg(v, s) < 0)
		log_warn("going on without the kernel's messages");
	if (r == 0)
		r = arm_next(v, s, bmc_s);
	log_info("unmounting the store");
	return close_store(s, r);
}
