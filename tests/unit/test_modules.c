/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which modules are asked for, and which files would be loaded for them. Files that are no modules
 * stand in for loading: the kernel refuses each, so result.failed counts the ones that were tried.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>

#include "initramfs/modalias.h"
#include "initramfs/modindex.h"
#include "initramfs/modules.h"
#include "results/log.h"
#include "tests/unit/fakeroot.h"

#define MODULES	       "lib/modules/6.1.0-test"
#define NVME_ALIAS     "pci:v00001B36d00000010sv00001AF4sd00001100bc01sc08i02"
#define WATCHDOG_ALIAS "pci:v00008086d000025ABsv00001AF4sd00001100bc08sc80i00"
#define NET_ALIAS      "pci:v00001AF4d00001000sv00001AF4sd00000001bc02sc00i00"
#define CPU_ALIAS      "cpu:type:x86,ven0000fam0006mod0055:feature:,0000,0001,000E,0016"

static int set_up(void **state)
{
	static char root[FAKEROOT_PATH];

	sample_folder(root);
	fakeroot_write(root, "sys/devices/.keep", "");
	*state = root;
	return 0;
}

static int tear_down(void **state)
{
	sample_folder_remove(*state);
	return 0;
}

static void add_modules(const char *root, const char *file, const char *text)
{
	char path[FAKEROOT_PATH];

	snprintf(path, sizeof(path), MODULES "/%s", file);
	fakeroot_write(root, path, text);
}

static void add_device(const char *root, const char *device, const char *alias)
{
	char path[FAKEROOT_PATH];

	snprintf(path, sizeof(path), "sys/devices/%s/modalias", device);
	fakeroot_write(root, path, alias);
}

static struct modindex *open_index(const char *root)
{
	char dir[2 * FAKEROOT_PATH];
	struct modindex *index = NULL;

	fakeroot_path(dir, root, MODULES);
	assert_int_equal(modindex_open(dir, &index), 0);
	return index;
}

/* @paths, separated by blanks, are what @alias resolves to. */
static void expect_paths(const struct modindex *index, const char *alias, const char *paths)
{
	struct modindex_list list = {0};
	char got[1024] = "";

	assert_int_equal(modindex_resolve(index, alias, &list), 0);
	for (size_t i = 0; i < list.n; i++) {
		strcat(got, i ? " " : "");
		strcat(got, list.paths[i]);
	}
	assert_string_equal(got, paths);
	free(list.paths);
}

static void expect_no_module(const struct modindex *index, const char *alias)
{
	struct modindex_list list = {0};

	assert_int_equal(modindex_resolve(index, alias, &list), -ENOENT);
	assert_int_equal(list.n, 0);
}

static void dependencies_come_before_what_needs_them(void **state)
{
	_cleanup_(cleanup_modindex) struct modindex *index = NULL;

	/* depmod names the nearest dependency first. */
	add_modules(*state, "modules.dep",
		    "kernel/fs/mbcache.ko.xz:\n"
		    "kernel/fs/jbd2/jbd2.ko.xz:\n"
		    "kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2/jbd2.ko.xz kernel/fs/mbcache.ko.xz\n"
		    "kernel/c.ko: kernel/b.ko kernel/a.ko\n"
		    "kernel/b.ko: kernel/a.ko\n"
		    "kernel/a.ko:\n");
	index = open_index(*state);
	expect_paths(index, "ext4",
		     "kernel/fs/mbcache.ko.xz kernel/fs/jbd2/jbd2.ko.xz kernel/fs/ext4/ext4.ko.xz");
	expect_paths(index, "c", "kernel/a.ko kernel/b.ko kernel/c.ko");
	expect_no_module(index, "ext");
	expect_no_module(index, "btrfs");
}

static void dash_and_underscore_are_one(void **state)
{
	_cleanup_(cleanup_modindex) struct modindex *index = NULL;

	add_modules(*state, "modules.dep", "kernel/drivers/md/dm-mod.ko.zst:\n");
	add_modules(*state, "modules.alias",
		    "alias devname:mapper/control dm_mod\n"
		    "alias fs-test dm-mod\n");
	index = open_index(*state);
	expect_paths(index, "dm-mod", "kernel/drivers/md/dm-mod.ko.zst");
	expect_paths(index, "dm_mod", "kernel/drivers/md/dm-mod.ko.zst");
	expect_paths(index, "fs-test", "kernel/drivers/md/dm-mod.ko.zst");
	expect_paths(index, "devname:mapper/control", "kernel/drivers/md/dm-mod.ko.zst");
}

