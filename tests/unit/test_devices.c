/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Block devices on a fake machine whose disks are small image files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "initramfs/contents.h"
#include "initramfs/devices.h"
#include "results/log.h"
#include "tests/unit/fakeroot.h"

#define ROOT_UUID  "11111111-2222-3333-4444-555555555555"
#define STORE_UUID "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"

/* A disk that does not answer: reading the file with inode *dead takes until that is 0 again. */
static _Atomic ino_t *dead;

static int set_up(void **state)
{
	static char root[FAKEROOT_PATH];

	sample_folder(root);
	fakeroot_write(root, "sys/class/block/.keep", "");
	fakeroot_write(root, "dev/.keep", "");
	*state = root;
	return 0;
}

static int tear_down(void **state)
{
	if (dead)
		*dead = 0;
	dead = NULL;
	sample_folder_remove(*state);
	return 0;
}

static void put_attr(const char *root, const char *name, const char *attr, const char *text)
{
	char path[FAKEROOT_PATH];

	snprintf(path, sizeof(path), "sys/class/block/%s/%s", name, attr);
	fakeroot_write(root, path, text);
}

/* A partition in /sys; a disk when @start is NULL. */
static void add_sys(const char *root, const char *name, const char *start, const char *sectors)
{
	put_attr(root, name, "dev", "259:3\n");
	put_attr(root, name, "size", sectors);
	put_attr(root, name, "ro", "0\n");
	if (start) {
		put_attr(root, name, "start", start);
		put_attr(root, name, "partition", "1\n");
	}
}

static void add_image(const char *root, const char *name, const char *uuid, const char *label,
		      const char *features)
{
	char path[2 * FAKEROOT_PATH], command[4 * FAKEROOT_PATH];

	add_sys(root, name, "2048\n", "4096\n");
	snprintf(path, sizeof(path), "%s/dev/%s", root, name);
	snprintf(command, sizeof(command),
		 "PATH=$PATH:/usr/sbin:/sbin mke2fs -q -F -t ext4 -O %s -U %s -L '%s' '%s' 2M "
		 ">/dev/null",
		 features, uuid, label, path);
	assert_int_equal(system(command), 0);
}

static void poke(const char *root, const char *name, off_t offset, const void *bytes, size_t len)
{
	char path[2 * FAKEROOT_PATH];
	int fd;

	snprintf(path, sizeof(path), "%s/dev/%s", root, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 2 << 20), 0);
	assert_int_equal(pwrite(fd, bytes, len, offset), len);
	close(fd);
}

static void scan(const char *root, struct device_list *l)
{
	assert_int_equal(devices_scan(root, l), 0);
}

static const struct device *by_name(const struct device_list *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->devices[i].name, name) == 0)
			return &l->devices[i];
	return NULL;
}

static void scan_lists_disks_and_partitions_with_their_figures(void **state)
{
	_cleanup_(device_list_free) struct device_list l = {0};
	static const char *const left_out[] = {"fd0", "sr0", "loop7", "ram1", "zram0", "sdz"};
	const struct device *d;

	for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
		add_sys(*state, left_out[i], NULL, strcmp(left_out[i], "sdz") ? "2048\n" : "0\n");
	add_sys(*state, "sda10", "10000\n", "8\n");
	add_sys(*state, "sda9", "9000\n", "8\n");
	add_sys(*state, "sda", NULL, "16384\n");
	put_attr(*state, "sda", "ro", "1\n");
	add_image(*state, "nvme0n1p3", ROOT_UUID, "roots", "^has_journal");
	put_attr(*state, "nvme0n1p3", "dev", "259:17\n");

	scan(*state, &l);
	assert_int_equal(l.n, 4);
	assert_string_equal(l.devices[0].name, "nvme0n1p3");
	assert_string_equal(l.devices[1].name, "sda");
	assert_string_equal(l.devices[2].name, "sda9");
	assert_string_equal(l.devices[3].name, "sda10");

	d = &l.devices[0];
	assert_string_equal(d->uuid, ROOT_UUID);
	assert_string_equal(d->label, "roots");
	assert_string_equal(d->type, "ext4");
	assert_string_equal(d->usage, "filesystem");
	assert_int_equal(d->start_sector, 2048);
	assert_int_equal(d->bytes, 4096 * 512);
	assert_int_equal(d->maj, 259);
	assert_int_equal(d->min, 17);
	assert_true(d->partition);
	assert_false(d->read_only || d->held || d->ambivalent);
	assert_string_equal(d->stack, "");

	d = &l.devices[1];
	assert_false(d->partition);
	assert_int_equal(d->start_sector, 0);
	assert_true(d->read_only);
}

