/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The guarded one-shot: its text, its place in custom.cfg and its keys. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grub/envblock.h"
#include "grub/oneshot.h"
#include "tests/unit/folder.h"

#define STORE "0c5b1a51-3ab4-4df2-8f2f-6b2d3a6f7e01"
#define BOOT  "11111111-2222-3333-4444-555555555555"
#define TOKEN "2026-11-30-a-0007-1-5e3f"

static char dir[SAMPLE_FOLDER];
static char cfg[256], grubenv[256];

static const struct oneshot_entry plain = {
	.id = "recount-e01",
	.title = "recount 6.1.0-57",
	.fs_uuid = BOOT,
	.kernel = "/boot/vmlinuz-6.1.0-57-amd64",
	.initrd = "/boot/initrd.img-6.1.0-57-amd64",
	.cmdline = "root=UUID=" BOOT " ro panic=10",
};

static void put(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static char *get(const char *path)
{
	static char text[65536];
	FILE *f = fopen(path, "r");
	size_t n;

	if (!f)
		return NULL;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	return text;
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static char *block(const struct oneshot_entry *e, size_t n)
{
	char *text = NULL;

	assert_int_equal(oneshot_block(STORE, e, n, 0, &text), 0);
	return text;
}

static int refused(const struct oneshot_entry *e)
{
	char *text = NULL;
	int r = oneshot_block(STORE, e, 1, 0, &text);

	assert_null(text);
	return r;
}

static void block_text(void **state)
{
	struct oneshot_entry e[2] = {plain, plain};
	char *text, *guard_end;

	(void)state;
	e[1].id = "recount-e02";
	e[1].initrd = NULL;
	e[1].cmdline = "root=/dev/sda1 dyndbg=\"file a.c +p\" x=$y;{z}";
	text = block(e, 2);
	guard_end = strstr(text, "menuentry");
	assert_non_null(guard_end);
	assert_non_null(strstr(text, "search --no-floppy --fs-uuid --set=recount_store " STORE));
	assert_non_null(strstr(text, "menuentry 'recount 6.1.0-57' --id 'recount-e01' {\n"));
	assert_non_null(strstr(text, "if linux \"($recount_boot)\"'/boot/vmlinuz-6.1.0-57-amd64' "
				     "\"recount.token=$recount_token\" 'root=UUID=" BOOT
				     "' 'ro' 'panic=10'; then\n"));
	assert_non_null(strstr(text, "initrd \"($recount_store)/recount.cpio\" "
				     "\"($recount_boot)\"'/boot/initrd.img-6.1.0-57-amd64'; then"));
	/* Without an initrd of its own a kernel still gets ours; a quoted blank is one argument. */
	assert_non_null(strstr(text, "initrd \"($recount_store)/recount.cpio\"; then"));
	assert_non_null(strstr(text, " 'dyndbg=file a.c +p' 'x=$y;{z}'; then"));
	free(text);
}

static void order_of_the_guard(void **state)
{
	static const char *const steps[] = {
		"set next_entry=\n",
		"load_env -f \"($recount_store)/grub/grubenv\" next_entry recount_token;",
		"[ \"$next_entry\" = 'recount-e01' ]",
		"set next_entry=\n",
		"set recount_taken=\"$recount_token\"\n",
		"save_env -f \"($recount_store)/grub/grubenv\" next_entry recount_token "
		"recount_taken",
		"set next_entry=unread\n",
		"load_env -f \"($recount_store)/grub/grubenv\" next_entry recount_token",
		"[ -z \"$next_entry\" ]",
		"set default=\"$recount_entry\"\n",
		"set timeout=1\n",
		"set default=\"$recount_default\"\n",
		"menuentry ",
		"if linux ",
		"if initrd ",
		"boot\n",
		"sleep 5\n",
		"reboot\n",
	};
	char *text = block(&plain, 1);
	const char *p = text;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		p = strstr(p, steps[i]);
		if (!p)
			print_error("not there, or too early: %s", steps[i]);
		assert_non_null(p);
		p += strlen(steps[i]);
	}
	free(text);
}

/* Commands of Debian's signed GRUB image; anything else would fail under Secure Boot. */
static void only_built_in_commands(void **state)
{
	static const char *const known[] = {
		"set",	     "if",    "elif",	"else", "fi",	 "search", "load_env", "save_env",
		"menuentry", "linux", "initrd", "boot", "sleep", "reboot", "echo",     "}"};
	char *text = block(&plain, 1), *rest = text, *line;

	(void)state;
	while ((line = strsep(&rest, "\n"))) {
		size_t len;
		int ok = 0;

		line += strspn(line, " ");
		if (strncmp(line, "if ", 3) == 0 || strncmp(line, "elif ", 5) == 0)
			line = strchr(line, ' ') + 1;
		len = strcspn(line, " ");
		ok = !len || strncmp(line, "[", len) == 0;
		for (size_t i = 0; i < ARRAY_SIZE(known); i++)
			ok |= strlen(known[i]) == len && strncmp(line, known[i], len) == 0;
		if (!ok)
			print_error("unknown: %s", line);
		assert_true(ok);
	}
	free(text);
}

static void case_36_no_fallback_case_41_no_recordfail(void **state)
{
	char *text = block(&plain, 1);

	(void)state;
	assert_null(strstr(text, "fallback"));
	assert_null(strstr(text, "recordfail"));
	assert_null(strstr(text, "savedefault"));
	assert_null(strstr(text, "insmod"));
	assert_non_null(strstr(text, "set timeout=1\n"));
	/* at home as well, where the menu would wait for ever */
	assert_non_null(strstr(text, "if [ \"$timeout\" = \"-1\" ]; then\n  set timeout=5\nfi\n"
				     "menuentry "));
	free(text);
}

static void case_37_unrestricted(void **state)
{
	char *text = NULL;

	(void)state;
	assert_int_equal(oneshot_block(STORE, &plain, 1, 1, &text), 0);
	assert_non_null(strstr(text, " --id 'recount-e01' --unrestricted {"));
	free(text);
}

static void ids_that_grub_misreads(void **state)
{
	static const char *const bad[] = {
		"6.1-one",     "recount-",  "recount-e 1", "Recount-e1",  "recount-E1",
		"recount-a>b", "recount-'", "2nd kernel",  "recount-e.1", ""};
	struct oneshot_entry e[2] = {plain, plain};
	char *text = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		e[0].id = bad[i];
		assert_int_equal(refused(e), -EINVAL);
	}
	e[0].id = e[1].id;
	assert_int_equal(oneshot_block(STORE, e, 2, 0, &text), -EINVAL);
	assert_int_equal(oneshot_block(STORE, e, 0, 0, &text), -EINVAL);
	assert_int_equal(oneshot_block("a b", e, 1, 0, &text), -EINVAL);
	assert_int_equal(oneshot_block("$x-1", e, 1, 0, &text), -EINVAL);
	assert_null(text);
}

