/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans: the order of boots and loads, the entries, the sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>

#include "results/digest.h"
#include "runner/bmc.h"
#include "runner/planner.h"
#include "runner/shuffle.h"
#include "tests/unit/fakeroot.h"

#define GIB    (UINT64_C(1) << 30)
#define HASH   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define UUID_A "11111111-2222-4333-8444-555555555555"
#define UUID_B "21111111-2222-4333-8444-555555555555"
#define UUID_C "31111111-2222-4333-8444-555555555555"
#define UUID_D "41111111-2222-4333-8444-555555555555"

struct fixture {
	char root[FAKEROOT_PATH];
	struct options o;
	struct machine m;
	struct device root_dev, store, arena, swap;
	struct kernel kernels[4];
	struct menu_entry entries[2];
	struct menu menu;
	struct prepared prepared;
	int stderr_fd; /* the real one, while refusals go to /dev/null */
};

static char *clean_argv[] = {"make", "clean", NULL};
static char *build_argv[] = {"make", "vmlinux", NULL};

static void device(struct device *d, const char *uuid, const char *type, uint64_t bytes)
{
	*d = (struct device){.bytes = bytes};
	snprintf(d->uuid, sizeof(d->uuid), "%s", uuid);
	snprintf(d->type, sizeof(d->type), "%s", type);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	sample_folder(f->root);
	fakeroot_put(f->root, "boot/vmlinuz-6.1.0", "one", 3);
	fakeroot_put(f->root, "boot/vmlinuz-6.12.9", "two", 3);
	fakeroot_put(f->root, "boot/vmlinuz-7.3.0", "three", 5);
	fakeroot_put(f->root, "boot/initrd.img-6.1.0", "initrd one", 10);
	fakeroot_put(f->root, "boot/initrd.img-6.12.9", "initrd two", 10);
	options_init(&f->o);
	f->o.root = f->root;
	f->o.seed = 42;
	f->o.has_seed = 1;
	f->kernels[0] = (struct kernel){
		"6.1", "6.1.0", "/boot/vmlinuz-6.1.0", "/boot/initrd.img-6.1.0", 1, NULL, 0};
	f->kernels[1] = (struct kernel){
		"6.5", "6.5.0", "/boot/vmlinuz-6.5.0", NULL, 0, "its initrd is empty", 0};
	f->kernels[2] = (struct kernel){
		"6.12", "6.12.9", "/boot/vmlinuz-6.12.9", "/boot/initrd.img-6.12.9", 1, NULL, 0};
	f->kernels[3] = (struct kernel){"7.3", "7.3.0", "/boot/vmlinuz-7.3.0", NULL, 0, NULL, 0};
	f->entries[0] = (struct menu_entry){.title = "Debian",
					    .linux_path = "/boot/vmlinuz-6.1.0",
					    .cmdline = "root=UUID=" UUID_A " ro quiet"};
	f->entries[1] = (struct menu_entry){.title = "Debian, 6.12",
					    .linux_path = "/boot/vmlinuz-6.12.9",
					    .cmdline = "root=UUID=" UUID_A " ro nosmt"};
	f->menu = (struct menu){.entries = f->entries, .n = 2, .default_entry = f->entries};
	device(&f->root_dev, UUID_A, "ext4", 8 * GIB);
	device(&f->store, UUID_B, "ext4", GIB);
	device(&f->arena, UUID_C, "ext4", 8 * GIB);
	device(&f->swap, UUID_D, "swap", 2 * GIB);
	f->m = (struct machine){.root = f->root,
				.uname = "6.1.0",
				.cpus = 4,
				.memtotal_bytes = 4 * GIB,
				.root_dev = &f->root_dev,
				.root_fstype = "ext4",
				.store = &f->store,
				.arena = &f->arena,
				.swap = &f->swap,
				.menu = &f->menu,
				.kernels = {f->kernels, ARRAY_SIZE(f->kernels)}};
	f->prepared = (struct prepared){
		.workload = {.name = "kernel",
			     .dir = "linux",
			     .clean = clean_argv,
			     .build = build_argv,
			     .product = "vmlinux",
			     .product_sha256 = HASH,
			     .tree_sha256 = HASH,
			     .build_ns = 300 * INT64_C(1000000000)},
		.jobs = 4,
		.build_uid = 65534,
		.arena_uuid = UUID_C,
	};
	f->stderr_fd = dup(STDERR_FILENO);
	assert_true(dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO) >= 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	assert_true(dup2(f->stderr_fd, STDERR_FILENO) >= 0);
	sample_folder_remove(f->root);
	free(f);
	return 0;
}