static void device_that_cannot_be_opened_hides_no_other(void **state)
{
	_cleanup_(device_list_free) struct device_list l = {0};
	const struct device *d;

	add_sys(*state, "sda", NULL, "16384\n");
	add_image(*state, "sdb1", ROOT_UUID, "", "^has_journal");
	scan(*state, &l);
	assert_string_equal(by_name(&l, "sda")->uuid, "");
	assert_int_equal(by_name(&l, "sda")->error, -ENOENT);
	assert_int_equal(by_name(&l, "sdb1")->error, 0);
	assert_int_equal(devices_by_uuid(&l, ROOT_UUID, &d), 0);
	assert_string_equal(d->name, "sdb1");
	assert_string_equal(d->label, "");
}

static void slashes_in_names_are_translated(void **state)
{
	_cleanup_(device_list_free) struct device_list l = {0};
	const char *path;

	add_sys(*state, "cciss!c0d0p1", "63\n", "4096\n");
	scan(*state, &l);
	path = by_name(&l, "cciss!c0d0p1")->path;
	assert_string_equal(path + strlen(*state), "/dev/cciss/c0d0p1");
}

static void uuid_and_label_find_the_one_device(void **state)
{
	_cleanup_(device_list_free) struct device_list l = {0};
	const struct device *d = NULL;

	add_image(*state, "sda1", ROOT_UUID, "roots", "^has_journal");
	add_image(*state, "sda2", STORE_UUID, "RECOUNT", "^has_journal");
	scan(*state, &l);
	assert_int_equal(devices_by_uuid(&l, STORE_UUID, &d), 0);
	assert_string_equal(d->name, "sda2");
	assert_int_equal(devices_by_uuid(&l, "AAAAAAAA-BBBB-CCCC-DDDD-EEEEEEEEEEEE", &d), 0);
	assert_int_equal(devices_by_label(&l, "roots", &d), 0);
	assert_string_equal(d->name, "sda1");

	d = NULL;
	assert_int_equal(devices_by_uuid(&l, "99999999-2222-3333-4444-555555555555", &d), -ENOENT);
	assert_int_equal(devices_by_label(&l, "recount", &d), -ENOENT);
	/* Devices without a file system have "" for both. */
	assert_int_equal(devices_by_uuid(&l, "", &d), -ENOENT);
	assert_int_equal(devices_by_label(&l, "", &d), -ENOENT);
	assert_null(d);
}

static void clone_makes_uuid_and_label_useless(void **state)
{
	_cleanup_(device_list_free) struct device_list l = {0};
	const struct device *d = NULL;

	add_image(*state, "sda2", STORE_UUID, "RECOUNT", "^has_journal");
	add_image(*state, "sdb2", STORE_UUID, "RECOUNT", "^has_journal");
	add_image(*state, "sdb3", ROOT_UUID, "RECOUNT", "^has_journal");
	scan(*state, &l);
	assert_int_equal(devices_by_uuid(&l, STORE_UUID, &d), -ENOTUNIQ);
	assert_int_equal(devices_by_label(&l, "RECOUNT", &d), -ENOTUNIQ);
	assert_null(d);
	assert_int_equal(devices_by_uuid(&l, ROOT_UUID, &d), 0);
}

static void held_devices_do_not_count(void **state)
{
	_cleanup_(device_list_free) struct device_list l = {0};
	const struct device *d = NULL;

	/* Two paths to one disk and the multipath device on them. */
	add_image(*state, "sda1", ROOT_UUID, "roots", "^has_journal");
	add_image(*state, "sdb1", ROOT_UUID, "roots", "^has_journal");
	add_image(*state, "dm-0", ROOT_UUID, "roots", "^has_journal");
	put_attr(*state, "sda1", "holders/dm-0", "");
	put_attr(*state, "sdb1", "holders/dm-0", "");
	put_attr(*state, "dm-0", "dm/uuid", "mpath-3600508b400105e210000900000490000\n");
	scan(*state, &l);
	assert_true(by_name(&l, "sda1")->held);
	assert_false(by_name(&l, "dm-0")->held);
	assert_int_equal(devices_by_uuid(&l, ROOT_UUID, &d), 0);
	assert_string_equal(d->name, "dm-0");
	assert_int_equal(devices_by_label(&l, "roots", &d), 0);
	assert_string_equal(d->name, "dm-0");
}

