/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes down an attempt, then sets the one-shot key. */
#include "runner/arm.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "grub/oneshot.h"
#include "results/log.h"
#include "runner/bmc.h"

void arm_utc(char text[32])
{
	time_t now = time(NULL);
	struct tm tm;

	strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
}

int arm_put_text(struct store *s, const char *path, const char *text)
{
	int r = store_put(s, path, text, strlen(text));

	return r < 0 && r != -EEXIST ? log_errno(r, "write %s on the store", path) : r;
}

/* Attempts are never removed, so that their number only grows, whatever the clock does. */
int arm_sequence(struct store *s, const struct plan *plan, unsigned *out)
{
	char folder[64], path[128], **boots = NULL, **files = NULL;
	size_t n_boots = 0, n_files = 0, i, k;
	unsigned n = 0;
	int r;

	snprintf(folder, sizeof(folder), "campaigns/%s/boots", plan->id);
	r = store_list(s, folder, &boots, &n_boots);
	for (i = 0; r == 0 && i < n_boots; i++) {
		if (strlen(boots[i]) != 4)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, boots[i]);
		if (store_list(s, path, &files, &n_files) < 0)
			continue;
		for (k = 0; k < n_files; k++)
			n += !strncmp(files[k], "attempt-", strlen("attempt-"));
		store_names_free(files, n_files);
	}
	store_names_free(boots, n_boots);
	if (r < 0)
		return log_errno(r, "count the attempts in %s on the store", folder);
	*out = n + 1;
	return 0;
}

/* Only a plan that has to do with a BMC costs a look at the whole campaign. A BMC that does not
 * answer now would not stop the timer in the boot either. */
static int find_bmc_s(struct store *s, const struct plan *plan, unsigned boot, unsigned *out)
{
	_cleanup_(cleanup_campaign) struct campaign *c = NULL;
	int r;

	*out = 0;
	if (!plan_uses_bmc(plan))
		return 0;
	r = campaign_load(s, plan, NULL, &c);
	if (r < 0)
		return log_errno(r, "read campaign %s", plan->id);
	*out = campaign_bmc_s(c, boot);
	if (*out == 0 || bmc_may_be_armed(""))
		return 0;
	log_warn("boot %u begins without the BMC's watchdog: a hang before recount starts needs a "
		 "power cycle",
		 boot);
	*out = 0;
	return 0;
}

/* @record has bmc_s already. */
static int new_attempt(struct store *s, const char *path, const struct plan *plan,
		       const char *plan_sha256, unsigned boot, unsigned attempt,
		       struct attempt_record *record)
{
	_cleanup_free_ char *json = NULL;
	uint32_t random;
	int r;

	/* Early in a boot the pool may not be ready; the clock then tells attempts apart. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = (uint32_t)time(NULL) ^ (uint32_t)clock();
	*record = (struct attempt_record){.boot = boot, .attempt = attempt, .bmc_s = record->bmc_s};
	snprintf(record->token, sizeof(record->token), "%s-%04u-%u-%08x", plan->id, boot, attempt,
		 random);
	snprintf(record->entry, sizeof(record->entry), "%s", plan->boots[boot].entry);
	snprintf(record->plan_sha256, sizeof(record->plan_sha256), "%s", plan_sha256);
	arm_utc(record->armed_utc);
	r = arm_sequence(s, plan, &record->sequence);
	if (r < 0)
		return r;
	r = attempt_encode(record, &json);
	if (r < 0)
		return log_errno(r, "write down attempt %u at boot %u", attempt, boot);
	return arm_put_text(s, path, json);
}

static int old_attempt(struct store *s, const char *path, struct attempt_record *record)
{
	_cleanup_free_ char *json = NULL;
	size_t len;
	int r = store_get(s, path, RECORD_BYTES_MAX, &json, &len);

	if (r == 0)
		r = attempt_decode(json, len, record);
	return r < 0 && r != -ENOENT ? log_errno(r, "read %s on the store", path) : r;
}

int arm_boot(struct store *s, const char *store_dir, const struct plan *plan,
	     const char *plan_sha256, unsigned boot, unsigned attempt, char token[RECORD_TOKEN],
	     unsigned *bmc_s)
{
	struct attempt_record record = {0};
	const struct plan_entry *entry = plan_find_entry(plan, plan->boots[boot].entry);
	char path[256], grubenv[4096];
	int r;

	if (!entry)
		return log_errno(-EINVAL, "arm boot %u: no entry %s", boot,
				 plan->boots[boot].entry);
	store_boot_path(path, plan->id, boot, "attempt", attempt, "json");
	r = old_attempt(s, path, &record);
	if (r == -ENOENT) {
		r = bmc_s ? find_bmc_s(s, plan, boot, &record.bmc_s) : 0;
		if (r < 0)
			return r;
		r = new_attempt(s, path, plan, plan_sha256, boot, attempt, &record);
	}
	if (r < 0)
		return r;
	snprintf(grubenv, sizeof(grubenv), "%s/grub/grubenv", store_dir);
	r = oneshot_arm(grubenv, entry->id, record.token);
	if (r < 0)
		return log_errno(r, "set the one-shot key in %s", grubenv);
	memcpy(token, record.token, RECORD_TOKEN);
	if (bmc_s)
		*bmc_s = record.bmc_s;
	return 0;
}

int arm_book_failure(struct store *s, const struct plan *plan, unsigned boot, unsigned attempt,
		     const char *reason, const char *evidence)
{
	_cleanup_free_ char *json = NULL;
	struct failed_record record = {0};
	char path[256];
	int r;

	snprintf(record.reason, sizeof(record.reason), "%s", reason);
	snprintf(record.evidence, sizeof(record.evidence), "%s", evidence);
	store_boot_path(path, plan->id, boot, "failed", attempt, "json");
	r = failed_encode(&record, &json);
	if (r == 0)
		r = arm_put_text(s, path, json);
	return r == -EEXIST ? 0 : r;
}
