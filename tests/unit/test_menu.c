/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Menus as grub-mkconfig writes them on Debian, Ubuntu and Fedora, and the defaults people set. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grub/envblock.h"
#include "grub/menu.h"
#include "tests/unit/folder.h"

#define UUID  "0b6c3c63-0f3c-4b1a-9d0e-6d7b1b0a2c11"
#define OTHER "77777777-0f3c-4b1a-9d0e-6d7b1b0a2c11"

static char root[SAMPLE_FOLDER];
static char *debian; /* tests/unit/grub/debian.cfg */

static void file(const char *name, const char *text, size_t len)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void forget(const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s%s", root, name);
	unlink(path);
}

static struct menu *read_menu(const char *cfg, const char *saved)
{
	static struct envblock b;
	struct menu *m = NULL;

	forget("/boot/grub/grubenv");
	if (saved) {
		envblock_init(&b);
		assert_int_equal(envblock_set(&b, "saved_entry", saved), 0);
		/* A pending one-shot of the person is not the default. */
		assert_int_equal(envblock_set(&b, "next_entry", "0"), 0);
		file("/boot/grub/grubenv", b.bytes, b.len);
	}
	file("/boot/grub/grub.cfg", cfg, strlen(cfg));
	assert_int_equal(menu_read(root, &m), 0);
	return m;
}

/* The Debian menu with another `set default=` line. */
static struct menu *with_default(const char *value, const char *saved)
{
	const char *old = "set default=\"0\"", *at = strstr(debian, old);
	char *cfg = NULL;
	struct menu *m;

	assert_non_null(at);
	assert_true(asprintf(&cfg, "%.*sset default=\"%s\"%s", (int)(at - debian), debian, value,
			     at + strlen(old)) > 0);
	m = read_menu(cfg, saved);
	free(cfg);
	return m;
}

static void expect_default(const char *value, const char *saved, const char *path)
{
	_cleanup_(cleanup_menu) struct menu *m = with_default(value, saved);

	if (!path != !m->default_entry)
		print_error("default %s, saved %s: %s\n", value, saved ? saved : "-",
			    m->default_entry ? m->default_entry->path : "unresolved");
	if (!path) {
		assert_null(m->default_entry);
		return;
	}
	assert_non_null(m->default_entry);
	assert_string_equal(m->default_entry->path, path);
}

static void debian_menu(void **state)
{
	_cleanup_(cleanup_menu) struct menu *m = read_menu(debian, NULL);
	const struct menu_entry *e;

	(void)state;
	assert_string_equal(m->cfg_path, "/boot/grub/grub.cfg");
	assert_string_equal(m->dir, "/boot/grub");
	assert_int_equal(m->sources_custom_cfg, 1);
	assert_int_equal(m->superusers, 0);
	assert_int_equal(m->boot_counter, 0);
	assert_int_equal(m->bls, 0);
	assert_string_equal(m->default_word, "0");
	assert_int_equal(m->n, 8);
	e = &m->entries[0];
	assert_ptr_equal(m->default_entry, e);
	assert_string_equal(e->title, "Debian GNU/Linux");
	assert_string_equal(e->id, "gnulinux-simple-" UUID);
	assert_string_equal(e->path, "0");
	assert_null(e->submenu_title);
	assert_string_equal(e->linux_path, "/boot/vmlinuz-6.12.117+deb12-amd64");
	assert_string_equal(e->cmdline, "root=UUID=" UUID " ro console=ttyS0,115200 "
					"\"dyndbg=file a.c +p\" quiet splash");
	assert_string_equal(e->initrd_paths,
			    "/boot/intel-ucode.img /boot/initrd.img-6.12.117+deb12-amd64");
	assert_string_equal(e->fs_uuid, UUID);
	assert_int_equal(e->recovery, 0);
	e = &m->entries[2];
	assert_string_equal(e->path, "1>1");
	assert_int_equal(e->recovery, 1);
	assert_string_equal(e->submenu_title, "Advanced options for Debian GNU/Linux");
	assert_string_equal(e->submenu_id, "gnulinux-advanced-" UUID);
	assert_string_equal(m->entries[3].path, "1>2");
	/* Other things are counted, but boot no Linux. */
	assert_null(m->entries[7].linux_path);
	assert_null(m->entries[7].fs_uuid);
	assert_string_equal(m->entries[7].path, "3");
}

