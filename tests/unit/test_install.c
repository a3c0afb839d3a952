/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text of the referee's unit, and what the store's boot files survive. */
#include "runner/install.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "grub/oneshot.h"
#include "initramfs/cpio.h"
#include "tests/unit/sample.h"

static char *unit(const char *program, int made)
{
	char *text = NULL;

	assert_int_equal(install_unit_text(program, 60, 0, made, &text), 0);
	return text;
}

static void unit_runs_this_program_and_holds_nobody_up(void **state)
{
	char *text = unit("/usr/local/sbin/recount", 0);

	(void)state;
	assert_non_null(strstr(text, "\nType=simple\n"));
	assert_non_null(strstr(text, "\nAfter=local-fs.target systemd-pstore.service\n"));
	assert_non_null(
		strstr(text, "\nExecStart=\"/usr/local/sbin/recount\" referee --notice 60\n"));
	assert_non_null(strstr(text, "\nStandardOutput=journal+console\n"));
	assert_non_null(strstr(text, "\nWantedBy=multi-user.target\n"));
	/* What it installed and hashes lies there, and fstab may say noauto. */
	assert_non_null(strstr(text, "\nRequiresMountsFor=/boot\n"));
	assert_null(strstr(text, "Before="));
	free(text);
}

static void unit_says_that_a_bmc_may_be_counting(void **state)
{
	char *text = NULL;

	(void)state;
	assert_int_equal(install_unit_text("/usr/sbin/recount", 5, 1, 0, &text), 0);
	assert_non_null(
		strstr(text, "\nExecStart=\"/usr/sbin/recount\" referee --notice 5 --bmc\n"));
	free(text);
}

static void unit_quotes_what_systemd_would_expand(void **state)
{
	char *text = unit("/opt/a b/100%/$HOME/\"x\\y", 0);

	(void)state;
	assert_non_null(strstr(text, "ExecStart=\"/opt/a b/100%%/$$HOME/\\\"x\\\\y\" referee"));
	free(text);
}

static void unit_refuses_a_path_that_it_cannot_hold(void **state)
{
	char *text = NULL;

	(void)state;
	assert_int_equal(install_unit_text("/opt/new\nline", 60, 0, 0, &text), -EINVAL);
	assert_int_equal(install_unit_text("relative", 60, 0, 0, &text), -EINVAL);
	assert_null(text);
}

static void unit_remembers_the_folder_that_was_made_for_it(void **state)
{
	char *made = unit("/usr/sbin/recount", 1), *there = unit("/usr/sbin/recount", 0);

	(void)state;
	assert_non_null(strstr(made, "\n# recount: multi-user.target.wants was made for it\n"));
	assert_null(strstr(there, "was made for it"));
	free(made);
	free(there);
}

/* The boot archive of the smallest thing that looks like a static program. */
static void *make_archive(size_t *len)
{
	static const struct program {
		Elf64_Ehdr ehdr;
		Elf64_Phdr phdr;
	} program = {
		.ehdr = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT},
			 .e_type = ET_EXEC,
			 .e_machine = EM_X86_64,
			 .e_entry = 0x400078,
			 .e_phoff = offsetof(struct program, phdr),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1},
		.phdr = {.p_type = PT_LOAD, .p_filesz = sizeof(struct program)},
	};
	char dir[SAMPLE_FOLDER], path[64];
	void *archive = NULL;
	FILE *f;

	sample_folder(dir);
	snprintf(path, sizeof(path), "%s/recount-init", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(&program, sizeof(program), 1, f), 1);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(cpio_build(path, &archive, len), 0);
	sample_folder_remove(dir);
	return archive;
}

/* The inode number tells a file that was replaced from one that was left alone. */
static ino_t inode_of(const char *dir, const char *name)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void archive_is_rewritten_only_when_it_differs(void **state)
{
	char dir[SAMPLE_FOLDER], path[64];
	size_t len;
	void *archive = make_archive(&len);
	ino_t inode;
	FILE *f;

	(void)state;
	sample_folder(dir);
	assert_int_equal(install_store(dir, archive, len), 0);
	inode = inode_of(dir, "recount.cpio");
	assert_int_equal(install_store(dir, archive, len), 0);
	assert_int_equal(inode_of(dir, "recount.cpio"), inode);
	snprintf(path, sizeof(path), "%s/recount.cpio", dir);
	f = fopen(path, "r+");
	assert_non_null(f);
	assert_int_equal(fputc('x', f), 'x');
	assert_int_equal(fclose(f), 0);
	assert_int_equal(install_store(dir, archive, len), 0);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fgetc(f), '0');
	assert_int_equal(fclose(f), 0);
	assert_int_equal(install_store_remove(dir), 0);
	assert_int_equal(rmdir(dir), 0);
	free(archive);
}

static void store_refuses_what_is_no_boot_archive(void **state)
{
	char dir[SAMPLE_FOLDER];

	(void)state;
	sample_folder(dir);
	assert_int_equal(install_store(dir, "junk", 4), -EBADMSG);
	sample_folder_remove(dir);
}

