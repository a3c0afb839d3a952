/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The referee's bookkeeping in a real store folder: evidence, attempts used up, the report, and
 * every step done twice as after a power cut. */
#include "runner/settle.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "grub/envblock.h"
#include "results/digest.h"
#include "runner/arm.h"
#include "runner/unchanged.h"
#include "tests/unit/sample.h"

struct desk {
	char dir[SAMPLE_FOLDER], root[SAMPLE_FOLDER];
	struct plan *plan;
	char sha256[PLAN_SHA256];
	struct settle s;
};

static void write_text(const char *dir, const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		if (mkdir(path, 0755))
			assert_int_equal(errno, EEXIST);
	}
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Gives the sample's entries kernels that exist, with their hashes. */
static void make_kernels(struct desk *d)
{
	char path[512];

	for (size_t i = 0; i < d->plan->n_entries; i++) {
		struct plan_entry *e = &d->plan->entries[i];

		write_text(d->root, e->kernel + 1, e->label);
		snprintf(path, sizeof(path), "%s%s", d->root, e->kernel);
		assert_int_equal(digest_file(path, e->kernel_sha256), 0);
		if (!e->initrd)
			continue;
		write_text(d->root, e->initrd + 1, "an initrd");
		snprintf(path, sizeof(path), "%s%s", d->root, e->initrd);
		assert_int_equal(digest_file(path, e->initrd_sha256), 0);
	}
}

static int setup(void **state)
{
	struct desk *d = calloc(1, sizeof(*d));
	char path[256], *json;
	size_t len;

	assert_non_null(d);
	sample_folder(d->dir);
	sample_folder(d->root);
	d->plan = sample_plan();
	strcpy(d->plan->created_utc, "2019-12-31T00:00:00Z");
	make_kernels(d);
	d->s = (struct settle){
		.store_dir = d->dir, .root = d->root, .plan = d->plan, .plan_sha256 = d->sha256};
	assert_int_equal(store_open(d->dir, &d->s.store), 0);
	assert_int_equal(plan_encode(d->plan, &json, &len), 0);
	digest_bytes(json, len, d->sha256);
	snprintf(path, sizeof(path), "campaigns/%s/plan.json", d->plan->id);
	assert_int_equal(store_put(d->s.store, path, json, len), 0);
	free(json);
	snprintf(path, sizeof(path), "%s/grub", d->dir);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(settle_load(&d->s), 0);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct desk *d = *state;

	settle_clear(&d->s);
	store_close(d->s.store);
	plan_free(d->plan);
	sample_folder_remove(d->dir);
	sample_folder_remove(d->root);
	free(d);
	return 0;
}

/* Arms, and lets GRUB take it as its guard does. */
static void arm_and_take(struct desk *d, unsigned boot, unsigned attempt)
{
	struct envblock *block = malloc(sizeof(*block));
	char token[RECORD_TOKEN], path[256];
	const char *why;

	assert_non_null(block);
	assert_int_equal(
		arm_boot(d->s.store, d->dir, d->plan, d->sha256, boot, attempt, token, NULL), 0);
	snprintf(path, sizeof(path), "%s/grub/grubenv", d->dir);
	assert_int_equal(envblock_read(path, block, &why), 0);
	assert_int_equal(envblock_set(block, "next_entry", NULL), 0);
	assert_int_equal(envblock_set(block, "recount_taken", token), 0);
	assert_int_equal(envblock_write(path, block), 0);
	free(block);
	assert_int_equal(settle_load(&d->s), 0);
}

/* What an attempt's file says of the BMC's watchdog. */
static unsigned recorded_bmc_s(struct desk *d, unsigned boot, unsigned attempt)
{
	assert_int_equal(settle_load(&d->s), 0);
	return d->s.campaign->boots[boot].attempts[attempt - 1].armed.bmc_s;
}