static void kernel_by_file_name(void **state)
{
	_cleanup_(cleanup_menu) struct menu *m = read_menu(debian, NULL);
	const struct menu_entry *e;

	(void)state;
	e = menu_find_kernel(m, "vmlinuz-6.1.0-57-amd64");
	assert_non_null(e);
	assert_string_equal(e->path, "1>2");
	assert_string_equal(e->fs_uuid, UUID);
	assert_int_equal(e->recovery, 0);
	assert_null(menu_find_kernel(m, "vmlinuz-6.1.0-57"));
	/* Only a recovery entry boots it. */
	assert_null(menu_find_kernel(m, "vmlinuz-5.10.0-30-amd64"));
}

static void defaults(void **state)
{
	(void)state;
	expect_default("0", NULL, "0");
	expect_default("1>2", NULL, "1>2");
	/* A submenu means its first entry. */
	expect_default("1", NULL, "1>0");
	expect_default("gnulinux-simple-" UUID, NULL, "0");
	expect_default("gnulinux-advanced-" UUID ">gnulinux-6.1.0-57-amd64-advanced-" UUID, NULL,
		       "1>2");
	expect_default("Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux "
		       "6.1.0-57-amd64",
		       NULL, "1>2");
	expect_default("1>Debian GNU/Linux, with Linux 6.1.0-57-amd64", NULL, "1>2");
	/* A '>' of a title is written twice. */
	expect_default("A >> B", NULL, "2");
	expect_default("A > B", NULL, NULL);
	/* GRUB would boot something, but not what was meant. */
	expect_default("gnulinux-gone", NULL, NULL);
	expect_default("1>gone", NULL, NULL);
	expect_default("9", NULL, NULL);
	expect_default("1>9", NULL, NULL);
	/* Case 31: what begins with a digit is a number. */
	expect_default("0x1>2", NULL, "1>2");
	expect_default("2nd kernel", NULL, "2");
	/* An entry that is there on some firmware only. */
	expect_default("uefi-firmware", NULL, "3");
	expect_default("3", NULL, NULL);
}

static void saved_default(void **state)
{
	(void)state;
	expect_default("${saved_entry}", "gnulinux-simple-" UUID, "0");
	expect_default("${saved_entry}",
		       "gnulinux-advanced-" UUID ">gnulinux-6.1.0-57-amd64-advanced-" UUID, "1>2");
	expect_default("${saved_entry}", "gone", NULL);
	/* Never saved: GRUB takes the first. */
	expect_default("${saved_entry}", NULL, "0");
	expect_default("${saved_entry}", "", "0");
}

static void default_word_for_people(void **state)
{
	_cleanup_(cleanup_menu) struct menu *m = with_default("${saved_entry}", "gone > x");

	(void)state;
	assert_string_equal(m->default_word, "gone > x");
}

/* New GRUBs keep the values of some file systems outside the file; it then proves nothing. */
static void external_block(void **state)
{
	static struct envblock b;
	struct menu *m = with_default("${saved_entry}", NULL);

	(void)state;
	menu_free(m);
	envblock_init(&b);
	assert_int_equal(envblock_set(&b, "env_block", "512+1"), 0);
	assert_int_equal(envblock_set(&b, "saved_entry", "0"), 0);
	file("/boot/grub/grubenv", b.bytes, b.len);
	assert_int_equal(menu_read(root, &m), 0);
	assert_null(m->default_entry);
	menu_free(m);
}

static void default_that_depends(void **state)
{
	_cleanup_(cleanup_menu) struct menu *m =
		read_menu("set default=1\n"
			  "if cmostest 1:2 ; then set default=0 ; fi\n"
			  "menuentry a { true\n}\nmenuentry b { true\n}\n",
			  NULL);
	struct menu *n;

	(void)state;
	assert_null(m->default_entry);
	n = read_menu("set default=1\nif [ \"$x\" = 1 -o -n \"$y\" ]; then set default=0; fi\n"
		      "menuentry a {\n}\nmenuentry b {\n}\n",
		      NULL);
	assert_non_null(n->default_entry);
	assert_string_equal(n->default_entry->title, "b");
	menu_free(n);
}