static void store_keeps_a_good_block_and_renews_a_damaged_one(void **state)
{
	char dir[SAMPLE_FOLDER], path[256];
	struct oneshot_state keys;
	size_t len;
	void *archive = make_archive(&len);
	FILE *f;

	(void)state;
	sample_folder(dir);
	assert_int_equal(install_store(dir, archive, len), 0);
	snprintf(path, sizeof(path), "%s/grub/grubenv", dir);
	assert_int_equal(oneshot_arm(path, "recount-e01", "token-1"), 0);
	assert_int_equal(install_store(dir, archive, len), 0);
	assert_int_equal(oneshot_read(path, &keys), 0);
	assert_string_equal(keys.next_entry, "recount-e01");
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(install_store(dir, archive, len), 0);
	assert_int_equal(oneshot_read(path, &keys), 0);
	assert_string_equal(keys.next_entry, "");
	assert_int_equal(install_store_remove(dir), 0);
	assert_int_equal(install_store_remove(dir), 0);
	/* nothing is left in it */
	assert_int_equal(rmdir(dir), 0);
	free(archive);
}

static void put(const char *root, const char *path, const char *text, mode_t mode)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		if (mkdir(full, 0755))
			assert_int_equal(errno, EEXIST);
	}
	if (!text)
		return;
	f = fopen(full, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(full, mode), 0);
}

static FILE *listing;
static size_t listing_root;

static int list_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	char text[8192] = "";
	FILE *f = type == FTW_F ? fopen(path, "r") : NULL;

	(void)walk;
	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		fclose(f);
	} else if (type == FTW_SL) {
		assert_true(readlink(path, text, sizeof(text) - 1) > 0);
	}
	fprintf(listing, "%s %o %u:%u <%s>\n", path + listing_root, st->st_mode, st->st_uid,
		st->st_gid, text);
	return 0;
}