static unsigned arm_guarded(struct desk *d, unsigned boot, unsigned attempt)
{
	char token[RECORD_TOKEN];
	unsigned bmc_s = 99;

	assert_int_equal(
		arm_boot(d->s.store, d->dir, d->plan, d->sha256, boot, attempt, token, &bmc_s), 0);
	return bmc_s;
}

static void put_panic(struct desk *d, const char *text, time_t mtime_s)
{
	struct timespec times[2] = {{.tv_sec = mtime_s}, {.tv_sec = mtime_s}};
	char path[512];

	write_text(d->root, "sys/fs/pstore/dmesg-efi-1", text);
	snprintf(path, sizeof(path), "%s/sys/fs/pstore/dmesg-efi-1", d->root);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int has_panic(const struct desk *d)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/sys/fs/pstore/dmesg-efi-1", d->root);
	return access(path, F_OK) == 0;
}

static char *get(struct desk *d, const char *path)
{
	char *text = NULL;
	size_t len;

	return store_get(d->s.store, path, RECORD_BYTES_MAX, &text, &len) == 0 ? text : NULL;
}

static void case_57_panic_is_booked_with_its_text_and_deleted(void **state)
{
	struct desk *d = *state;
	struct referee_finding f;
	const struct attempt_state *a;
	char *text;

	arm_and_take(d, 0, 1);
	put_panic(d, "Panic#1 Part1\nKernel panic - not syncing: VFS\n", time(NULL) + 5);
	assert_int_equal(settle_open(&d->s, "", &f), 0);
	assert_int_equal(f.verdict, REFEREE_BOOK);
	a = &d->s.campaign->boots[0].attempts[0];
	assert_true(a->failed);
	assert_string_equal(a->failure.reason, "panic");
	assert_string_equal(a->failure.evidence, "panic-1.txt");
	text = get(d, "campaigns/" SAMPLE_ID "/boots/0000/panic-1.txt");
	assert_non_null(text);
	assert_non_null(strstr(text, "not syncing: VFS"));
	free(text);
	assert_false(has_panic(d));
}

static void panic_text_written_before_a_power_cut_is_not_written_twice(void **state)
{
	struct desk *d = *state;
	struct referee_finding f;
	const char *path = "campaigns/" SAMPLE_ID "/boots/0000/panic-1.txt";
	char *text;

	arm_and_take(d, 0, 1);
	put_panic(d, "Panic#1 Part1\nagain\n", time(NULL) + 5);
	assert_int_equal(store_put(d->s.store, path, "first\n", 6), 0);
	assert_int_equal(settle_open(&d->s, "", &f), 0);
	assert_string_equal(f.reason, "panic");
	assert_true(d->s.campaign->boots[0].attempts[0].failed);
	text = get(d, path);
	assert_string_equal(text, "first\n");
	free(text);
	assert_false(has_panic(d));
}

static void case_59_not_reached_is_booked_once(void **state)
{
	struct desk *d = *state;
	struct referee_finding f;
	unsigned boot = 9, attempt = 9;

	arm_and_take(d, 0, 1);
	assert_int_equal(settle_open(&d->s, "", &f), 0);
	assert_string_equal(f.reason, "not-reached");
	assert_int_equal(settle_open(&d->s, "", &f), 0);
	assert_int_equal(f.verdict, REFEREE_NONE);
	assert_int_equal(settle_next(&d->s, &f, d->plan->default_uname, 0, &boot, &attempt),
			 REFEREE_ARM);
	assert_int_equal(boot, 0);
	assert_int_equal(attempt, 2);
}

static void case_28_damaged_block_means_that_grub_took_nothing(void **state)
{
	struct desk *d = *state;
	struct referee_finding f;

	arm_and_take(d, 0, 1);
	write_text(d->dir, "grub/grubenv", "");
	assert_int_equal(settle_open(&d->s, "", &f), 0);
	assert_int_equal(f.verdict, REFEREE_REARM);
	assert_false(d->s.campaign->boots[0].attempts[0].failed);
}