/* Case 38: comments that name the file do not count. */
static void case_38_custom_cfg_not_sourced(void **state)
{
	_cleanup_(cleanup_menu) struct menu *m =
		read_menu("### BEGIN /etc/grub.d/41_custom ###\n# source $prefix/custom.cfg\n"
			  "menuentry 'a' {\n linux /vmlinuz-1\n}\n",
			  NULL);

	(void)state;
	assert_int_equal(m->sources_custom_cfg, 0);
	assert_int_equal(m->n, 1);
	assert_string_equal(m->entries[0].cmdline, "");
	assert_null(m->entries[0].fs_uuid);
	assert_null(m->entries[0].id);
}

static void passwords(void **state)
{
	static const char cfg[] = "menuentry a {\n linux /v\n}\n";
	struct menu *m = read_menu("set superusers=\"root\"\n", NULL);

	(void)state;
	assert_int_equal(m->superusers, 1);
	menu_free(m);
	file("/boot/grub/user.cfg", "GRUB2_PASSWORD=grub.pbkdf2.x\n", 29);
	m = read_menu(cfg, NULL);
	assert_int_equal(m->superusers, 1);
	menu_free(m);
	forget("/boot/grub/user.cfg");
	m = read_menu(cfg, NULL);
	assert_int_equal(m->superusers, 0);
	menu_free(m);
}

static void case_19_boot_counter(void **state)
{
	static struct envblock b;
	struct menu *m;

	(void)state;
	menu_free(read_menu("menuentry a {\n}\n", ""));
	envblock_init(&b);
	assert_int_equal(envblock_set(&b, "boot_counter", "2"), 0);
	file("/boot/grub/grubenv", b.bytes, b.len);
	assert_int_equal(menu_read(root, &m), 0);
	assert_int_equal(m->boot_counter, 1);
	menu_free(m);
}

/* Fedora: the kernels are not in grub.cfg; said, not guessed. */
static void fedora_bls(void **state)
{
	struct menu *m;
	static const char cfg[] =
		"if [ -f ${config_directory}/grubenv ]; then\n"
		"  load_env -f ${config_directory}/grubenv\n"
		"elif [ -s $prefix/grubenv ]; then\n  load_env\nfi\n"
		"if [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\n"
		"else\n   set default=\"${saved_entry}\"\nfi\n"
		"insmod blscfg\nblscfg\n"
		"if [ -f  ${config_directory}/custom.cfg ]; then\n"
		"  source ${config_directory}/custom.cfg\nfi\n";

	(void)state;
	forget("/boot/grub/grubenv");
	forget("/boot/grub/grub.cfg");
	assert_int_equal(menu_read(root, &m), -ENOENT);
	file("/boot/grub2/grub.cfg", cfg, sizeof(cfg) - 1);
	assert_int_equal(menu_read(root, &m), 0);
	assert_string_equal(m->cfg_path, "/boot/grub2/grub.cfg");
	assert_string_equal(m->dir, "/boot/grub2");
	assert_int_equal(m->bls, 1);
	assert_int_equal(m->n, 0);
	assert_int_equal(m->sources_custom_cfg, 1);
	assert_null(m->default_entry);
	menu_free(m);
	forget("/boot/grub2/grub.cfg");
}

/* Ubuntu's $vt_handoff is set in a function; unset it is no word. */
static void ubuntu_line(void **state)
{
	_cleanup_(cleanup_menu) struct menu *m = read_menu(
		"function recordfail {\n  set recordfail=1\n  if [ -n \"${have_grubenv}\" ]; then "
		"if [ -z \"${boot_once}\" ]; then save_env recordfail; fi; fi\n}\n"
		"menuentry 'Ubuntu' --class ubuntu --class gnu-linux {\n\trecordfail\n"
		"\tlinux\t/vmlinuz-5.15.0-105-generic root=/dev/mapper/u--vg-root ro  quiet splash "
		"$vt_handoff\n\tinitrd\t/initrd.img-5.15.0-105-generic\n}\n",
		NULL);

	(void)state;
	assert_int_equal(m->n, 1);
	assert_string_equal(m->entries[0].title, "Ubuntu");
	assert_string_equal(m->entries[0].cmdline, "root=/dev/mapper/u--vg-root ro quiet splash");
}