static void aliases_match_as_patterns(void **state)
{
	_cleanup_(cleanup_modindex) struct modindex *index = NULL;

	add_modules(*state, "modules.dep",
		    "kernel/nvme.ko: kernel/nvme-core.ko\n"
		    "kernel/nvme-core.ko:\n"
		    "kernel/other.ko:\n"
		    "kernel/acpi-cpufreq.ko:\n");
	add_modules(*state, "modules.alias",
		    "# Aliases extracted from modules themselves.\n"
		    "alias pci:v0000106Bd00002001sv*sd*bc*sc*i* other\n"
		    "alias pci:v*d*sv*sd*bc01sc08i02* nvme\n"
		    "alias pci:v00001B36d00000010sv*sd*bc*sc*i* other\n"
		    "alias cpu:type:x86,ven*fam*mod*:feature:*0016* acpi_cpufreq\n"
		    "alias usb:v[0-9]* absent\n"
		    "alias broken\n");
	index = open_index(*state);
	/* Every driver that claims the device is given. */
	expect_paths(index, NVME_ALIAS, "kernel/nvme-core.ko kernel/nvme.ko kernel/other.ko");
	expect_paths(index, CPU_ALIAS, "kernel/acpi-cpufreq.ko");
	expect_no_module(index, NET_ALIAS);
	expect_no_module(index, "usb:v1"); /* its module is not in this folder */
	expect_no_module(index, "broken");
}

static void soft_dependencies_come_before_and_after(void **state)
{
	_cleanup_(cleanup_modindex) struct modindex *index = NULL;

	add_modules(*state, "modules.dep",
		    "kernel/ext4.ko: kernel/libcrc32c.ko\n"
		    "kernel/libcrc32c.ko:\n"
		    "kernel/crc32c-intel.ko:\n"
		    "kernel/late.ko:\n"
		    "kernel/ring.ko:\n");
	add_modules(*state, "modules.softdep",
		    "# Soft dependencies extracted from modules themselves.\n"
		    "softdep libcrc32c pre: crc32c_intel not_there\n"
		    "softdep ext4 post: late\n"
		    "softdep late pre: ring\n"
		    "softdep ring pre: late\n");
	index = open_index(*state);
	expect_paths(index, "ext4",
		     "kernel/crc32c-intel.ko kernel/libcrc32c.ko kernel/ext4.ko "
		     "kernel/ring.ko kernel/late.ko");
}

static void built_in_needs_no_file(void **state)
{
	_cleanup_(cleanup_modindex) struct modindex *index = NULL;

	add_modules(*state, "modules.dep", "");
	add_modules(*state, "modules.builtin", "kernel/fs/ext4/ext4.ko\nkernel/dm-mod.ko\n");
	index = open_index(*state);
	expect_paths(index, "ext4", "");
	expect_paths(index, "dm-mod", "");
}

static void folder_without_modules_dep_has_no_index(void **state)
{
	char dir[2 * FAKEROOT_PATH];
	struct modindex *index;

	add_modules(*state, "modules.alias", "alias a b\n");
	fakeroot_path(dir, *state, MODULES);
	assert_int_equal(modindex_open(dir, &index), -ENOENT);
}

static void damaged_bin_indexes_do_not_count(void **state)
{
	char dir[2 * FAKEROOT_PATH];

	fakeroot_path(dir, *state, MODULES);
	assert_false(modindex_has_bin(dir));
	add_modules(*state, "modules.dep.bin", "\xb0\x07\xf4\x57");
	assert_false(modindex_has_bin(dir));
	add_modules(*state, "modules.alias.bin", "");
	assert_false(modindex_has_bin(dir));
	add_modules(*state, "modules.alias.bin", "\xb0\x07\xf4\x57");
	assert_true(modindex_has_bin(dir));
}

static void collect(struct modalias_set *set, const char *root, const char *const **fresh,
		    size_t *n)
{
	char sys[2 * FAKEROOT_PATH];

	fakeroot_path(sys, root, "sys");
	assert_int_equal(modalias_collect(set, sys, fresh, n), 0);
}

static int has(const char *const *list, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], text) == 0)
			return 1;
	return 0;
}

static void every_alias_is_met_once(void **state)
{
	_cleanup_(cleanup_modalias) struct modalias_set *set = modalias_new();
	const char *const *fresh;
	size_t n;

	add_device(*state, "pci0000:00/0000:00:04.0", NVME_ALIAS "\n");
	add_device(*state, "pci0000:00/0000:00:05.0", NVME_ALIAS "\n");
	add_device(*state, "system/cpu", CPU_ALIAS "\n");
	add_device(*state, "empty", "");
	collect(set, *state, &fresh, &n);
	assert_int_equal(n, 2);
	assert_true(has(fresh, n, NVME_ALIAS));
	assert_true(has(fresh, n, CPU_ALIAS));

	collect(set, *state, &fresh, &n);
	assert_int_equal(n, 0);

	/* What a driver has brought up since. */
	add_device(*state, "pci0000:00/0000:00:05.0/usb1/1-1", "usb:v0001\n");
	collect(set, *state, &fresh, &n);
	assert_int_equal(n, 1);
	assert_string_equal(fresh[0], "usb:v0001");
}