static void words_that_grub_misreads(void **state)
{
	static const char *const bad[] = {
		"a=it's", "a=b\\c", "\"a=b\nc\"", "recount.token=x", "\"recount.token=x y\"",
		"a=\x01"};
	struct oneshot_entry e = plain;
	char longest[2200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		e.cmdline = bad[i];
		assert_int_equal(refused(&e), -EINVAL);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	e.cmdline = longest;
	assert_int_equal(refused(&e), -E2BIG);
	memset(longest, ' ', 10);
	longest[1900] = '\0';
	assert_int_equal(refused(&e), -E2BIG);
	e = plain;
	e.kernel = "boot/vmlinuz";
	assert_int_equal(refused(&e), -EINVAL);
	e.kernel = "/boot/vm'linuz";
	assert_int_equal(refused(&e), -EINVAL);
	e = plain;
	e.initrd = "/boot/a boot/b";
	assert_int_equal(refused(&e), -EINVAL);
	e = plain;
	e.title = "it's";
	assert_int_equal(refused(&e), -EINVAL);
	e = plain;
	e.fs_uuid = "";
	assert_int_equal(refused(&e), -EINVAL);
}

static void grub_accepts_the_syntax(void **state)
{
	struct oneshot_entry e[3] = {plain, plain, plain};
	char command[600], *text;

	(void)state;
	if (system("command -v grub-script-check >/dev/null 2>&1") != 0) {
		assert_null(getenv("CI"));
		print_message("skipped: no grub-script-check here\n");
		skip();
	}
	e[1].id = "recount-e02";
	e[1].cmdline = "a=\"b c\" d=$e;f|g&h{i}<j>#k ;{ } # --";
	e[2].id = "recount-e03";
	e[2].title = "recount { $x ; \"q\" }";
	text = block(e, 3);
	put(cfg, text, 0644);
	snprintf(command, sizeof(command), "grub-script-check %s", cfg);
	assert_int_equal(system(command), 0);
	/* The checker does see errors. */
	text[strlen(text) - 2] = ' ';
	put(cfg, text, 0644);
	snprintf(command, sizeof(command), "grub-script-check %s >/dev/null 2>&1", cfg);
	assert_int_not_equal(system(command), 0);
	free(text);
	unlink(cfg);
}

static void install_undone_byte_for_byte(void **state)
{
	static const char *const before[] = {"set a=1\n", "set a=1", "", "\n", "a\n\nb"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
		put(cfg, before[i], 0600);
		assert_int_equal(oneshot_installed(cfg), 0);
		assert_int_equal(oneshot_install(cfg, "one\n"), 0);
		assert_int_equal(oneshot_installed(cfg), 1);
		assert_int_equal(mode_of(cfg), 0600);
		assert_memory_equal(get(cfg), before[i], strlen(before[i]));
		assert_non_null(strstr(get(cfg), "\none\n"));
		assert_int_equal(oneshot_install(cfg, "two\nthree\n"), 0);
		assert_null(strstr(get(cfg), "\none\n"));
		assert_non_null(strstr(get(cfg), "\ntwo\nthree\n"));
		assert_int_equal(oneshot_uninstall(cfg), 0);
		assert_string_equal(get(cfg), before[i]);
		assert_int_equal(mode_of(cfg), 0600);
		assert_int_equal(oneshot_uninstall(cfg), 0);
	}
	unlink(cfg);
}

static void install_makes_and_removes_the_file(void **state)
{
	(void)state;
	assert_int_equal(oneshot_installed(cfg), 0);
	assert_int_equal(oneshot_install(cfg, "one\n"), 0);
	assert_int_equal(mode_of(cfg), 0644);
	assert_int_equal(oneshot_install(cfg, "two\n"), 0);
	assert_int_equal(oneshot_uninstall(cfg), 0);
	assert_null(get(cfg));
	assert_int_equal(oneshot_uninstall(cfg), 0);
}

static void additions_by_others_survive(void **state)
{
	FILE *f;

	(void)state;
	for (int existed = 0; existed < 2; existed++) {
		if (existed)
			put(cfg, "head", 0644);
		assert_int_equal(oneshot_install(cfg, "one\n"), 0);
		f = fopen(cfg, "a");
		assert_non_null(f);
		fputs("tail\n", f);
		fclose(f);
		assert_int_equal(oneshot_install(cfg, "two\n"), 0);
		assert_int_equal(oneshot_uninstall(cfg), 0);
		assert_string_equal(get(cfg), existed ? "head\ntail\n" : "tail\n");
		unlink(cfg);
	}
}

static void one_marker_alone_changes_nothing(void **state)
{
	char *whole, *half;

	(void)state;
	assert_int_equal(oneshot_install(cfg, "one\n"), 0);
	whole = strdup(get(cfg));
	assert_non_null(whole);
	half = strstr(whole, "### END");
	assert_non_null(half);
	for (int end = 0; end < 2; end++) {
		char text[1000];

		snprintf(text, sizeof(text), "%.*s", end ? 1000 : (int)(half - whole),
			 end ? half : whole);
		put(cfg, text, 0644);
		assert_int_equal(oneshot_uninstall(cfg), -EBADMSG);
		assert_int_equal(oneshot_install(cfg, "two\n"), -EBADMSG);
		assert_int_equal(oneshot_installed(cfg), -EBADMSG);
		assert_string_equal(get(cfg), text);
	}
	assert_int_equal(oneshot_install(cfg, half), -EINVAL);
	free(whole);
	assert_int_equal(oneshot_install(cfg, "no newline"), -EINVAL);
	unlink(cfg);
}

static void install_follows_a_link(void **state)
{
	char real[300];
	struct stat st;

	(void)state;
	snprintf(real, sizeof(real), "%s/real", dir);
	put(real, "x\n", 0640);
	assert_int_equal(symlink("real", cfg), 0);
	assert_int_equal(oneshot_install(cfg, "one\n"), 0);
	assert_int_equal(lstat(cfg, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(oneshot_uninstall(cfg), 0);
	assert_string_equal(get(real), "x\n");
	unlink(cfg);
	unlink(real);
}

static void expect_state(const char *next, const char *token, const char *taken)
{
	struct oneshot_state s;

	assert_int_equal(oneshot_read(grubenv, &s), 0);
	assert_string_equal(s.next_entry, next);
	assert_string_equal(s.token, token);
	assert_string_equal(s.taken, taken);
}

/* What GRUB does when it takes the one-shot. */
static void take(void)
{
	struct envblock b;

	assert_int_equal(envblock_read(grubenv, &b, NULL), 0);
	assert_int_equal(envblock_set(&b, "next_entry", ""), 0);
	assert_int_equal(envblock_set(&b, "recount_taken", TOKEN), 0);
	assert_int_equal(envblock_write(grubenv, &b), 0);
}

static void arm_take_disarm(void **state)
{
	(void)state;
	assert_int_equal(oneshot_disarm(grubenv), 0);
	assert_null(get(grubenv));
	assert_int_equal(oneshot_arm(grubenv, "recount-e01", TOKEN), 0);
	expect_state("recount-e01", TOKEN, "");
	take();
	expect_state("", TOKEN, TOKEN);
	assert_int_equal(oneshot_arm(grubenv, "recount-e02", TOKEN "2"), 0);
	expect_state("recount-e02", TOKEN "2", TOKEN);
	assert_int_equal(oneshot_disarm(grubenv), 0);
	expect_state("", "", TOKEN);
	assert_int_equal(strlen(get(grubenv)), ENVBLOCK_BYTES);
}

static void arm_refuses_what_grub_would_misread(void **state)
{
	char *before;

	(void)state;
	assert_int_equal(oneshot_arm(grubenv, "recount-e01", TOKEN), 0);
	before = strdup(get(grubenv));
	assert_non_null(before);
	assert_int_equal(oneshot_arm(grubenv, "e01", TOKEN), -EINVAL);
	assert_int_equal(oneshot_arm(grubenv, "recount-e01", "a b"), -EINVAL);
	assert_int_equal(oneshot_arm(grubenv, "recount-e01", ""), -EINVAL);
	assert_string_equal(get(grubenv), before);
	free(before);
}

static void arm_repairs(void **state)
{
	static const char head[] = "# GRUB Environment Block\n";
	struct envblock b;
	struct stat st;
	FILE *f;

	(void)state;
	/* Damaged, NUL fill with a key of ours twice, trailing newline. */
	for (int kind = 0; kind < 3; kind++) {
		f = fopen(grubenv, "w");
		assert_non_null(f);
		fprintf(f, "%snext_entry=x\nforeign=1\nnext_entry=y\n", kind ? head : "# grub\n");
		while (ftell(f) < 1024)
			fputc(kind == 1 ? '\0' : '#', f);
		if (kind == 2)
			fputc('\n', f);
		assert_int_equal(fclose(f), 0);
		assert_int_equal(oneshot_arm(grubenv, "recount-e01", TOKEN), 0);
		assert_int_equal(stat(grubenv, &st), 0);
		assert_int_equal(st.st_size, 1024);
		assert_int_equal(envblock_read(grubenv, &b, NULL), 0);
		expect_state("recount-e01", TOKEN, "");
		assert_int_equal(!!strstr(get(grubenv), "\nforeign=1\n"), kind != 0);
	}
}

static void arm_needs_room_for_what_grub_writes(void **state)
{
	char filler[1024];
	struct envblock b;

	(void)state;
	envblock_init(&b);
	memset(filler, 'x', sizeof(filler));
	filler[900] = '\0';
	assert_int_equal(envblock_set(&b, "foreign", filler), 0);
	assert_int_equal(envblock_create(grubenv, &b), 0);
	assert_int_equal(oneshot_arm(grubenv, "recount-e01", TOKEN), -ENOSPC);
	expect_state("", "", "");
}

static void damaged_block_is_said(void **state)
{
	struct oneshot_state s;

	(void)state;
	put(grubenv, "", 0644);
	assert_int_equal(oneshot_read(grubenv, &s), -EBADMSG);
	assert_int_equal(oneshot_disarm(grubenv), 0);
	expect_state("", "", "");
}

static int set_up(void **state)
{
	(void)state;
	sample_folder(dir);
	snprintf(cfg, sizeof(cfg), "%s/custom.cfg", dir);
	snprintf(grubenv, sizeof(grubenv), "%s/grubenv", dir);
	return 0;
}

static int no_grubenv(void **state)
{
	(void)state;
	unlink(grubenv);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sample_folder_remove(dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(block_text),
		cmocka_unit_test(order_of_the_guard),
		cmocka_unit_test(only_built_in_commands),
		cmocka_unit_test(case_36_no_fallback_case_41_no_recordfail),
		cmocka_unit_test(case_37_unrestricted),
		cmocka_unit_test(ids_that_grub_misreads),
		cmocka_unit_test(words_that_grub_misreads),
		cmocka_unit_test(grub_accepts_the_syntax),
		cmocka_unit_test(install_undone_byte_for_byte),
		cmocka_unit_test(install_makes_and_removes_the_file),
		cmocka_unit_test(additions_by_others_survive),
		cmocka_unit_test(one_marker_alone_changes_nothing),
		cmocka_unit_test(install_follows_a_link),
		cmocka_unit_test_setup(arm_take_disarm, no_grubenv),
		cmocka_unit_test_setup(arm_refuses_what_grub_would_misread, no_grubenv),
		cmocka_unit_test_setup(arm_repairs, no_grubenv),
		cmocka_unit_test_setup(arm_needs_room_for_what_grub_writes, no_grubenv),
		cmocka_unit_test_setup(damaged_block_is_said, no_grubenv),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