/* A LUKS1 header (cryptsetup's docs/on-disk-format.pdf): magic, version, UUID at 168. */
static void add_luks(const char *root, const char *name, const char *uuid)
{
	add_sys(root, name, "2048\n", "4096\n");
	poke(root, name, 0, "LUKS\xba\xbe\0\1", 8);
	poke(root, name, 168, uuid, strlen(uuid) + 1);
}

/* An md 1.2 superblock (linux/raid/md_p.h) at 4096 with the set's UUID. */
static void add_raid_member(const char *root, const char *name, const unsigned char uuid[16])
{
	unsigned char sb[256] = {0xfc, 0x4e, 0x2b, 0xa9, 1};

	memcpy(sb + 16, uuid, 16);
	sb[144] = 8; /* super_offset in sectors */
	add_sys(root, name, "2048\n", "4096\n");
	poke(root, name, 4096, sb, sizeof(sb));
}

static void raid_members_and_luks_containers_do_not_count(void **state)
{
	_cleanup_(device_list_free) struct device_list l = {0};
	static const unsigned char set[16] = {0xaa, 0xaa, 0xaa, 0xaa, 0xbb, 0xbb, 0xcc, 0xcc,
					      0xdd, 0xdd, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee};
	const struct device *d = NULL;

	add_raid_member(*state, "sda1", set);
	add_luks(*state, "sda2", ROOT_UUID);
	scan(*state, &l);
	assert_string_equal(by_name(&l, "sda1")->usage, "raid");
	assert_string_equal(by_name(&l, "sda1")->uuid, STORE_UUID);
	assert_string_equal(by_name(&l, "sda2")->usage, "crypto");
	assert_string_equal(by_name(&l, "sda2")->uuid, ROOT_UUID);
	assert_int_equal(devices_by_uuid(&l, STORE_UUID, &d), -ENOENT);
	assert_int_equal(devices_by_uuid(&l, ROOT_UUID, &d), -ENOENT);
	assert_null(d);
}

static void swap_is_found_by_uuid(void **state)
{
	_cleanup_(device_list_free) struct device_list l = {0};
	const struct device *d = NULL;
	unsigned char header[4096] = {0};

	/* union swap_header of linux/swap.h: version, last page, UUID at 1036, magic at the end. */
	header[1024] = 1;
	header[1028] = 200;
	memset(header + 1036, 0x11, 16);
	memcpy(header + sizeof(header) - 10, "SWAPSPACE2", 10);
	add_sys(*state, "sda5", "2048\n", "4096\n");
	poke(*state, "sda5", 0, header, sizeof(header));
	scan(*state, &l);
	assert_int_equal(devices_by_uuid(&l, "11111111-1111-1111-1111-111111111111", &d), 0);
	assert_string_equal(d->type, "swap");
}

static void stack_says_what_a_device_is_built_of(void **state)
{
	_cleanup_(device_list_free) struct device_list l = {0};
	static const struct {
		const char *name, *uuid, *stack;
	} dm[] = {
		{"dm-0", "LVM-abcdefabcdef\n", "LVM"},
		{"dm-1", "CRYPT-LUKS2-0123-home\n", "crypt"},
		{"dm-2", "mpath-360050\n", "dm"},
		{"dm-3", "\n", "dm"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(dm); i++) {
		add_sys(*state, dm[i].name, NULL, "4096\n");
		put_attr(*state, dm[i].name, "dm/uuid", dm[i].uuid);
	}
	add_sys(*state, "md0", NULL, "4096\n");
	put_attr(*state, "md0", "md/level", "raid1\n");
	add_sys(*state, "sda1", "2048\n", "4096\n");
	scan(*state, &l);
	for (size_t i = 0; i < ARRAY_SIZE(dm); i++)
		assert_string_equal(by_name(&l, dm[i].name)->stack, dm[i].stack);
	assert_string_equal(by_name(&l, "md0")->stack, "md");
	assert_string_equal(by_name(&l, "sda1")->stack, "");
}

static void partition_of_an_md_device_is_md_too(void **state)
{
	_cleanup_(device_list_free) struct device_list l = {0};
	char link[2 * FAKEROOT_PATH];

	/* As in a real sysfs: the class folder holds links, the partition lies in its disk. */
	fakeroot_write(*state, "sys/devices/virtual/block/md0/md/level", "raid1\n");
	fakeroot_write(*state, "sys/devices/virtual/block/md0/md0p1/dev", "259:0\n");
	fakeroot_write(*state, "sys/devices/virtual/block/md0/md0p1/size", "4096\n");
	fakeroot_write(*state, "sys/devices/virtual/block/md0/md0p1/partition", "1\n");
	fakeroot_path(link, *state, "sys/class/block/md0p1");
	assert_int_equal(symlink("../../devices/virtual/block/md0/md0p1", link), 0);
	scan(*state, &l);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.devices[0].stack, "md");
}