static void network_display_sound_and_wireless_are_left_out(void **state)
{
	_cleanup_(cleanup_modalias) struct modalias_set *set = modalias_new();
	const char *const *fresh;
	size_t n;

	add_device(*state, "pci0000:00/0000:00:03.0", NET_ALIAS "\n");
	add_device(*state, "pci0000:00/0000:00:03.0/virtio0", "virtio:d00000001v00001AF4\n");
	add_device(*state, "pci0000:00/0000:00:02.0", "pci:v00008086d1sv1sd1bc03sc00i00\n");
	add_device(*state, "pci0000:00/0000:00:1f.3", "pci:v00008086d2sv1sd1bc04sc03i00\n");
	add_device(*state, "pci0000:00/0000:00:14.3", "pci:v00008086d3sv1sd1bc0Dsc11i00\n");
	add_device(*state, "pci0000:00/0000:00:14.0", "pci:v00008086d4sv1sd1bc0Csc03i30\n");
	add_device(*state, "virtual/bc03", "platform:bc03\n");
	collect(set, *state, &fresh, &n);
	assert_int_equal(n, 2);
	assert_true(has(fresh, n, "pci:v00008086d4sv1sd1bc0Csc03i30"));
	assert_true(has(fresh, n, "platform:bc03"));
}

static struct modules_result load(const char *root, enum modules_pass pass)
{
	char dir[2 * FAKEROOT_PATH], sys[2 * FAKEROOT_PATH];
	struct modules_result result = {0};

	fakeroot_path(dir, root, MODULES);
	fakeroot_path(sys, root, "sys");
	assert_int_equal(modules_load(dir, sys, pass, &result), 0);
	assert_int_equal(result.loaded, 0);
	return result;
}

/* Four modules that the kernel refuses, for a disk, a processor, a sensor and a watchdog. */
static void add_bad_modules(const char *root)
{
	add_modules(root, "modules.dep",
		    "kernel/drivers/recount_t1.ko:\n"
		    "kernel/drivers/recount_t2.ko:\n"
		    "kernel/drivers/hwmon/recount_t3.ko:\n"
		    "kernel/drivers/watchdog/recount_t4.ko.xz:\n");
	add_modules(root, "modules.alias",
		    "alias pci:v*d*sv*sd*bc01sc08i02* recount_t1\n"
		    "alias cpu:type:x86* recount_t2\n"
		    "alias platform:sensor recount_t3\n"
		    "alias pci:v00008086d000025AB* recount_t4\n");
	add_modules(root, "kernel/drivers/recount_t1.ko", "no module");
	add_modules(root, "kernel/drivers/recount_t2.ko", "no module");
	add_modules(root, "kernel/drivers/hwmon/recount_t3.ko", "no module");
	add_modules(root, "kernel/drivers/watchdog/recount_t4.ko.xz", "no module");
	add_device(root, "pci0000:00/0000:00:04.0", NVME_ALIAS "\n");
	add_device(root, "system/cpu", CPU_ALIAS "\n");
	add_device(root, "platform/sensor", "platform:sensor\n");
	add_device(root, "pci0000:00/0000:00:05.0", WATCHDOG_ALIAS "\n");
}

static void module_that_fails_stops_no_other(void **state)
{
	struct modules_result r;

	add_bad_modules(*state);
	r = load(*state, MODULES_HARDWARE);
	assert_int_equal(r.failed, 4);
	assert_int_equal(r.text_index, 1);
}

static void platform_pass_takes_processor_sensors_and_watchdog_only(void **state)
{
	add_bad_modules(*state);
	assert_int_equal(load(*state, MODULES_PLATFORM).failed, 3);
}

static void blacklist_beside_the_modules_is_honoured(void **state)
{
	char dir[2 * FAKEROOT_PATH];
	int r;

	add_bad_modules(*state);
	fakeroot_write(*state, "etc/modprobe.d/no.conf", "blacklist recount-t1\n");
	assert_int_equal(load(*state, MODULES_HARDWARE).failed, 3);
	/* As with modprobe(8), who names a module wants it. */
	fakeroot_path(dir, *state, MODULES);
	r = modules_load_name(dir, "recount_t1");
	assert_true(r < 0 && r != -ENOENT);
}

static void install_commands_are_not_run(void **state)
{
	char line[3 * FAKEROOT_PATH], mark[2 * FAKEROOT_PATH];

	add_bad_modules(*state);
	fakeroot_path(mark, *state, "mark");
	snprintf(line, sizeof(line), "install recount_t1 touch %s\n", mark);
	fakeroot_write(*state, "etc/modprobe.d/install.conf", line);
	assert_int_equal(load(*state, MODULES_HARDWARE).failed, 3);
	assert_int_equal(access(mark, F_OK), -1);
}