/* The menu of two systems: the same file name on another file system comes second. */
static void nested_and_foreign_entries(void **state)
{
	_cleanup_(cleanup_menu) struct menu *m =
		read_menu("submenu 'Outer' --id o {\n submenu \"Inner\" --id=i {\n"
			  "  menuentry \"In \\\"quotes\\\"\" --id x --users '' {\n"
			  "   search.fs_uuid " UUID
			  " root\n   linux /v-1 a\\ b 'c\"d' e\\\\f;initrd /i\n  }\n }\n}\n"
			  "menuentry 'foreign' {\n search --fs-uuid --set=root " OTHER
			  "\n linux /boot/v-1 \n}\n",
			  NULL);

	(void)state;
	assert_int_equal(m->n, 2);
	assert_string_equal(m->entries[0].title, "In \"quotes\"");
	assert_string_equal(m->entries[0].path, "0>0>0");
	assert_string_equal(m->entries[0].submenu_id, "i");
	assert_string_equal(m->entries[0].id, "x");
	assert_string_equal(m->entries[0].cmdline, "\"a b\" c\\\"d e\\\\f");
	assert_string_equal(m->entries[0].initrd_paths, "/i");
	assert_string_equal(m->entries[0].fs_uuid, UUID);
	assert_string_equal(m->entries[1].fs_uuid, OTHER);
	assert_ptr_equal(menu_find_kernel(m, "v-1"), &m->entries[0]);
}

static void broken_files(void **state)
{
	static const char *const bad[] = {
		"menuentry 'a {\n}\n", "menuentry a {\n",  "}\n",	 "fi\n",
		"if true; then\n",     "menuentry {\n}\n", "set a=\"b\n"};
	struct menu *m = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		file("/boot/grub/grub.cfg", bad[i], strlen(bad[i]));
		assert_int_equal(menu_read(root, &m), -EBADMSG);
	}
	file("/boot/grub/grub.cfg", "a\0b", 3);
	assert_int_equal(menu_read(root, &m), -EBADMSG);
	assert_null(m);
}

static void expect_error(const char *cfg, int error)
{
	struct menu *m = NULL;

	file("/boot/grub/grub.cfg", cfg, strlen(cfg));
	assert_int_equal(menu_read(root, &m), error);
	assert_null(m);
}

/* @n times @line, with the number in it. */
static char *lines(size_t n, const char *line)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, line, i);
	assert_int_equal(fclose(f), 0);
	return text;
}

/* What would take memory or stack without end is refused before it does. */
static void limits(void **state)
{
	static const struct {
		const char *line;
		size_t most;
		int error;
	} cases[] = {
		{"menuentry a%zu { true; }\n", 4096, -E2BIG},
		{"set a%zu=b\n", 4096, -E2BIG},
		{"submenu a%zu {\n", 32, -EBADMSG},
	};
	_cleanup_free_ char *doubled = lines(40, "set a=\"x$a$a\"\n");
	_cleanup_free_ char *empty = lines(20000, "'' ");
	_cleanup_free_ char *negations = lines(100000, "! ");

	(void)state;
	expect_error(doubled, -E2BIG);
	expect_error(empty, -E2BIG);
	expect_error(negations, -E2BIG);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *most = lines(cases[i].most, cases[i].line);
		_cleanup_free_ char *more = lines(cases[i].most + 1, cases[i].line);
		_cleanup_free_ char *closed = NULL;

		assert_true(asprintf(&closed, "%s%.*s", most,
				     cases[i].error == -EBADMSG ? 2 * (int)cases[i].most : 0,
				     "}\n}\n}\n}\n}\n}\n}\n}\n}\n}\n}\n}\n}\n}\n}\n}\n"
				     "}\n}\n}\n}\n}\n}\n}\n}\n}\n}\n}\n}\n}\n}\n}\n}\n") > 0);
		menu_free(read_menu(closed, NULL));
		expect_error(more, cases[i].error);
	}
}