static void arming_again_is_counted_and_bounded(void **state)
{
	struct desk *d = *state;

	for (int i = 0; i < REFEREE_REARMS_MAX; i++)
		assert_int_equal(settle_rearmed(&d->s, 0, 1, REFEREE_REARMS_MAX), 0);
	assert_int_equal(settle_rearmed(&d->s, 0, 1, REFEREE_REARMS_MAX), -ETIME);
	/* another attempt counts anew */
	assert_int_equal(settle_rearmed(&d->s, 0, 2, REFEREE_REARMS_MAX), 0);
}

static void armed_again_just_now_needs_no_person(void **state)
{
	struct desk *d = *state;
	struct attempt_state *a;
	struct referee_finding none = {.verdict = REFEREE_NONE};
	unsigned boot, attempt;

	arm_and_take(d, 0, 1);
	assert_int_equal(arm_book_failure(d->s.store, d->plan, 0, 1, "not-reached", ""), 0);
	assert_int_equal(settle_load(&d->s), 0);
	a = &d->s.campaign->boots[0].attempts[0];
	strcpy(a->armed.armed_utc, "2020-01-01T00:00:00Z");
	assert_int_equal(settle_next(&d->s, &none, d->plan->default_uname, 0, &boot, &attempt),
			 REFEREE_WAIT);
	assert_int_equal(settle_rearmed(&d->s, 0, 1, REFEREE_REARMS_MAX), 0);
	assert_int_equal(settle_next(&d->s, &none, d->plan->default_uname, 0, &boot, &attempt),
			 REFEREE_ARM);
}

static void panic_from_before_it_was_armed_again_is_not_its_own(void **state)
{
	struct desk *d = *state;
	struct attempt_state *a;
	struct referee_finding f;

	arm_and_take(d, 0, 1);
	a = &d->s.campaign->boots[0].attempts[0];
	strcpy(a->armed.armed_utc, "2020-01-01T00:00:00Z");
	assert_int_equal(settle_rearmed(&d->s, 0, 1, REFEREE_REARMS_MAX), 0);
	put_panic(d, "Panic#1 Part1\nof another day\n", time(NULL) - 7200);
	assert_int_equal(settle_open(&d->s, "", &f), 0);
	assert_string_equal(f.reason, "not-reached");
	assert_true(has_panic(d));
}

static void unchanged_kernels_are_left_alone(void **state)
{
	struct desk *d = *state;
	struct referee_finding none = {.verdict = REFEREE_NONE};

	assert_int_equal(settle_changed(&d->s, &none), 0);
	for (size_t i = 0; i < d->plan->n_boots; i++)
		assert_int_equal(d->s.campaign->boots[i].n_attempts, 0);
}

static void changed_kernel_gives_up_what_is_left_of_it(void **state)
{
	struct desk *d = *state;
	struct referee_finding f;

	arm_and_take(d, 0, 1); /* stays open: GRUB took it */
	write_text(d->dir, "grub/grubenv", "");
	assert_int_equal(settle_open(&d->s, "", &f), 0);
	assert_int_equal(f.verdict, REFEREE_REARM);
	write_text(d->root, "boot/vmlinuz-6.1.0-57-amd64", "another");
	assert_int_equal(settle_changed(&d->s, &f), 1);
	/* boots 0, 2 and 4 are of this kernel; the open attempt must not be armed again */
	assert_int_equal(f.verdict, REFEREE_NONE);
	for (unsigned boot = 0; boot < d->plan->n_boots; boot++) {
		const struct boot_state *b = &d->s.campaign->boots[boot];
		int left = strcmp(d->plan->boots[boot].entry, "6.1.0-57") != 0;

		assert_int_equal(b->n_attempts, left ? 0 : d->plan->retries);
		for (unsigned a = 0; a < b->n_attempts; a++) {
			assert_true(b->attempts[a].failed);
			assert_string_equal(b->attempts[a].failure.reason, "changed");
		}
		assert_int_equal(campaign_cell_finished(d->s.campaign, boot, 1), !left);
	}
	/* and once more, as after a power cut */
	assert_int_equal(settle_changed(&d->s, &f), 0);
}