static void ambivalent_device_is_found_by_uuid_only(void **state)
{
	_cleanup_(device_list_free) struct device_list l = {0};
	const struct device *d = NULL;

	add_image(*state, "sda1", ROOT_UUID, "roots", "^has_journal");
	poke(*state, "sda1", 0x8000, "\1CD001\1", 7); /* an old ISO 9660 volume descriptor */
	scan(*state, &l);
	assert_true(l.devices[0].ambivalent);
	assert_string_equal(l.devices[0].type, "ext4");
	assert_int_equal(devices_by_label(&l, "roots", &d), -ENOENT);
	assert_int_equal(devices_by_uuid(&l, ROOT_UUID, &d), 0);
	assert_string_equal(d->name, "sda1");
}

int __real_blkid_do_safeprobe(blkid_probe pr);
int __wrap_blkid_do_safeprobe(blkid_probe pr);
int __wrap_blkid_do_safeprobe(blkid_probe pr)
{
	struct timespec tick = {.tv_nsec = 1000000};
	struct stat st;

	while (dead && fstat(blkid_probe_get_fd(pr), &st) == 0 && st.st_ino == *dead)
		nanosleep(&tick, NULL);
	return __real_blkid_do_safeprobe(pr);
}

/* What is waited for the first of the devices; then the time is up at once. */
static int first_wait_ms = -1;

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	if (!dead || first_wait_ms >= 0)
		return __real_poll(fds, n, timeout_ms);
	first_wait_ms = timeout_ms;
	return 0;
}

static void scan_anew(const char *root, struct device_list *l)
{
	device_list_free(l);
	first_wait_ms = -1;
	scan(root, l);
}