static void negations_are_counted(void **state)
{
	static const struct {
		const char *test, *path;
	} cases[] = {
		{"[ a = a ]", "1"},	  {"[ ! a = a ]", "0"}, {"[ ! ! a = a ]", "1"},
		{"[ ! ! ! a = a ]", "0"}, {"[ ! ]", "1"},	{"[ ! ! ]", "0"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(cleanup_menu) struct menu *m = NULL;
		_cleanup_free_ char *cfg = NULL;

		assert_true(asprintf(&cfg,
				     "if %s; then set default=1; fi\nmenuentry a { true; }\n"
				     "menuentry b { true; }\n",
				     cases[i].test) > 0);
		m = read_menu(cfg, NULL);
		assert_non_null(m->default_entry);
		assert_string_equal(m->default_entry->path, cases[i].path);
	}
}

/* Cut anywhere, the file is read or refused, nothing else. */
static void cut_anywhere(void **state)
{
	size_t len = strlen(debian);

	(void)state;
	for (size_t cut = 0; cut < len; cut += 7) {
		struct menu *m = NULL;
		int r;

		file("/boot/grub/grub.cfg", debian, cut);
		r = menu_read(root, &m);
		assert_true(r == 0 || r == -EBADMSG);
		menu_free(m);
	}
}

static void expect_cmdline(const char *from, const char *append, const char *to)
{
	_cleanup_free_ char *got = NULL;

	assert_int_equal(menu_cmdline(from, append, &got), 0);
	assert_string_equal(got, to);
}

static void cmdline_for_an_entry(void **state)
{
	(void)state;
	expect_cmdline("BOOT_IMAGE=/boot/v root=UUID=x ro quiet splash", "panic=10 noresume",
		       "root=UUID=x ro panic=10 noresume");
	expect_cmdline("crashkernel=384M-:128M crashkernel=1M,low resume=UUID=y recount.token=z "
		       "rdinit=/x panic=0 a",
		       NULL, "a");
	/* Only the very words. */
	expect_cmdline("quieter nosplash noresume resume_offset=1 panic_on_warn=1 x.quiet=1", "",
		       "quieter nosplash noresume resume_offset=1 panic_on_warn=1 x.quiet=1");
	expect_cmdline("a=\"quiet splash\" \"b c=quiet\"  \"resume=a b\"", "d",
		       "a=\"quiet splash\" \"b c=quiet\" d");
	/* The kernel reads no parameters behind "--". */
	expect_cmdline("a -- quiet b", "c", "a c -- quiet b");
	expect_cmdline("", "c", "c");
	expect_cmdline("", NULL, "");
}

static int set_up(void **state)
{
	static const char *const dirs[] = {"/boot", "/boot/grub", "/boot/grub2"};
	FILE *f = fopen("tests/unit/grub/debian.cfg", "r");
	char path[300];
	size_t room = 0;

	(void)state;
	if (!f || getdelim(&debian, &room, '\0', f) <= 0)
		return -1;
	sample_folder(root);
	fclose(f);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		snprintf(path, sizeof(path), "%s%s", root, dirs[i]);
		if (mkdir(path, 0755) < 0)
			return -1;
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(debian);
	sample_folder_remove(root);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(debian_menu),
		cmocka_unit_test(kernel_by_file_name),
		cmocka_unit_test(defaults),
		cmocka_unit_test(saved_default),
		cmocka_unit_test(default_word_for_people),
		cmocka_unit_test(external_block),
		cmocka_unit_test(default_that_depends),
		cmocka_unit_test(case_38_custom_cfg_not_sourced),
		cmocka_unit_test(passwords),
		cmocka_unit_test(case_19_boot_counter),
		cmocka_unit_test(fedora_bls),
		cmocka_unit_test(ubuntu_line),
		cmocka_unit_test(nested_and_foreign_entries),
		cmocka_unit_test(broken_files),
		cmocka_unit_test(limits),
		cmocka_unit_test(negations_are_counted),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(cmdline_for_an_entry),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
