/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where GRUB is told to find kernels, and how much room a campaign asks for. */
#include "runner/launch.h"

#include <errno.h>

#include "tests/unit/sample.h"

#define SHA "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"

static const struct device root_device = {.name = "sda2", .uuid = "00000000-aaaa"};
static const struct device boot_device = {.name = "sda1", .uuid = "00000000-bbbb"};

/* The entry of @kernel in the block: from its title to its end; free(). */
static char *entry_of(const char *block, const char *label)
{
	char title[64];
	const char *at, *end;

	snprintf(title, sizeof(title), "recount: %s", label);
	at = strstr(block, title);
	assert_non_null(at);
	end = strstr(at, "\n}");
	assert_non_null(end);
	return strndup(at, (size_t)(end - at));
}

static void separate_boot_partition_has_no_boot_in_its_paths(void **state)
{
	struct machine m = {
		.root = "", .root_dev = &root_device, .boot_dev = &boot_device, .boot_prefix = ""};
	struct plan *plan = sample_plan();
	char *block = NULL, *entry;

	(void)state;
	assert_int_equal(launch_block(&m, plan, SHA, &block), 0);
	entry = entry_of(block, "6.1.0-57");
	assert_non_null(strstr(entry, "00000000-bbbb"));
	assert_non_null(strstr(entry, "/vmlinuz-6.1.0-57-amd64"));
	assert_null(strstr(entry, "/boot/vmlinuz"));
	assert_non_null(strstr(entry, "/initrd.img-6.1.0-57-amd64"));
	assert_non_null(strstr(entry, "rdinit=/recount-init"));
	assert_non_null(strstr(entry, "recount.plan=" SHA));
	free(entry);
	free(block);
	plan_free(plan);
}

/* The kernel leaves what stands behind "--" to init. */
static void own_words_stand_before_those_of_the_distribution(void **state)
{
	struct machine m = {.root = "", .root_dev = &root_device, .boot_dev = &root_device};
	struct plan *plan = sample_plan();
	char *block = NULL, *entry;
	const char *dashes;

	(void)state;
	free(plan->entries[1].cmdline);
	plan->entries[1].cmdline = strdup("root=UUID=aaaa ro -- single");
	assert_int_equal(launch_block(&m, plan, SHA, &block), 0);
	entry = entry_of(block, "6.12.117");
	dashes = strstr(entry, "'--'");
	assert_non_null(dashes);
	assert_true(strstr(entry, "rdinit=/recount-init") < dashes);
	assert_true(strstr(entry, "recount.store=") < dashes);
	assert_true(strstr(entry, "recount.plan=" SHA) < dashes);
	assert_true(strstr(entry, "recount.token=") < dashes);
	free(entry);
	free(block);
	plan_free(plan);
}

static void kernel_beside_its_modules_is_found_on_the_root_file_system(void **state)
{
	struct machine m = {
		.root = "", .root_dev = &root_device, .boot_dev = &boot_device, .boot_prefix = ""};
	struct plan *plan = sample_plan();
	char *block = NULL, *entry;

	(void)state;
	free(plan->entries[1].kernel);
	plan->entries[1].kernel = strdup("/usr/lib/modules/6.12.117/vmlinuz");
	assert_int_equal(launch_block(&m, plan, SHA, &block), 0);
	entry = entry_of(block, "6.12.117");
	assert_non_null(strstr(entry, "00000000-aaaa"));
	assert_non_null(strstr(entry, "/usr/lib/modules/6.12.117/vmlinuz"));
	free(entry);
	free(block);
	plan_free(plan);
}

static void kernel_and_initrd_on_two_file_systems_are_refused(void **state)
{
	struct machine m = {
		.root = "", .root_dev = &root_device, .boot_dev = &boot_device, .boot_prefix = ""};
	struct plan *plan = sample_plan();
	char *block = NULL;

	(void)state;
	free(plan->entries[0].kernel);
	plan->entries[0].kernel = strdup("/usr/lib/modules/6.1.0-57-amd64/vmlinuz");
	assert_int_equal(launch_block(&m, plan, SHA, &block), -EXDEV);
	assert_null(block);
	plan_free(plan);
}

static void menu_of_the_distribution_knows_best(void **state)
{
	struct menu_entry e = {.title = "Debian",
			       .linux_path = "/@/boot/vmlinuz-6.1.0-57-amd64",
			       .initrd_paths = "/@/boot/intel-ucode.img "
					       "/@/boot/initrd.img-6.1.0-57-amd64",
			       .fs_uuid = "00000000-cccc"};
	struct menu menu = {.entries = &e, .n = 1};
	struct machine m = {.root = "",
			    .root_dev = &root_device,
			    .boot_dev = &root_device,
			    .boot_prefix = "/boot",
			    .menu = &menu};
	struct plan *plan = sample_plan();
	char *block = NULL, *entry;

	(void)state;
	assert_int_equal(launch_block(&m, plan, SHA, &block), 0);
	entry = entry_of(block, "6.1.0-57");
	assert_non_null(strstr(entry, "00000000-cccc"));
	assert_non_null(strstr(entry, "/@/boot/vmlinuz-6.1.0-57-amd64"));
	assert_non_null(strstr(entry, "/@/boot/intel-ucode.img"));
	free(entry);
	/* the menu does not know this one: as the machine's own mounts say */
	entry = entry_of(block, "6.12.117");
	assert_non_null(strstr(entry, "/boot/vmlinuz-6.12.117"));
	assert_non_null(strstr(entry, "00000000-aaaa"));
	free(entry);
	free(block);
	plan_free(plan);
}

static void room_grows_with_boots_and_attempts(void **state)
{
	struct plan *plan = sample_plan();
	uint64_t two = launch_store_bytes(plan, 1 << 20), fewer, larger;

	(void)state;
	plan->n_boots--;
	fewer = launch_store_bytes(plan, 1 << 20);
	plan->n_boots++;
	plan->retries++;
	larger = launch_store_bytes(plan, 1 << 20);
	assert_true(fewer < two && two < larger);
	assert_true(two > 2 << 20);
	/* every trial of every attempt may fail with 64 KiB of complaints */
	plan->retries--;
	for (size_t i = 0; i < plan->n_boots; i++)
		plan->boots[i].n_trials = 0;
	assert_true(two - launch_store_bytes(plan, 1 << 20) >=
		    (uint64_t)plan->n_boots * plan->retries * 2 * (64 << 10));
	for (size_t i = 0; i < plan->n_boots; i++)
		plan->boots[i].n_trials = 2;
	plan_free(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(separate_boot_partition_has_no_boot_in_its_paths),
		cmocka_unit_test(own_words_stand_before_those_of_the_distribution),
		cmocka_unit_test(kernel_beside_its_modules_is_found_on_the_root_file_system),
		cmocka_unit_test(kernel_and_initrd_on_two_file_systems_are_refused),
		cmocka_unit_test(menu_of_the_distribution_knows_best),
		cmocka_unit_test(room_grows_with_boots_and_attempts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