static void device_that_does_not_answer_hides_no_other(void **state)
{
	_cleanup_(device_list_free) struct device_list l = {0};
	struct timespec tick = {.tv_nsec = 1000000};
	char path[2 * FAKEROOT_PATH];
	const struct device *d;
	int output[2];
	struct stat st;
	char byte;

	add_image(*state, "sda1", ROOT_UUID, "roots", "^has_journal");
	add_image(*state, "sdb1", STORE_UUID, "RECOUNT", "^has_journal");
	snprintf(path, sizeof(path), "%s/dev/sda1", (char *)*state);
	assert_int_equal(stat(path, &st), 0);
	dead = mmap(NULL, sizeof(*dead), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(dead, MAP_FAILED);
	*dead = st.st_ino;
	assert_int_equal(pipe(output), 0);
	assert_int_equal(fcntl(output[0], F_SETFL, O_NONBLOCK), 0);

	scan_anew(*state, &l);
	assert_in_range(first_wait_ms, CONTENTS_WAIT_MS - 1000, CONTENTS_WAIT_MS);
	assert_int_equal(by_name(&l, "sda1")->error, -ETIMEDOUT);
	assert_string_equal(by_name(&l, "sda1")->uuid, "");
	assert_int_equal(devices_by_uuid(&l, STORE_UUID, &d), 0);

	/* Who reads it keeps nobody waiting who waits for the end of our output, … */
	assert_int_equal(close(output[1]), 0);
	assert_int_equal(read(output[0], &byte, 1), 0);
	close(output[0]);

	/* … it is not waited for again, … */
	scan_anew(*state, &l);
	assert_int_equal(first_wait_ms, 0);
	assert_int_equal(by_name(&l, "sda1")->error, -ETIMEDOUT);
	assert_int_equal(devices_by_uuid(&l, STORE_UUID, &d), 0);

	/* … but known when it has answered after all. */
	*dead = 0;
	for (int i = 0; i < 5000 && by_name(&l, "sda1")->error; i++) {
		nanosleep(&tick, NULL);
		device_list_free(&l);
		scan(*state, &l);
	}
	assert_int_equal(by_name(&l, "sda1")->error, 0);
	assert_int_equal(devices_by_uuid(&l, ROOT_UUID, &d), 0);
}

static void ambivalent_clone_still_spoils_the_label(void **state)
{
	_cleanup_(device_list_free) struct device_list l = {0};
	const struct device *d = NULL;

	add_image(*state, "sda1", ROOT_UUID, "RECOUNT", "^has_journal");
	add_image(*state, "sda2", STORE_UUID, "RECOUNT", "^has_journal");
	poke(*state, "sda1", 0x8000, "\1CD001\1", 7);
	scan(*state, &l);
	assert_int_equal(devices_by_label(&l, "RECOUNT", &d), -ENOTUNIQ);
}

static void machine_without_sysfs_is_an_error(void **state)
{
	struct device_list l;
	char path[2 * FAKEROOT_PATH];

	fakeroot_path(path, *state, "elsewhere");
	assert_int_equal(devices_scan(path, &l), -ENOENT);
}

static void image_path(void **state, char path[2 * FAKEROOT_PATH], const char *name)
{
	snprintf(path, 2 * FAKEROOT_PATH, "%s/dev/%s", (char *)*state, name);
}

static void ext4_facts_are_read_from_the_superblock(void **state)
{
	char path[2 * FAKEROOT_PATH];
	struct ext4_facts f;

	add_image(*state, "sda1", ROOT_UUID, "", "has_journal,metadata_csum");
	image_path(state, path, "sda1");
	assert_int_equal(device_ext4_facts(path, &f), 0);
	assert_true(f.compat & 0x4);	  /* has_journal */
	assert_true(f.incompat & 0x40);	  /* extents */
	assert_true(f.ro_compat & 0x400); /* metadata_csum */
	assert_true(f.clean);
	assert_false(f.needs_recovery);
}

static void dirty_ext4_is_recognised(void **state)
{
	char path[2 * FAKEROOT_PATH];
	struct ext4_facts f;
	unsigned char incompat;

	add_image(*state, "sda1", ROOT_UUID, "", "has_journal");
	image_path(state, path, "sda1");
	assert_int_equal(device_ext4_facts(path, &f), 0);
	incompat = (f.incompat & 0xff) | 0x4;
	poke(*state, "sda1", 1024 + 0x60, &incompat, 1);
	assert_int_equal(device_ext4_facts(path, &f), 0);
	assert_true(f.needs_recovery);
	assert_true(f.clean);

	poke(*state, "sda1", 1024 + 0x3a, "\3\0", 2); /* VALID and ERROR */
	assert_int_equal(device_ext4_facts(path, &f), 0);
	assert_false(f.clean);
	poke(*state, "sda1", 1024 + 0x3a, "\0\0", 2);
	assert_int_equal(device_ext4_facts(path, &f), 0);
	assert_false(f.clean);
}

static void what_is_not_ext_has_no_ext4_facts(void **state)
{
	char path[2 * FAKEROOT_PATH];
	struct ext4_facts f;

	fakeroot_write(*state, "dev/short", "x");
	image_path(state, path, "short");
	assert_int_equal(device_ext4_facts(path, &f), -EBADMSG);
	poke(*state, "zeros", 0, "", 1);
	image_path(state, path, "zeros");
	assert_int_equal(device_ext4_facts(path, &f), -EBADMSG);
	image_path(state, path, "nothing");
	assert_int_equal(device_ext4_facts(path, &f), -ENOENT);
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(scan_lists_disks_and_partitions_with_their_figures),
		test(device_that_cannot_be_opened_hides_no_other),
		test(device_that_does_not_answer_hides_no_other),
		test(slashes_in_names_are_translated),
		test(uuid_and_label_find_the_one_device),
		test(clone_makes_uuid_and_label_useless),
		test(held_devices_do_not_count),
		test(raid_members_and_luks_containers_do_not_count),
		test(swap_is_found_by_uuid),
		test(stack_says_what_a_device_is_built_of),
		test(partition_of_an_md_device_is_md_too),
		test(ambivalent_device_is_found_by_uuid_only),
		test(ambivalent_clone_still_spoils_the_label),
		test(machine_without_sysfs_is_an_error),
		test(ext4_facts_are_read_from_the_superblock),
		test(dirty_ext4_is_recognised),
		test(what_is_not_ext_has_no_ext4_facts),
	};
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	log_to(null); /* the lines about disks that are not there */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