static void changed_initrd_gives_up_what_is_left_of_its_entry(void **state)
{
	struct desk *d = *state;
	struct referee_finding none = {.verdict = REFEREE_NONE};

	write_text(d->root, "boot/initrd.img-6.1.0-57-amd64", "rebuilt");
	assert_int_equal(settle_changed(&d->s, &none), 1);
	for (unsigned boot = 0; boot < d->plan->n_boots; boot++) {
		const struct boot_state *b = &d->s.campaign->boots[boot];
		int left = strcmp(d->plan->boots[boot].entry, "6.1.0-57") != 0;

		assert_int_equal(b->n_attempts, left ? 0 : d->plan->retries);
	}
	/* without a hash of it nobody can tell */
	d->plan->entries[0].initrd_sha256[0] = '\0';
	for (unsigned boot = 0; boot < d->plan->n_boots; boot++)
		d->s.campaign->boots[boot].n_attempts = 0;
	assert_int_equal(settle_changed(&d->s, &none), 0);
}

static void missing_initrd_is_a_changed_one(void **state)
{
	struct desk *d = *state;
	struct referee_finding none = {.verdict = REFEREE_NONE};
	char path[512];

	snprintf(path, sizeof(path), "%s/boot/initrd.img-6.1.0-57-amd64", d->root);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(settle_changed(&d->s, &none), 1);
	assert_string_equal(d->s.campaign->boots[0].attempts[0].failure.reason, "changed");
}

static void toolchain_that_changed_is_named(void **state)
{
	struct desk *d = *state;
	const char *which = NULL;
	char path[512];

	for (size_t i = 0; i < d->plan->n_toolchain; i++) {
		write_text(d->root, d->plan->toolchain[i].name + 1, "a program");
		snprintf(path, sizeof(path), "%s%s", d->root, d->plan->toolchain[i].name);
		assert_int_equal(digest_file(path, d->plan->toolchain[i].value), 0);
	}
	assert_int_equal(unchanged_toolchain(d->root, d->plan, &which), 0);
	assert_null(which);
	write_text(d->root, "usr/bin/make", "another program");
	assert_int_equal(unchanged_toolchain(d->root, d->plan, &which), 1);
	assert_string_equal(which, "/usr/bin/make");
	write_text(d->root, "usr/bin/make", "a program");
	assert_int_equal(unchanged_toolchain(d->root, d->plan, &which), 0);
	/* removed, or no file any more */
	snprintf(path, sizeof(path), "%s/usr/bin/gcc-12", d->root);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unchanged_toolchain(d->root, d->plan, &which), 1);
	assert_string_equal(which, "/usr/bin/gcc-12");
	assert_int_equal(symlink("make", path), 0);
	assert_int_equal(unchanged_toolchain(d->root, d->plan, &which), 1);
}

/* With the clock of a kernel that took a clock in local time for UTC, and of one without any. */
static void case_57_panic_is_found_whatever_the_clocks_say(void **state)
{
	struct desk *d = *state;
	struct attempt_state *a;
	struct referee_finding f;

	arm_and_take(d, 0, 1);
	d->plan->rtc_offset_s = -5 * 3600;
	put_panic(d, "Panic#1 Part1\nearly\n", time(NULL) - 5 * 3600 + 5);
	assert_int_equal(settle_open(&d->s, "", &f), 0);
	assert_string_equal(f.reason, "panic");

	d->plan->rtc_offset_s = 0;
	arm_and_take(d, 0, 2);
	a = &d->s.campaign->boots[0].attempts[1];
	strcpy(a->armed.armed_utc, "1970-01-01T00:03:00Z");
	/* text from before the plan was made is nobody's here */
	put_panic(d, "Panic#1 Part1\nof last year\n", 1546300800);
	assert_int_equal(settle_open(&d->s, "", &f), 0);
	assert_string_equal(f.reason, "not-reached");
	assert_true(has_panic(d));
}