static struct plan *draw(struct fixture *f)
{
	struct plan *plan = NULL;

	assert_int_equal(planner_draw(&f->o, &f->m, &f->prepared, "2026-11-30-a", &plan), 0);
	return plan;
}

static char *encoded(const struct plan *plan)
{
	char *json;
	size_t len;

	assert_int_equal(plan_encode(plan, &json, &len), 0);
	return json;
}

static void same_seed_draws_the_same_order(void **state)
{
	struct fixture *f = *state;
	struct plan *a = draw(f), *b = draw(f), *other;
	int differs = 0;

	f->o.seed = 43;
	other = draw(f);
	assert_int_equal(a->n_boots, b->n_boots);
	for (size_t i = 0; i < a->n_boots; i++) {
		assert_string_equal(a->boots[i].entry, b->boots[i].entry);
		for (size_t k = 0; k < a->boots[i].n_trials; k++)
			assert_string_equal(a->boots[i].trials[k].load, b->boots[i].trials[k].load);
		differs |= strcmp(a->boots[i].entry, other->boots[i].entry) != 0;
	}
	assert_true(differs);
	plan_free(a);
	plan_free(b);
	plan_free(other);
}

/* Seed and generator are a part of the format: an old plan must be drawn again by a new version. */
static void order_of_a_seed_is_the_one_it_always_was(void **state)
{
	static const size_t first[] = {1, 2, 0, 4, 3}, second[] = {3, 4, 1, 2, 0};
	struct shuffle s = {42};
	size_t order[5];

	(void)state;
	shuffle_order(&s, order, 5);
	assert_memory_equal(order, first, sizeof(first));
	shuffle_order(&s, order, 5);
	assert_memory_equal(order, second, sizeof(second));
}

static void every_order_is_equally_likely(void **state)
{
	struct shuffle s = {1};
	unsigned counts[27] = {0}, n = 60000;
	size_t order[3];

	(void)state;
	for (unsigned i = 0; i < n; i++) {
		shuffle_order(&s, order, 3);
		counts[order[0] * 9 + order[1] * 3 + order[2]]++;
	}
	for (size_t i = 0, seen = 0; i < 27; i++) {
		if (!counts[i])
			continue;
		assert_true(++seen <= 6);
		/* Five standard deviations. */
		assert_in_range(counts[i], n / 6 - 457, n / 6 + 457);
	}
}

static void each_round_boots_every_entry_once(void **state)
{
	struct fixture *f = *state;
	struct plan *plan;

	f->o.rounds = 20;
	plan = draw(f);
	assert_int_equal(plan->n_entries, 3);
	assert_int_equal(plan->n_boots, 61);
	assert_int_equal(plan->boots_max, 2 * 61 + 10);
	for (size_t i = 1; i < plan->n_boots; i += 3) {
		unsigned seen = 0;

		for (size_t k = i; k < i + 3; k++) {
			assert_int_equal(plan->boots[k].round, (i - 1) / 3 + 1);
			seen |= 1u << (plan_find_entry(plan, plan->boots[k].entry) - plan->entries);
		}
		assert_int_equal(seen, 7);
	}
	plan_free(plan);
}

static void loads_are_permuted_between_rounds_only(void **state)
{
	struct fixture *f = *state;
	struct plan *plan;
	int differs = 0;

	f->o.rounds = 20;
	plan = draw(f);
	assert_int_equal(plan->n_loads, 4);
	for (size_t i = 1; i < plan->n_boots; i++) {
		const struct plan_boot *b = &plan->boots[i],
				       *first = &plan->boots[(i - 1) / 3 * 3 + 1];
		unsigned seen = 0;

		assert_int_equal(b->n_trials, 4);
		for (size_t k = 0; k < 4; k++) {
			assert_int_equal(b->trials[k].trial, k + 1);
			assert_int_equal(b->trials[k].jobs, 4);
			assert_string_equal(b->trials[k].load, first->trials[k].load);
			seen |= 1u << (plan_find_load(plan, b->trials[k].load) - plan->loads);
			differs |= strcmp(b->trials[k].load, plan->boots[1].trials[k].load) != 0;
		}
		assert_int_equal(seen, 15);
	}
	assert_true(differs);
	plan_free(plan);
}