static int by_line(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every name below @root with mode, owner and content, sorted; free(). */
static char *list(const char *root)
{
	char *text = NULL, *entries[64], *out = NULL, *rest, *entry;
	size_t len, n = 0;

	listing = open_memstream(&text, &len);
	listing_root = strlen(root);
	assert_int_equal(nftw(root, list_one, 8, FTW_PHYS), 0);
	assert_int_equal(fclose(listing), 0);
	for (rest = text; (entry = strsep(&rest, "\n"));)
		if (n < ARRAY_SIZE(entries))
			entries[n++] = entry;
	qsort(entries, n, sizeof(*entries), by_line);
	listing = open_memstream(&out, &len);
	for (size_t i = 0; i < n; i++)
		fprintf(listing, "%s\n", entries[i]);
	assert_int_equal(fclose(listing), 0);
	free(text);
	return out;
}

struct before {
	const char *custom_cfg; /* NULL: no file */
	mode_t mode;
	int wants; /* multi-user.target.wants exists */
};

/* Installs, installs again as `resume` does, and removes twice. */
static void leaves_no_trace(const struct before *b)
{
	static const char block[] = "menuentry 'x' {\n}\n";
	char root[SAMPLE_FOLDER], path[128], *before, *after;
	struct stat st;

	sample_folder(root);
	put(root, "boot/grub/grub.cfg", "# grub\n", 0600);
	put(root, "etc/systemd/system/other.service", "[Unit]\n", 0644);
	if (b->custom_cfg)
		put(root, "boot/grub/custom.cfg", b->custom_cfg, b->mode);
	if (b->wants)
		put(root, "etc/systemd/system/multi-user.target.wants/", NULL, 0);
	before = list(root);
	assert_int_equal(install_outside_present(root), 0);
	assert_int_equal(install_outside(root, "/boot/grub", block, 60, 0), 0);
	assert_int_equal(install_outside_present(root), 1);
	assert_int_equal(install_outside(root, "/boot/grub", block, 5, 0), 0);
	snprintf(path, sizeof(path), "%s/boot/grub/custom.cfg", root);
	assert_int_equal(oneshot_installed(path), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, b->custom_cfg ? b->mode : 0644);
	snprintf(path, sizeof(path), "%s/etc/systemd/system/multi-user.target.wants/" INSTALL_UNIT,
		 root);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(install_outside_remove(root), 0);
	after = list(root);
	assert_string_equal(after, before);
	free(after);
	assert_int_equal(install_outside_present(root), 0);
	assert_int_equal(install_outside_remove(root), 0);
	after = list(root);
	assert_string_equal(after, before);
	free(after);
	free(before);
	sample_folder_remove(root);
}

static void case_71_no_trace_without_custom_cfg_and_wants(void **state)
{
	(void)state;
	leaves_no_trace(&(struct before){NULL, 0, 0});
}

static void case_71_no_trace_in_a_custom_cfg_without_final_newline(void **state)
{
	(void)state;
	leaves_no_trace(&(struct before){"set timeout=3\n# mine", 0600, 1});
}

static void case_71_no_trace_in_an_ordinary_and_an_empty_custom_cfg(void **state)
{
	(void)state;
	leaves_no_trace(&(struct before){"set timeout=3\n", 0644, 1});
	leaves_no_trace(&(struct before){"", 0640, 0});
}

/* What a power cut in the middle of the removal, or of the installation, may leave. */
static void case_71_half_a_removal_is_finished_by_the_next(void **state)
{
	static const char *const gone[] = {
		"boot/grub/custom.cfg",
		"etc/systemd/system/multi-user.target.wants/" INSTALL_UNIT,
		"etc/systemd/system/multi-user.target.wants/",
	};
	char root[SAMPLE_FOLDER], path[128], *before, *after;

	(void)state;
	sample_folder(root);
	put(root, "boot/grub/grub.cfg", "# grub\n", 0600);
	put(root, "etc/systemd/system/", NULL, 0);
	before = list(root);
	assert_int_equal(install_outside(root, "/boot/grub", "menuentry 'x' {\n}\n", 60, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, gone[i]);
		assert_int_equal(remove(path), 0);
		assert_int_equal(install_outside_present(root), 1);
	}
	assert_int_equal(install_outside_remove(root), 0);
	after = list(root);
	assert_string_equal(after, before);
	free(after);
	free(before);
	sample_folder_remove(root);
}

static void unit_tells_whether_a_bmc_is_used(void **state)
{
	char root[SAMPLE_FOLDER];

	(void)state;
	sample_folder(root);
	put(root, "boot/grub/grub.cfg", "# grub\n", 0600);
	put(root, "etc/systemd/system/", NULL, 0);
	assert_int_equal(install_uses_bmc(root), 0);
	for (int uses = 0; uses < 2; uses++) {
		assert_int_equal(
			install_outside(root, "/boot/grub", "menuentry 'x' {\n}\n", 60, uses), 0);
		assert_int_equal(install_uses_bmc(root), uses);
	}
	assert_int_equal(install_outside_remove(root), 0);
	assert_int_equal(install_uses_bmc(root), 0);
	sample_folder_remove(root);
}

static void unit_of_another_maker_is_neither_replaced_nor_removed(void **state)
{
	char root[SAMPLE_FOLDER], *before, *after;

	(void)state;
	sample_folder(root);
	put(root, "boot/grub/grub.cfg", "# grub\n", 0600);
	put(root, "etc/systemd/system/" INSTALL_UNIT, "[Unit]\n", 0644);
	before = list(root);
	assert_int_equal(install_outside(root, "/boot/grub", "menuentry 'x' {\n}\n", 60, 0),
			 -EEXIST);
	assert_int_equal(install_outside_remove(root), 0);
	after = list(root);
	assert_string_equal(after, before);
	free(after);
	free(before);
	sample_folder_remove(root);
}

static void wants_folder_stays_when_another_unit_has_come_into_it(void **state)
{
	char root[SAMPLE_FOLDER], path[128];

	(void)state;
	sample_folder(root);
	put(root, "boot/grub/grub.cfg", "# grub\n", 0600);
	put(root, "etc/systemd/system/", NULL, 0);
	assert_int_equal(install_outside(root, "/boot/grub", "menuentry 'x' {\n}\n", 60, 0), 0);
	put(root, "etc/systemd/system/multi-user.target.wants/other.service", "", 0644);
	assert_int_equal(install_outside_remove(root), 0);
	assert_int_equal(install_outside_present(root), 0);
	snprintf(path, sizeof(path), "%s/etc/systemd/system/multi-user.target.wants/other.service",
		 root);
	assert_int_equal(access(path, F_OK), 0);
	sample_folder_remove(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unit_runs_this_program_and_holds_nobody_up),
		cmocka_unit_test(unit_says_that_a_bmc_may_be_counting),
		cmocka_unit_test(unit_quotes_what_systemd_would_expand),
		cmocka_unit_test(unit_refuses_a_path_that_it_cannot_hold),
		cmocka_unit_test(unit_remembers_the_folder_that_was_made_for_it),
		cmocka_unit_test(case_71_no_trace_without_custom_cfg_and_wants),
		cmocka_unit_test(case_71_no_trace_in_a_custom_cfg_without_final_newline),
		cmocka_unit_test(case_71_no_trace_in_an_ordinary_and_an_empty_custom_cfg),
		cmocka_unit_test(case_71_half_a_removal_is_finished_by_the_next),
		cmocka_unit_test(unit_tells_whether_a_bmc_is_used),
		cmocka_unit_test(unit_of_another_maker_is_neither_replaced_nor_removed),
		cmocka_unit_test(wants_folder_stays_when_another_unit_has_come_into_it),
		cmocka_unit_test(archive_is_rewritten_only_when_it_differs),
		cmocka_unit_test(store_refuses_what_is_no_boot_archive),
		cmocka_unit_test(store_keeps_a_good_block_and_renews_a_damaged_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