static void attempts_are_numbered_in_the_order_of_arming(void **state)
{
	struct desk *d = *state;
	unsigned boot, attempt;
	int64_t armed_s;

	arm_and_take(d, 4, 1);
	arm_and_take(d, 1, 1);
	arm_and_take(d, 4, 1); /* again: the same attempt */
	arm_and_take(d, 1, 2);
	assert_int_equal(d->s.campaign->boots[4].attempts[0].armed.sequence, 1);
	assert_int_equal(d->s.campaign->boots[1].attempts[0].armed.sequence, 2);
	assert_int_equal(d->s.campaign->boots[1].attempts[1].armed.sequence, 3);
	assert_int_equal(referee_last_armed(d->s.campaign, &boot, &attempt, &armed_s), 1);
	assert_int_equal(boot, 1);
	assert_int_equal(attempt, 2);
}

static void changed_kernel_is_given_up_also_with_attempts_that_cost_nothing(void **state)
{
	struct desk *d = *state;
	struct referee_finding none = {.verdict = REFEREE_NONE};

	for (unsigned attempt = 1; attempt <= 2; attempt++) {
		arm_and_take(d, 2, attempt);
		assert_int_equal(
			arm_book_failure(d->s.store, d->plan, 2, attempt, "root-dirty", ""), 0);
	}
	assert_int_equal(settle_load(&d->s), 0);
	assert_int_equal(campaign_attempts_left(d->s.campaign, 2), d->plan->retries);
	write_text(d->root, "boot/vmlinuz-6.1.0-57-amd64", "another");
	assert_int_equal(settle_changed(&d->s, &none), 1);
	assert_int_equal(campaign_cell_finished(d->s.campaign, 2, 1), 1);
	assert_int_equal(settle_changed(&d->s, &none), 0);
}

static void missing_kernel_is_a_changed_one(void **state)
{
	struct desk *d = *state;
	struct referee_finding none = {.verdict = REFEREE_NONE};
	char path[512];

	snprintf(path, sizeof(path), "%s/boot/vmlinuz-7.3", d->root);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(settle_changed(&d->s, &none), 1);
	assert_string_equal(d->s.campaign->boots[3].attempts[0].failure.reason, "changed");
}

static void kernel_that_became_a_link_is_a_changed_one(void **state)
{
	struct desk *d = *state;
	struct referee_finding none = {.verdict = REFEREE_NONE};
	char path[512];

	snprintf(path, sizeof(path), "%s/boot/vmlinuz-7.3", d->root);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("vmlinuz-6.1.0-57-amd64", path), 0);
	assert_int_equal(settle_changed(&d->s, &none), 1);
}

/* An unmounted /boot is an empty folder, or none: no evidence against any kernel. */
static void kernels_that_cannot_be_seen_are_not_given_up(void **state)
{
	struct desk *d = *state;
	struct referee_finding none = {.verdict = REFEREE_NONE};
	char boot[512], away[512], file[1024];
	struct stat st;

	snprintf(boot, sizeof(boot), "%s/boot", d->root);
	snprintf(away, sizeof(away), "%s/away", d->root);
	assert_int_equal(rename(boot, away), 0);
	assert_int_equal(settle_changed(&d->s, &none), -ENOENT);
	assert_int_equal(mkdir(boot, 0755), 0);
	assert_int_equal(settle_changed(&d->s, &none), -ENOENT);
	/* and an error of the way there */
	assert_int_equal(rmdir(boot), 0);
	assert_int_equal(symlink("boot", boot), 0);
	assert_int_equal(settle_changed(&d->s, &none), -ELOOP);
	snprintf(file, sizeof(file), "%s/campaigns/" SAMPLE_ID "/boots", d->dir);
	assert_int_equal(stat(file, &st), -1);
}