static void canary_is_the_running_kernel(void **state)
{
	struct fixture *f = *state;
	struct plan *plan = draw(f);

	assert_string_equal(plan->boots[0].entry, "6.1");
	assert_int_equal(plan->boots[0].round, 0);
	assert_int_equal(plan->boots[0].n_trials, 1);
	assert_string_equal(plan->boots[0].trials[0].load, "none");
	assert_int_equal(plan->boots[1].n_trials, plan->n_loads);
	assert_string_equal(plan->baseline, "6.1");
	assert_string_equal(plan->default_uname, "6.1.0");
	plan_free(plan);
}

static void canary_is_booted_also_when_it_is_not_compared(void **state)
{
	struct fixture *f = *state;
	struct plan *plan;

	f->o.kernels = "7.*,6.12";
	f->o.rounds = 2;
	plan = draw(f);
	assert_int_equal(plan->n_entries, 3);
	assert_int_equal(plan->n_boots, 5);
	assert_string_equal(plan->boots[0].entry, "6.1");
	assert_string_equal(plan->baseline, "6.12");
	for (size_t i = 1; i < plan->n_boots; i++)
		assert_string_not_equal(plan->boots[i].entry, "6.1");
	plan_free(plan);
}

static void entries_have_the_menus_command_lines(void **state)
{
	struct fixture *f = *state;
	struct plan *plan;
	char hex[PLAN_SHA256];

	f->o.appends[0].label = "6.12";
	f->o.appends[0].cmdline = "mitigations=off a b";
	f->o.appends[1].label = "6.12";
	f->o.appends[1].cmdline = "mitigations=off a b";
	f->o.n_appends = 2;
	plan = draw(f);
	assert_int_equal(plan->n_entries, 5);
	assert_string_equal(plan->entries[0].id, "recount-e01");
	assert_string_equal(plan->entries[0].cmdline,
			    "root=UUID=" UUID_A
			    " ro panic=10 rd.shell=0 rd.emergency=reboot noresume");
	assert_string_equal(plan->entries[1].cmdline,
			    "root=UUID=" UUID_A
			    " ro nosmt panic=10 rd.shell=0 rd.emergency=reboot noresume");
	/* The menu lacks this one: it has the default's. */
	assert_string_equal(plan->entries[2].cmdline, plan->entries[0].cmdline);
	assert_null(plan->entries[2].initrd);
	digest_bytes("three", 5, hex);
	assert_string_equal(plan->entries[2].kernel_sha256, hex);
	assert_string_equal(plan->entries[2].initrd_sha256, "");
	digest_bytes("initrd two", 10, hex);
	assert_string_equal(plan->entries[1].initrd_sha256, hex);
	assert_string_equal(plan->entries[3].label, "6.12+mitigations=off,a,b");
	assert_string_equal(plan->entries[3].cmdline,
			    "root=UUID=" UUID_A " ro nosmt mitigations=off a b panic=10 rd.shell=0 "
			    "rd.emergency=reboot noresume");
	assert_string_not_equal(plan->entries[4].label, plan->entries[3].label);
	plan_free(plan);
}

/* Also for kernels whose names differ in nothing but '+' or case. */
static void case_30_ids_are_what_grub_reads_as_names(void **state)
{
	static const char *const names[] = {"6.1.0-rc1+", "6.1.0-rc1", "6.1.0-RC1"};
	struct fixture *f = *state;
	char path[64], image[3][80];
	struct plan *plan;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "boot/vmlinuz-%s", names[i]);
		snprintf(image[i], sizeof(image[i]), "/%s", path);
		fakeroot_put(f->root, path, names[i], strlen(names[i]));
		f->kernels[i] = (struct kernel){
			(char *)names[i], (char *)names[i], image[i], NULL, 0, NULL, 0};
	}
	f->m.kernels.n = 3;
	snprintf(f->m.uname, sizeof(f->m.uname), "%s", names[0]);
	plan = draw(f);
	assert_int_equal(plan->n_entries, 3);
	for (size_t i = 0; i < 3; i++) {
		const char *id = plan->entries[i].id;

		assert_int_equal(strncmp(id, "recount-", 8), 0);
		assert_int_equal(strspn(id + 8, "abcdefghijklmnopqrstuvwxyz0123456789_-"),
				 strlen(id) - 8);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(id, plan->entries[k].id);
	}
	plan_free(plan);
}