/* What depmod never writes; each is passed over, and none is lost when memory is counted. */
static void strange_lines_in_text_indexes(void **state)
{
	struct modindex *index;
	struct modindex_list list = {0};

	add_modules(*state, "modules.dep",
		    ".:\n.hidden:\n../../evil.ko:\nkernel/../up.ko:\nkernel/..:\n"
		    "/lib/../abs.ko:\nno colon\n#x.ko:\nkernel/a..b.ko:\n");
	add_modules(*state, "modules.softdep", "softdep . pre: a\nsoftdep .x pre: a\nsoftdep\n");
	add_modules(*state, "modules.alias", " \nalias x\nalias y .\nalias z evil\n");
	index = open_index(*state);
	assert_int_equal(modindex_resolve(index, "evil", &list), -ENOENT);
	assert_int_equal(modindex_resolve(index, "up", &list), -ENOENT);
	assert_int_equal(modindex_resolve(index, "abs", &list), -ENOENT);
	assert_int_equal(modindex_resolve(index, "z", &list), -ENOENT);
	assert_int_equal(list.n, 0);
	expect_paths(index, "a", "kernel/a..b.ko");
	modindex_free(index);
}

static void dependencies_have_a_depth(void **state)
{
	struct modindex_list list = {0};
	struct modindex *index;
	char text[4096] = "";

	for (int i = 0; i < 70; i++)
		sprintf(text + strlen(text), "m%d.ko: m%d.ko\n", i, i + 1);
	strcat(text, "m70.ko:\n");
	add_modules(*state, "modules.dep", text);
	index = open_index(*state);
	assert_int_equal(modindex_resolve(index, "m0", &list), -ELOOP);
	/* The next call starts anew. */
	assert_int_equal(modindex_resolve(index, "m7", &list), 0);
	assert_int_equal(list.n, 64);
	assert_string_equal(list.paths[0], "m70.ko");
	free(list.paths);
	modindex_free(index);
}

static void text_indexes_have_a_size(void **state)
{
	char dir[2 * FAKEROOT_PATH], path[2 * FAKEROOT_PATH];
	struct modindex *index = NULL;

	add_modules(*state, "modules.dep", "a.ko:\n");
	add_modules(*state, "modules.alias", "alias x a\n");
	fakeroot_path(dir, *state, MODULES);
	fakeroot_path(path, *state, MODULES "/modules.alias");
	assert_int_equal(truncate(path, (16 << 20) + 1), 0);
	index = open_index(*state);
	expect_paths(index, "a", "a.ko");
	modindex_free(index);
	fakeroot_path(path, *state, MODULES "/modules.dep");
	assert_int_equal(truncate(path, (16 << 20) + 1), 0);
	assert_int_equal(modindex_open(dir, &index), -EFBIG);
}

static void machine_without_modules_is_told_apart(void **state)
{
	char dir[2 * FAKEROOT_PATH], sys[2 * FAKEROOT_PATH];
	struct modules_result result;

	fakeroot_path(dir, *state, MODULES);
	fakeroot_path(sys, *state, "sys");
	assert_int_equal(modules_load(dir, sys, MODULES_HARDWARE, &result), -ENOENT);
	assert_int_equal(modules_load_name(dir, "ext4"), -ENOENT);
}

static void name_that_is_built_in_needs_nothing(void **state)
{
	char dir[2 * FAKEROOT_PATH];

	add_modules(*state, "modules.dep", "");
	add_modules(*state, "modules.builtin", "kernel/recount_t4.ko\n");
	fakeroot_path(dir, *state, MODULES);
	assert_int_equal(modules_load_name(dir, "recount_t4"), 0);
	assert_int_equal(modules_load_name(dir, "recount_t5"), -ENOENT);
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(dependencies_come_before_what_needs_them),
		test(dash_and_underscore_are_one),
		test(aliases_match_as_patterns),
		test(soft_dependencies_come_before_and_after),
		test(built_in_needs_no_file),
		test(folder_without_modules_dep_has_no_index),
		test(damaged_bin_indexes_do_not_count),
		test(every_alias_is_met_once),
		test(network_display_sound_and_wireless_are_left_out),
		test(module_that_fails_stops_no_other),
		test(platform_pass_takes_processor_sensors_and_watchdog_only),
		test(blacklist_beside_the_modules_is_honoured),
		test(install_commands_are_not_run),
		test(text_indexes_have_a_size),
		test(dependencies_have_a_depth),
		test(strange_lines_in_text_indexes),
		test(machine_without_modules_is_told_apart),
		test(name_that_is_built_in_needs_nothing),
	};
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	log_to(null); /* the lines about modules that the kernel refuses */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