static void case_61_report_says_why_and_gives_way_to_a_later_one(void **state)
{
	struct desk *d = *state;
	const char *path = "campaigns/" SAMPLE_ID "/report/report.txt";
	char *text, *json;

	assert_int_equal(settle_report(&d->s, "ended early: for a reason"), 0);
	text = get(d, path);
	assert_non_null(text);
	assert_ptr_equal(strstr(text, "ended early"), text);
	free(text);
	assert_int_equal(settle_report(&d->s, ""), 0);
	text = get(d, path);
	assert_non_null(text);
	assert_null(strstr(text, "ended early"));
	free(text);
	json = get(d, "campaigns/" SAMPLE_ID "/report/report.json");
	assert_non_null(json);
	assert_int_equal(json[0], '{');
	free(json);
}

static int bmc_answers;

int __wrap_bmc_may_be_armed(const char *root);

int __wrap_bmc_may_be_armed(const char *root)
{
	assert_string_equal(root, "");
	return bmc_answers;
}

static void watchdog_of_the_bmc_is_armed_where_it_can_be_stopped(void **state)
{
	struct desk *d = *state;
	const char *label = d->plan->boots[1].entry;

	bmc_answers = 1;
	assert_int_equal(arm_guarded(d, 0, 1), 0);
	for (size_t i = 0; i < d->plan->n_entries; i++)
		if (!strcmp(d->plan->entries[i].label, label))
			d->plan->entries[i].bmc_s = 1200;
	assert_int_equal(arm_guarded(d, 1, 1), 1200);
	assert_int_equal(recorded_bmc_s(d, 1, 1), 1200);
	assert_int_equal(arm_guarded(d, 2, 1), 0);
	assert_int_equal(recorded_bmc_s(d, 2, 1), 0);
	/* A reboot that is left to a person is no moment to count from; and what is written down of
	 * an attempt stays. */
	arm_and_take(d, 1, 2);
	assert_int_equal(recorded_bmc_s(d, 1, 2), 0);
	assert_int_equal(arm_guarded(d, 1, 2), 0);
	assert_int_equal(arm_guarded(d, 1, 1), 1200);
	/* A BMC that does not answer would not stop it in the boot either. */
	bmc_answers = 0;
	assert_int_equal(arm_guarded(d, 6, 1), 0);
	assert_int_equal(recorded_bmc_s(d, 6, 1), 0);
	bmc_answers = 1;
	assert_int_equal(arm_guarded(d, 6, 2), 1200);
	/* One that was not stopped in time is not armed again, in any boot of the entry. */
	assert_string_equal(d->plan->boots[6].entry, label);
	assert_int_equal(arm_book_failure(d->s.store, d->plan, 1, 1, "bmc-not-stopped", ""), 0);
	assert_int_equal(arm_guarded(d, 1, 3), 0);
	assert_int_equal(arm_guarded(d, 6, 3), 0);
	assert_int_equal(recorded_bmc_s(d, 6, 3), 0);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(case_57_panic_is_booked_with_its_text_and_deleted),
		CASE(panic_text_written_before_a_power_cut_is_not_written_twice),
		CASE(case_59_not_reached_is_booked_once),
		CASE(case_28_damaged_block_means_that_grub_took_nothing),
		CASE(arming_again_is_counted_and_bounded),
		CASE(armed_again_just_now_needs_no_person),
		CASE(panic_from_before_it_was_armed_again_is_not_its_own),
		CASE(unchanged_kernels_are_left_alone),
		CASE(changed_kernel_gives_up_what_is_left_of_it),
		CASE(changed_kernel_is_given_up_also_with_attempts_that_cost_nothing),
		CASE(changed_initrd_gives_up_what_is_left_of_its_entry),
		CASE(missing_initrd_is_a_changed_one),
		CASE(toolchain_that_changed_is_named),
		CASE(case_57_panic_is_found_whatever_the_clocks_say),
		CASE(attempts_are_numbered_in_the_order_of_arming),
		CASE(missing_kernel_is_a_changed_one),
		CASE(kernel_that_became_a_link_is_a_changed_one),
		CASE(kernels_that_cannot_be_seen_are_not_given_up),
		CASE(case_61_report_says_why_and_gives_way_to_a_later_one),
		CASE(watchdog_of_the_bmc_is_armed_where_it_can_be_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
