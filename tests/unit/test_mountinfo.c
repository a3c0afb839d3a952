/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mounts of fake machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/mountinfo.h"
#include "tests/unit/fakeroot.h"

static void read_text(const char *text, struct mountinfo *m)
{
	char root[FAKEROOT_PATH];

	sample_folder(root);
	fakeroot_put(root, "proc/self/mountinfo", text, strlen(text));
	assert_false(mountinfo_is_live(root));
	assert_int_equal(mountinfo_read(root, m), 0);
	sample_folder_remove(root);
}

static void finds_what_holds_a_path(void **state)
{
	struct mountinfo m;

	(void)state;
	read_text("25 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
		  "26 25 8:2 / /boot rw - ext4 /dev/sda2 rw\n"
		  "27 26 8:3 / /boot/efi rw master:2 shared:3 - vfat /dev/sda3 rw\n",
		  &m);
	assert_string_equal(mountinfo_find(&m, "/")->source, "/dev/sda1");
	assert_string_equal(mountinfo_find(&m, "/bootstrap")->source, "/dev/sda1");
	assert_string_equal(mountinfo_find(&m, "/boot")->source, "/dev/sda2");
	assert_string_equal(mountinfo_find(&m, "/boot/vmlinuz")->source, "/dev/sda2");
	assert_string_equal(mountinfo_find(&m, "/boot/efi/EFI")->fstype, "vfat");
	assert_ptr_equal(mountinfo_of_device(&m, 8, 2), &m.entries[1]);
	assert_null(mountinfo_of_device(&m, 8, 4));
	mountinfo_free(&m);
}

static void the_later_of_two_mounts_counts(void **state)
{
	struct mountinfo m;

	(void)state;
	read_text("24 1 0:2 / / rw - rootfs rootfs rw\n"
		  "25 24 8:1 / / rw - ext4 /dev/sda1 rw\n"
		  "26 25 8:5 / /usr rw - ext4 /dev/sda5 rw\n"
		  "27 26 8:6 / /usr rw - ext4 /dev/sda6 rw\n",
		  &m);
	assert_string_equal(mountinfo_find(&m, "/etc")->fstype, "ext4");
	assert_string_equal(mountinfo_find(&m, "/usr/bin")->source, "/dev/sda6");
	mountinfo_free(&m);
}

static void undoes_the_kernels_escapes(void **state)
{
	struct mountinfo m;

	(void)state;
	read_text("25 1 0:25 /@ / rw - btrfs /dev/sda1 rw,subvol=/@\n"
		  "26 25 8:2 / /mnt/a\\040b\\134c rw - ext4 /dev/my\\011disk rw\n"
		  "not a mount\n",
		  &m);
	assert_int_equal(m.n, 2);
	assert_string_equal(m.entries[0].dir, "/@");
	assert_string_equal(m.entries[1].point, "/mnt/a b\\c");
	assert_string_equal(m.entries[1].source, "/dev/my\tdisk");
	mountinfo_free(&m);
}

/* Room for "/" was not there. */
static void mount_point_is_absolute(void **state)
{
	struct mountinfo m;

	(void)state;
	read_text("25 1 8:1 /  rw - ext4 /dev/sda1 rw\n"
		  "26 1 8:1 / x rw - ext4 /dev/sda1 rw\n"
		  "27 1 8:2 / / rw - ext4 /dev/sda2 rw\n",
		  &m);
	assert_int_equal(m.n, 1);
	assert_string_equal(m.entries[0].source, "/dev/sda2");
	mountinfo_free(&m);
}

static void a_folder_without_proc_is_a_mounted_root(void **state)
{
	char root[FAKEROOT_PATH];
	struct mountinfo m;

	(void)state;
	sample_folder(root);
	assert_true(mountinfo_is_live(root));
	assert_int_equal(mountinfo_read(root, &m), 0);
	/* Nothing is mounted below it. */
	assert_int_equal(m.n, 0);
	mountinfo_free(&m);
	sample_folder_remove(root);
	assert_int_equal(mountinfo_read("", &m), 0);
	/* In a chroot "/" need not be a mount point; what was read from is one. */
	assert_non_null(mountinfo_find(&m, "/proc"));
	assert_string_equal(mountinfo_find(&m, "/proc")->fstype, "proc");
	mountinfo_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_holds_a_path),
		cmocka_unit_test(the_later_of_two_mounts_counts),
		cmocka_unit_test(undoes_the_kernels_escapes),
		cmocka_unit_test(mount_point_is_absolute),
		cmocka_unit_test(a_folder_without_proc_is_a_mounted_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
