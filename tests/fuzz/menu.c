/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * grub.cfg, then words to append to a command line, grubenv, custom.cfg and user.cfg.
 * covers: grub/menu.c grub/menu_parse.c grub/menu_default.c grub/script.c grub/condition.c
 * covers: grub/bootline.c
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "grub/bootline.h"
#include "grub/menu.h"

static void require_clean(const char *cmdline)
{
	static const char *const gone[] = {
		"crashkernel=", "resume=", "recount.", "rdinit=", "panic=", "quiet", "splash"};
	const char *pos = cmdline, *word;
	size_t len;

	while (bootline_next(&pos, &word, &len)) {
		if (len == 2 && memcmp(word, "--", 2) == 0)
			break;
		for (size_t i = 0; i < ARRAY_SIZE(gone); i++) {
			size_t n = strlen(gone[i]);

			if (gone[i][n - 1] == '=' || gone[i][n - 1] == '.')
				REQUIRE(len < n || memcmp(word, gone[i], n) != 0);
			else
				REQUIRE(len != n || memcmp(word, gone[i], n) != 0);
		}
	}
}

static void make_cmdlines(const char *cmdline, const char *append)
{
	_cleanup_free_ char *plain = NULL, *again = NULL, *longer = NULL;
	char arg[64];
	const char *pos = cmdline, *word;
	size_t len;

	REQUIRE(menu_cmdline(cmdline, NULL, &plain) == 0);
	require_clean(plain);
	REQUIRE(menu_cmdline(plain, NULL, &again) == 0 && strcmp(plain, again) == 0);
	REQUIRE(menu_cmdline(cmdline, append, &longer) == 0);
	REQUIRE(strlen(longer) <= strlen(plain) + strlen(append) + 2 && strstr(longer, append));
	while (bootline_next(&pos, &word, &len)) {
		int r = bootline_arg(word, len, arg, sizeof(arg));

		REQUIRE(r == 0 || r == -EINVAL || r == -ENAMETOOLONG);
		REQUIRE(r || !strpbrk(arg, "\\'\"\n"));
	}
}

static void look_at_entry(const struct menu *m, const struct menu_entry *e, const char *append)
{
	const struct menu_entry *found;
	const char *slash = e->linux_path ? strrchr(e->linux_path, '/') : NULL;

	REQUIRE(e->title && e->path && strspn(e->path, "0123456789>") == strlen(e->path));
	REQUIRE(!e->cmdline == !e->linux_path && (!e->submenu_id || e->submenu_title));
	for (const struct menu_entry *other = m->entries; other < e; other++)
		REQUIRE(strcmp(other->path, e->path) != 0);
	if (e->cmdline)
		make_cmdlines(e->cmdline, append);
	if (!slash)
		return;
	found = menu_find_kernel(m, slash + 1);
	REQUIRE(found ? !found->recovery && strcmp(strrchr(found->linux_path, '/'), slash) == 0
		      : e->recovery);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size}, cfg = fuzz_part(&in);
	_cleanup_free_ char *append = fuzz_text_part(&in);
	_cleanup_(cleanup_menu) struct menu *m = NULL;
	int next, r;

	fuzz_put("boot/grub/grub.cfg", cfg);
	fuzz_put("boot/grub/grubenv", fuzz_part(&in));
	fuzz_put("boot/grub/custom.cfg", fuzz_part(&in));
	fuzz_put("boot/grub/user.cfg", fuzz_part(&in));
	next = fuzz_next_fd();
	r = menu_read(fuzz_folder(), &m);
	REQUIRE(fuzz_next_fd() == next);
	if (r) {
		REQUIRE(!m && (r == -EBADMSG || r == -E2BIG || (r == -ENOENT && !cfg.size)));
		return 0;
	}
	REQUIRE(m->default_word && strcmp(m->dir, "/boot/grub") == 0);
	REQUIRE(!m->default_entry ||
		(m->default_entry >= m->entries && m->default_entry < m->entries + m->n));
	/* Each with each: those of a menu are few. */
	for (size_t i = 0; i < m->n && i < 64; i++)
		look_at_entry(m, &m->entries[i], append);
	return 0;
}
