/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernels and initrds in fake /boot folders. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "grub/kernels.h"
#include "grub/version.h"
#include "tests/unit/folder.h"

#define IMAGE_BYTES 4096

/* An uncompressed initrd with the file "init" and nothing in it. */
#define ZEROS	"00000000"
#define HEADER	"070701" ZEROS "000081ed" ZEROS ZEROS "00000001" ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS
#define INITRD	HEADER "00000005" ZEROS "init\0\0" HEADER "0000000b" ZEROS "TRAILER!!!\0\0\0\0"
#define AMD64	"6.1.0-57-amd64"
#define REBUILD "; rebuild it: update-initramfs -u -k " AMD64

static char root[64];
static struct kernel_list list;

static void path_of(char out[300], const char *name)
{
	snprintf(out, 300, "%s%s", root, name);
}

static void file(const char *name, const void *bytes, size_t len)
{
	char path[300];
	FILE *f;

	path_of(path, name);
	for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void text(const char *name, const char *bytes)
{
	file(name, bytes, strlen(bytes));
}

static void make_link(const char *target, const char *name)
{
	char path[300];

	path_of(path, name);
	assert_int_equal(symlink(target, path), 0);
}

/* A bzImage header with @version; @salt makes another build of it. */
static void make_image(unsigned char out[IMAGE_BYTES], const char *version, int salt)
{
	memset(out, 0, IMAGE_BYTES);
	memcpy(out + 0x1fe, "\x55\xaa\xeb\x66HdrS\x0f\x02", 10);
	memcpy(out + 0x20e, "\x00\x08", 2);
	out[0x236] = 1;
	snprintf((char *)out + 0xa00, 400, "%s (builder@host) #1 SMP", version);
	out[IMAGE_BYTES - 1] = (unsigned char)salt;
}

static void image(const char *name, const char *version, int salt)
{
	unsigned char bytes[IMAGE_BYTES];

	make_image(bytes, version, salt);
	file(name, bytes, sizeof(bytes));
}

static void debian_kernel(const char *version)
{
	char name[200];

	snprintf(name, sizeof(name), "/boot/vmlinuz-%s", version);
	image(name, version, 0);
	snprintf(name, sizeof(name), "/boot/initrd.img-%s", version);
	file(name, INITRD, sizeof(INITRD) - 1);
}

static void find(void)
{
	kernel_list_free(&list);
	assert_int_equal(kernels_find(root, &list), 0);
}

static const struct kernel *get(const char *path)
{
	for (size_t i = 0; i < list.n; i++)
		if (strcmp(list.kernels[i].image, path) == 0)
			return &list.kernels[i];
	fail_msg("%s is not in the list", path);
	return NULL;
}

static void expect_skip(const char *path, const char *why)
{
	const struct kernel *k = get(path);

	if (why) {
		assert_non_null(k->skip);
		assert_string_equal(k->skip, why);
	} else {
		if (k->skip)
			print_error("%s: %s\n", path, k->skip);
		assert_null(k->skip);
	}
}

static void debian(void **state)
{
	const struct kernel *k;

	(void)state;
	debian_kernel("6.12.117+deb12-amd64");
	debian_kernel(AMD64);
	make_link("boot/vmlinuz-6.12.117+deb12-amd64", "/vmlinuz");
	make_link("boot/vmlinuz-" AMD64, "/vmlinuz.old");
	make_link("boot/initrd.img-" AMD64, "/initrd.img.old");
	text("/boot/System.map-" AMD64, "x");
	text("/boot/vmlinuz-" AMD64 ".hmac", "x");
	find();
	assert_int_equal(list.n, 4);
	k = get("/boot/vmlinuz-" AMD64);
	assert_null(k->skip);
	assert_string_equal(k->version, AMD64);
	assert_string_equal(k->label, "6.1.0-57");
	assert_string_equal(k->initrd, "/boot/initrd.img-" AMD64);
	assert_int_equal(k->initrd_bytes, sizeof(INITRD) - 1);
	assert_string_equal(get("/boot/vmlinuz-6.12.117+deb12-amd64")->label, "6.12.117");
	expect_skip("/vmlinuz", "the same file as vmlinuz-6.12.117+deb12-amd64");
	expect_skip("/vmlinuz.old", "the same file as vmlinuz-" AMD64);
	assert_string_equal(get("/vmlinuz.old")->label, "vmlinuz.old");
}

static void none(void **state)
{
	(void)state;
	kernel_list_free(&list);
	assert_int_equal(kernels_find(root, &list), -ENOENT);
	text("/boot/memtest86+.bin", "x");
	assert_int_equal(kernels_find(root, &list), -ENOENT);
}

static void copies_and_left_overs(void **state)
{
	char a[300], b[300];

	(void)state;
	debian_kernel(AMD64);
	path_of(a, "/boot/vmlinuz-" AMD64);
	path_of(b, "/boot/vmlinuz-hard");
	assert_int_equal(link(a, b), 0);
	image("/boot/vmlinuz-copy", AMD64, 0);
	image("/boot/vmlinuz-" AMD64 ".old", AMD64, 1);
	image("/boot/vmlinuz-" AMD64 ".dpkg-tmp", AMD64, 2);
	image("/boot/vmlinuz-5.0.rpmsave", "5.0", 0);
	image("/boot/vmlinuz-0-rescue-abc", AMD64, 3);
	make_link("vmlinuz-gone", "/boot/vmlinuz-dangling");
	text("/boot/vmlinuz-text", "no kernel");
	text("/boot/vmlinuz-empty", "");
	find();
	expect_skip("/boot/vmlinuz-" AMD64, NULL);
	expect_skip("/boot/vmlinuz-hard", "the same file as vmlinuz-" AMD64);
	expect_skip("/boot/vmlinuz-copy", "the same file as vmlinuz-" AMD64);
	expect_skip("/boot/vmlinuz-" AMD64 ".old",
		    "an older build of vmlinuz-" AMD64
		    ", whose modules and initrd are not its own; "
		    "give each build its own CONFIG_LOCALVERSION to compare them");
	expect_skip("/boot/vmlinuz-" AMD64 ".dpkg-tmp", "a left-over of the package manager");
	expect_skip("/boot/vmlinuz-5.0.rpmsave", "a left-over of the package manager");
	expect_skip("/boot/vmlinuz-0-rescue-abc", "a rescue image");
	expect_skip("/boot/vmlinuz-dangling", "a link to a file that is not there; remove it");
	expect_skip("/boot/vmlinuz-text", "it is not an x86-64 kernel image (bzImage)");
	expect_skip("/boot/vmlinuz-empty", "it is empty (0 bytes); install its package again");
}

/* An .old kernel of another version is a kernel of its own. */
static void old_of_another_version(void **state)
{
	(void)state;
	image("/boot/vmlinuz", "6.7.1", 0);
	image("/boot/vmlinuz.old", "6.6.9", 0);
	file("/boot/initrd.img.old", INITRD, sizeof(INITRD) - 1);
	find();
	expect_skip("/boot/vmlinuz", NULL);
	expect_skip("/boot/vmlinuz.old", NULL);
	assert_null(get("/boot/vmlinuz")->initrd);
	assert_string_equal(get("/boot/vmlinuz.old")->initrd, "/boot/initrd.img.old");
	assert_string_equal(list.kernels[0].label, "6.6.9");
}

/* From 6.19 on Debian keeps images with their modules. */
static void images_among_modules(void **state)
{
	(void)state;
	image("/usr/lib/modules/7.1-amd64/vmlinuz", "7.1-amd64", 0);
	file("/boot/initrd.img-7.1-amd64", INITRD, sizeof(INITRD) - 1);
	image("/usr/lib/modules/" AMD64 "/vmlinuz", AMD64, 0);
	debian_kernel(AMD64);
	make_link("../usr/lib/modules/7.1-amd64/vmlinuz", "/boot/vmlinuz-7.1-amd64");
	find();
	assert_int_equal(list.n, 4);
	expect_skip("/usr/lib/modules/7.1-amd64/vmlinuz", NULL);
	assert_string_equal(get("/usr/lib/modules/7.1-amd64/vmlinuz")->initrd,
			    "/boot/initrd.img-7.1-amd64");
	expect_skip("/boot/vmlinuz-7.1-amd64",
		    "the same file as /usr/lib/modules/7.1-amd64/vmlinuz");
	expect_skip("/usr/lib/modules/" AMD64 "/vmlinuz", "the same file as vmlinuz-" AMD64);
}

/* Links are followed inside the root, as that machine would. */
static void absolute_links_stay_inside(void **state)
{
	(void)state;
	debian_kernel(AMD64);
	make_link("/boot/vmlinuz-" AMD64, "/vmlinuz");
	make_link("/etc/passwd", "/vmlinuz.old");
	find();
	expect_skip("/vmlinuz", "the same file as vmlinuz-" AMD64);
	expect_skip("/vmlinuz.old", "a link to a file that is not there; remove it");
}

static void broken_initrds(void **state)
{
	(void)state;
	debian_kernel(AMD64);
	debian_kernel("6.2.0-1-amd64");
	text("/boot/initrd.img-" AMD64, "");
	find();
	expect_skip("/boot/vmlinuz-" AMD64, "its initrd is empty (0 bytes); rebuild it");
	text("/usr/sbin/update-initramfs", "");
	find();
	expect_skip("/boot/vmlinuz-" AMD64, "its initrd is empty (0 bytes)" REBUILD);
	expect_skip("/boot/vmlinuz-6.2.0-1-amd64", NULL);
	file("/boot/initrd.img-" AMD64, INITRD, sizeof(INITRD) - 30);
	find();
	expect_skip("/boot/vmlinuz-" AMD64, "its initrd is cut short" REBUILD);
	text("/boot/initrd.img-" AMD64, "junk");
	find();
	expect_skip("/boot/vmlinuz-" AMD64, "its initrd is cut short" REBUILD);
	text("/boot/initrd.img-" AMD64, "<html></html>");
	find();
	expect_skip("/boot/vmlinuz-" AMD64,
		    "its initrd is in no format that a kernel can unpack" REBUILD);
}

static void names_of_other_distributions(void **state)
{
	(void)state;
	image("/boot/vmlinuz-linux-lts", "6.6.30-1-lts", 0);
	file("/boot/initramfs-linux-lts.img", INITRD, sizeof(INITRD) - 1);
	image("/boot/vmlinuz-6.9.5-200.fc40.x86_64", "6.9.5-200.fc40.x86_64", 0);
	file("/boot/initramfs-6.9.5-200.fc40.x86_64.img", INITRD, sizeof(INITRD) - 1);
	image("/boot/kernel-6.6.9-gentoo", "6.6.9-gentoo", 0);
	file("/boot/initramfs-genkernel-x86_64-6.6.9-gentoo", INITRD, sizeof(INITRD) - 1);
	find();
	assert_string_equal(get("/boot/vmlinuz-linux-lts")->initrd,
			    "/boot/initramfs-linux-lts.img");
	assert_string_equal(get("/boot/vmlinuz-linux-lts")->label, "6.6.30-1");
	assert_string_equal(get("/boot/vmlinuz-6.9.5-200.fc40.x86_64")->label, "6.9.5-200");
	assert_non_null(get("/boot/vmlinuz-6.9.5-200.fc40.x86_64")->initrd);
	assert_non_null(get("/boot/kernel-6.6.9-gentoo")->initrd);
	assert_string_equal(get("/boot/kernel-6.6.9-gentoo")->label, "6.6.9");
}

static void no_initrd_and_nothing_known(void **state)
{
	(void)state;
	image("/boot/vmlinuz-6.6.1-mine", "6.6.1-mine", 0);
	find();
	expect_skip("/boot/vmlinuz-6.6.1-mine", NULL);
	assert_null(get("/boot/vmlinuz-6.6.1-mine")->initrd);
	/* Built in, by the config or by the list of modules. */
	text("/boot/config-6.6.1-mine", "CONFIG_EXT4_FS_POSIX_ACL=m\nCONFIG_EXT4_FS=y\n");
	find();
	expect_skip("/boot/vmlinuz-6.6.1-mine", NULL);
	text("/boot/config-6.6.1-mine", "");
	text("/usr/lib/modules/6.6.1-mine/modules.builtin", "kernel/fs/ext4/ext4.ko\n");
	find();
	expect_skip("/boot/vmlinuz-6.6.1-mine", NULL);
}

static void no_initrd_but_ext4_is_a_module(void **state)
{
	static const char why[] =
		"it has no initrd, but ext4 is a module that it needs first; make it";

	(void)state;
	image("/boot/vmlinuz-6.6.1", "6.6.1", 0);
	text("/boot/config-6.6.1", "CONFIG_A=y\nCONFIG_EXT4_FS=m\n");
	find();
	expect_skip("/boot/vmlinuz-6.6.1", why);
	text("/boot/config-6.6.1", "");
	text("/lib/modules/6.6.1/modules.dep",
	     "kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2/jbd2.ko.xz\n");
	find();
	expect_skip("/boot/vmlinuz-6.6.1", why);
	/* With an initrd that is no matter. */
	file("/boot/initrd.img-6.6.1", INITRD, sizeof(INITRD) - 1);
	find();
	expect_skip("/boot/vmlinuz-6.6.1", NULL);
}

static void no_initrd_but_the_disk_is_a_module(void **state)
{
	char link[100];
	struct stat st;

	(void)state;
	image("/boot/vmlinuz-6.6.1", "6.6.1", 0);
	assert_int_equal(stat(root, &st), 0);
	text("/sys/devices/pci0/0000:00:05.0/virtio1/block/vda/vda1/dev", "x");
	text("/sys/bus/virtio/drivers/virtio_blk/x", "");
	text("/sys/bus/pci/drivers/virtio-pci/x", "");
	text("/sys/module/virtio_blk/x", "");
	text("/sys/dev/block/x", "");
	make_link("../../../../module/virtio_blk", "/sys/bus/virtio/drivers/virtio_blk/module");
	make_link("../../../../bus/virtio/drivers/virtio_blk",
		  "/sys/devices/pci0/0000:00:05.0/virtio1/driver");
	make_link("../../../bus/pci/drivers/virtio-pci", "/sys/devices/pci0/0000:00:05.0/driver");
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	make_link("../../devices/pci0/0000:00:05.0/virtio1/block/vda/vda1", link);
	text("/lib/modules/6.6.1/modules.builtin",
	     "kernel/fs/ext4/ext4.ko\nkernel/drivers/block/virtio_blk.ko\n");
	text("/lib/modules/6.6.1/modules.dep", "kernel/drivers/virtio/virtio_pci.ko:\n");
	find();
	expect_skip("/boot/vmlinuz-6.6.1",
		    "it has no initrd, but virtio-pci is a module that it needs first; make it");
	text("/lib/modules/6.6.1/modules.builtin",
	     "kernel/fs/ext4/ext4.ko\nkernel/drivers/block/virtio_blk.ko\n"
	     "kernel/drivers/virtio/virtio_pci.ko\n");
	find();
	expect_skip("/boot/vmlinuz-6.6.1", NULL);
}

static void configs_that_recount_cannot_use(void **state)
{
	(void)state;
	debian_kernel(AMD64);
	text("/boot/config-" AMD64, "# CONFIG_BLK_DEV_INITRD is not set\nCONFIG_EXT4_FS=y\n");
	find();
	assert_non_null(strstr(get("/boot/vmlinuz-" AMD64)->skip, "(CONFIG_BLK_DEV_INITRD)"));
	text("/boot/config-" AMD64, "CONFIG_BLK_DEV_INITRD=y\n# CONFIG_EXT4_FS is not set\n");
	find();
	assert_non_null(strstr(get("/boot/vmlinuz-" AMD64)->skip, "(CONFIG_EXT4_FS)"));
}

static void labels_are_unique(void **state)
{
	static const char *const expect[][2] = {
		{"/boot/vmlinuz-6.1.0-57-amd64", "6.1.0-57"},
		{"/boot/vmlinuz-6.1.0-57-cloud-amd64", "6.1.0-57-cloud"},
		{"/boot/vmlinuz-6.12.117+deb12-amd64", "6.12.117+deb12"},
		{"/boot/vmlinuz-6.12.117+deb13-amd64", "6.12.117+deb13"},
		{"/boot/vmlinuz-7.3.0-rc2-mine", "7.3-rc2"},
		{"/boot/vmlinuz-7.3.0-mine", "7.3.0"},
		{"/boot/vmlinuz-a", "a"},
		{"/boot/vmlinuz-b", "b"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expect); i++) {
		const char *version = expect[i][0] + strlen("/boot/vmlinuz-");

		/* Two builds of one version. */
		image(expect[i][0], version[1] ? version : "5.5.5-x", (int)i);
	}
	find();
	for (size_t i = 0; i < ARRAY_SIZE(expect); i++)
		assert_string_equal(get(expect[i][0])->label, expect[i][1]);
}

static void order(void **state)
{
	static const char *const sorted[] = {
		"5.10.0-30-amd64", "6.1.0~rc1", "6.1.0-rc1", "6.1.0-rc10", "6.1.0", "6.1.0-9-amd64",
		"6.1.0-10-amd64",  "6.6.9",	"6.6.9-lts", "6.6.10",	   "6.9",   "6.10"};

	(void)state;
	for (size_t i = 1; i < ARRAY_SIZE(sorted); i++) {
		for (size_t k = 0; k < i; k++) {
			if (i == 2 && k == 1)
				continue; /* two spellings of one thing */
			assert_true(version_compare(sorted[k], sorted[i]) < 0);
			assert_true(version_compare(sorted[i], sorted[k]) > 0);
		}
		assert_int_equal(version_compare(sorted[i], sorted[i]), 0);
		image("/boot/vmlinuz-x", "1", 0);
	}
	image("/boot/vmlinuz-a", "6.10.0", 0);
	image("/boot/vmlinuz-b", "6.9.0", 0);
	text("/boot/vmlinuz-0", "junk");
	find();
	assert_string_equal(list.kernels[0].version, "1");
	assert_string_equal(list.kernels[1].version, "6.9.0");
	assert_string_equal(list.kernels[2].version, "6.10.0");
	assert_null(list.kernels[3].version);
}

static void image_header(void **state)
{
	static const char *const bad[] = {"../../../etc/x", "..",    ".6",	"-6.1",
					  "6.1;reboot",	    "6.1/x", "6.1$(x)", "6.1`x`",
					  "6.1'",	    "6.1\\"};
	unsigned char b[IMAGE_BYTES];
	char version[64] = "untouched";

	(void)state;
	make_image(b, "6.12.1~rc1+deb13_x:y@z%1", 0);
	assert_int_equal(kernel_image_version(b, sizeof(b), version, sizeof(version)), 0);
	make_image(b, AMD64, 0);
	assert_int_equal(kernel_image_version(b, sizeof(b), version, sizeof(version)), 0);
	assert_string_equal(version, AMD64);
	assert_int_equal(kernel_image_version(b, sizeof(b), version, 5), -ENAMETOOLONG);
	for (size_t cut = 0; cut <= 0xa00 + strlen(AMD64); cut++)
		assert_int_equal(kernel_image_version(b, cut, version, sizeof(version)), -EBADMSG);
	b[0x236] = 0; /* no 64-bit entry point */
	assert_int_equal(kernel_image_version(b, sizeof(b), version, sizeof(version)), -EBADMSG);
	make_image(b, AMD64, 0);
	b[0x206] = 0x0b; /* protocol 2.11 */
	assert_int_equal(kernel_image_version(b, sizeof(b), version, sizeof(version)), -EBADMSG);
	make_image(b, "", 0);
	assert_int_equal(kernel_image_version(b, sizeof(b), version, sizeof(version)), -EBADMSG);
	make_image(b, "6.1\n", 0);
	assert_int_equal(kernel_image_version(b, sizeof(b), version, sizeof(version)), -EBADMSG);
	/* It becomes part of paths, and of commands that people are told to type. */
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		make_image(b, bad[i], 0);
		assert_int_equal(kernel_image_version(b, sizeof(b), version, sizeof(version)),
				 -EBADMSG);
	}
	make_image(b, AMD64, 0);
	memset(b + 0x20e, 0xff, 2); /* points behind the file */
	assert_int_equal(kernel_image_version(b, sizeof(b), version, sizeof(version)), -EBADMSG);
	assert_string_equal(version, AMD64);
}

static int set_up(void **state)
{
	(void)state;
	sample_folder(root);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	kernel_list_free(&list);
	sample_folder_remove(root);
	return 0;
}

#define rooted(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		rooted(debian),
		rooted(none),
		rooted(copies_and_left_overs),
		rooted(old_of_another_version),
		rooted(images_among_modules),
		rooted(absolute_links_stay_inside),
		rooted(broken_initrds),
		rooted(names_of_other_distributions),
		rooted(no_initrd_and_nothing_known),
		rooted(no_initrd_but_ext4_is_a_module),
		rooted(no_initrd_but_the_disk_is_a_module),
		rooted(configs_that_recount_cannot_use),
		rooted(labels_are_unique),
		rooted(order),
		cmocka_unit_test(image_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