static void long_append_labels_are_cut_and_stay_unique(void **state)
{
	struct fixture *f = *state;
	struct plan *plan;

	for (size_t i = 0; i < 3; i++) {
		f->o.appends[i].label = "6.12";
		f->o.appends[i].cmdline = i ? "a_very_long_word_of_a_command_line=yes"
					    : "a_very_long_word_of_a_command_line=no";
	}
	f->o.n_appends = 3;
	plan = draw(f);
	assert_int_equal(plan->n_entries, 6);
	for (size_t i = 3; i < 6; i++) {
		assert_in_range(strlen(plan->entries[i].label), 1, 31);
		assert_ptr_equal(plan_find_entry(plan, plan->entries[i].label), &plan->entries[i]);
	}
	plan_free(plan);
}

static void home_every_is_in_the_plan_and_said(void **state)
{
	struct fixture *f = *state;
	struct plan *plan = draw(f), *back;
	char *json, *text;
	size_t len;
	FILE *out;

	assert_int_equal(plan->home_every_rounds, 0);
	json = encoded(plan);
	assert_null(strstr(json, "home_every_rounds"));
	free(json);
	plan_free(plan);
	f->o.home_every = 2;
	plan = draw(f);
	json = encoded(plan);
	assert_int_equal(plan_decode(json, strlen(json), &back, NULL), 0);
	assert_int_equal(back->home_every_rounds, 2);
	out = open_memstream(&text, &len);
	planner_print(out, back);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "comes home to the default after every 2 rounds\n"));
	free(text);
	free(json);
	plan_free(back);
	plan_free(plan);
}

static void limits_follow_from_the_build(void **state)
{
	struct fixture *f = *state;
	struct plan *plan = draw(f);

	assert_int_equal(plan->trial_timeout_ms, 3000000);
	assert_int_equal(plan->boot_timeout_ms, 600000);
	assert_int_equal(plan->retries, 2);
	assert_int_equal(plan->umask, 022);
	plan_free(plan);
	f->prepared.workload.build_ns = 1000000000;
	plan = draw(f);
	assert_int_equal(plan->trial_timeout_ms, 600000);
	plan_free(plan);
}

static void loads_are_sized_for_the_machine(void **state)
{
	struct fixture *f = *state;
	struct plan *plan = draw(f);
	const struct plan_load *mem = plan_find_load(plan, "mem"), *io = plan_find_load(plan, "io");

	assert_non_null(mem);
	assert_in_range(mem->bytes, 4 * GIB / 100 * 109, 4 * GIB / 100 * 110);
	assert_int_equal(mem->steady_ms, 0);
	assert_int_equal(io->bytes, GIB);
	assert_int_equal(io->workers, 4);
	assert_int_equal(io->steady_ms, 10000);
	assert_int_equal(plan_find_load(plan, "process")->workers, 16);
	assert_string_equal(plan->swap_uuid, UUID_D);
	plan_free(plan);
}

static void mem_needs_enough_swap(void **state)
{
	struct fixture *f = *state;
	struct plan *plan;

	f->swap.bytes = GIB;
	plan = draw(f);
	assert_null(plan_find_load(plan, "mem"));
	assert_int_equal(plan->n_loads, 3);
	plan_free(plan);
	f->m.swap = NULL;
	f->o.loads = "mem";
	assert_int_equal(planner_draw(&f->o, &f->m, &f->prepared, "2026-11-30-a", &plan), -EINVAL);
}

static void kernels_that_can_stop_the_bmcs_watchdog_have_it_armed(void **state)
{
	struct fixture *f = *state;
	struct plan *plan;

	fakeroot_write(f->root, "lib/modules/6.12.9/modules.dep",
		       "x/ipmi_si.ko:\nx/ipmi_devintf.ko:\n");
	fakeroot_write(f->root, "lib/modules/6.1.0/modules.dep", "x/ipmi_si.ko:\n");
	plan = draw(f);
	assert_int_equal(plan_uses_bmc(plan), 0);
	plan_free(plan);
	f->m.bmc = 1;
	plan = draw(f);
	assert_int_equal(plan_find_entry(plan, "6.12")->bmc_s, BMC_ARM_S);
	assert_int_equal(plan_find_entry(plan, "6.1")->bmc_s, 0);
	assert_int_equal(plan_find_entry(plan, "7.3")->bmc_s, 0);
	plan_free(plan);
	f->m.bmc_unfit = "somebody else has it";
	plan = draw(f);
	assert_int_equal(plan_uses_bmc(plan), 0);
	plan_free(plan);
}

static void refuses_what_is_not_there(void **state)
{
	struct fixture *f = *state;
	struct plan *plan;

	f->o.kernels = "6.1,8.*";
	assert_int_equal(planner_draw(&f->o, &f->m, &f->prepared, "2026-11-30-a", &plan), -EINVAL);
	f->o.kernels = "6.5";
	assert_int_equal(planner_draw(&f->o, &f->m, &f->prepared, "2026-11-30-a", &plan), -EINVAL);
	f->o.kernels = "6.1";
	f->o.baseline = "6.12";
	assert_int_equal(planner_draw(&f->o, &f->m, &f->prepared, "2026-11-30-a", &plan), -EINVAL);
	f->o.baseline = NULL;
	f->o.appends[0].label = "6.5";
	f->o.appends[0].cmdline = "x";
	f->o.n_appends = 1;
	assert_int_equal(planner_draw(&f->o, &f->m, &f->prepared, "2026-11-30-a", &plan), -EINVAL);
	f->o.n_appends = 0;
	f->o.rounds = 10000;
	assert_int_equal(planner_draw(&f->o, &f->m, &f->prepared, "2026-11-30-a", &plan), -EINVAL);
}

static void plan_survives_its_format(void **state)
{
	struct fixture *f = *state;
	struct plan *plan = draw(f), *read;
	char *json = encoded(plan), *again;
	const char *why;

	assert_int_equal(plan_decode(json, strlen(json), &read, &why), 0);
	again = encoded(read);
	assert_string_equal(json, again);
	free(json);
	free(again);
	plan_free(plan);
	plan_free(read);
}

static void a_seed_is_drawn_when_none_is_given(void **state)
{
	struct fixture *f = *state;
	struct plan *a, *b;

	f->o.has_seed = 0;
	f->o.seed = 0;
	a = draw(f);
	b = draw(f);
	assert_true(a->seed != b->seed);
	assert_true(a->seed <= (uint64_t)PLAN_EXACT_MAX && b->seed <= (uint64_t)PLAN_EXACT_MAX);
	plan_free(a);
	plan_free(b);
}

static void estimate_grows_with_the_plan(void **state)
{
	struct fixture *f = *state;
	struct plan *one, *two;
	int64_t canary_ns;

	f->o.rounds = 1;
	one = draw(f);
	f->o.rounds = 2;
	two = draw(f);
	/* Four loads beside a build of 300 s, three boots in a round, and the canary's one. */
	assert_in_range(planner_estimate_ns(one) / 1000000000, 13 * 300, 13 * 300 * 3);
	canary_ns = 2 * planner_estimate_ns(one) - planner_estimate_ns(two);
	assert_in_range(canary_ns / 1000000000, 300, 600);
	plan_free(one);
	plan_free(two);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(same_seed_draws_the_same_order),
		cmocka_unit_test(order_of_a_seed_is_the_one_it_always_was),
		cmocka_unit_test(every_order_is_equally_likely),
		TEST(each_round_boots_every_entry_once),
		TEST(loads_are_permuted_between_rounds_only),
		TEST(canary_is_the_running_kernel),
		TEST(canary_is_booted_also_when_it_is_not_compared),
		TEST(entries_have_the_menus_command_lines),
		TEST(case_30_ids_are_what_grub_reads_as_names),
		TEST(long_append_labels_are_cut_and_stay_unique),
		TEST(home_every_is_in_the_plan_and_said),
		TEST(limits_follow_from_the_build),
		TEST(loads_are_sized_for_the_machine),
		TEST(kernels_that_can_stop_the_bmcs_watchdog_have_it_armed),
		TEST(mem_needs_enough_swap),
		TEST(refuses_what_is_not_there),
		TEST(plan_survives_its_format),
		TEST(a_seed_is_drawn_when_none_is_given),
		TEST(estimate_grows_with_the_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
