/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text of the block in custom.cfg: guard and entries. */
#include "grub/oneshot_text.h"

#include <errno.h>
#include <string.h>

#include "grub/bootline.h"
#include "grub/oneshot.h"

#define GRUB_ENV "\"($recount_store)/grub/grubenv\""

int oneshot_is_id(const char *s)
{
	static const char head[] = "recount-";
	const struct oneshot_state *limit = NULL;
	size_t len = strlen(s);

	return strncmp(s, head, sizeof(head) - 1) == 0 && len > sizeof(head) - 1 &&
	       len < sizeof(limit->next_entry) &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == len;
}

static int is_uuid(const char *s)
{
	size_t len = strlen(s);

	return len >= 4 && len <= 36 && strspn(s, "0123456789abcdefABCDEF-") == len;
}

/* May stand between single quotes. */
static int is_quotable(const char *s)
{
	for (; *s; s++)
		if (*s == '\'' || *s == '\\' || (unsigned char)*s < ' ' || *s == 0x7f)
			return 0;
	return 1;
}

static int is_path(const char *s)
{
	return *s == '/' && !strchr(s, '"') && is_quotable(s);
}

/* Blank-separated paths. */
static int is_path_list(const char *s)
{
	const char *word;
	size_t len;

	if (!is_path(s))
		return 0;
	while (bootline_next(&s, &word, &len))
		if (*word != '/')
			return 0;
	return 1;
}

static int check_cmdline(const struct oneshot_entry *e)
{
	/* What GRUB puts in front: the image with the longest device name, and the token. */
	size_t len = strlen("BOOT_IMAGE=(hd99,gpt128) recount.token= ") + strlen(e->kernel) +
		     sizeof(((struct oneshot_state *)NULL)->token);
	char arg[ONESHOT_CMDLINE_MAX + 1];
	const char *pos = e->cmdline, *word;
	size_t n;

	while (bootline_next(&pos, &word, &n)) {
		if (bootline_arg(word, n, arg, sizeof(arg)) < 0)
			return n >= sizeof(arg) ? -E2BIG : -EINVAL;
		if (strncmp(arg, "recount.token=", 14) == 0)
			return -EINVAL;
		len += n + 1;
	}
	return len > ONESHOT_CMDLINE_MAX ? -E2BIG : 0;
}

static int check(const char *store_uuid, const struct oneshot_entry *entries, size_t n)
{
	if (!n || !is_uuid(store_uuid))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		const struct oneshot_entry *e = &entries[i];
		int r;

		if (!oneshot_is_id(e->id) || !is_uuid(e->fs_uuid) || !is_path(e->kernel) ||
		    strchr(e->kernel, ' ') || !*e->title || !is_quotable(e->title) ||
		    (e->initrd && !is_path_list(e->initrd)))
			return -EINVAL;
		for (size_t k = 0; k < i; k++)
			if (strcmp(entries[k].id, e->id) == 0)
				return -EINVAL;
		r = check_cmdline(e);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * A block that cannot be cleared must never select anything, again and again: so the key is read a
 * second time from the disk, over variables that hold something else.
 */
static void print_guard(FILE *f, const char *store_uuid, const struct oneshot_entry *entries,
			size_t n)
{
	fputs("set recount_default=\"$default\"\n"
	      "set recount_entry=\n"
	      "set recount_store=\n"
	      "set recount_token=\n"
	      "set recount_taken=\n"
	      "set next_entry=\n",
	      f);
	fprintf(f, "if search --no-floppy --fs-uuid --set=recount_store %s; then\n", store_uuid);
	fputs("  if load_env -f " GRUB_ENV " next_entry recount_token; then\n", f);
	for (size_t i = 0; i < n; i++)
		fprintf(f,
			"    %s [ \"$next_entry\" = '%s' ]; then\n"
			"      set recount_entry='%s'\n",
			i ? "elif" : "if", entries[i].id, entries[i].id);
	fputs("    fi\n"
	      "  fi\n"
	      "fi\n"
	      "if [ -n \"$next_entry\" ]; then\n"
	      "  set next_entry=\n"
	      "  set recount_taken=\"$recount_token\"\n"
	      "  set recount_cleared=\n"
	      "  if save_env -f " GRUB_ENV " next_entry recount_token recount_taken; then\n"
	      "    set next_entry=unread\n"
	      "    set recount_token=unread\n"
	      "    set recount_taken=unread\n"
	      "    if load_env -f " GRUB_ENV " next_entry recount_token recount_taken; then\n"
	      "      if [ -z \"$next_entry\" ]; then\n"
	      "        if [ \"$recount_taken\" = \"$recount_token\" ]; then\n"
	      "          set recount_cleared=yes\n"
	      "        fi\n"
	      "      fi\n"
	      "    fi\n"
	      "  fi\n"
	      "  if [ -n \"$recount_entry\" -a -n \"$recount_cleared\" ]; then\n"
	      "    set default=\"$recount_entry\"\n"
	      "    set timeout_style=menu\n"
	      "    set timeout=1\n"
	      "  else\n"
	      "    set default=\"$recount_default\"\n"
	      "    set recount_token=\n"
	      "  fi\n"
	      "fi\n"
	      "set next_entry=\n"
	      /* At home too nobody may be there to press a key (Ubuntu's recordfail). */
	      "if [ \"$timeout\" = \"-1\" ]; then\n"
	      "  set timeout=5\n"
	      "fi\n",
	      f);
}

static void print_entry(FILE *f, const struct oneshot_entry *e, int unrestricted)
{
	const char *pos = e->cmdline, *word;
	char arg[ONESHOT_CMDLINE_MAX + 1];
	size_t n;

	fprintf(f,
		"menuentry '%s' --id '%s'%s {\n"
		"  set recount_boot=\n"
		"  if search --no-floppy --fs-uuid --set=recount_boot %s; then\n"
		"    if linux \"($recount_boot)\"'%s' \"recount.token=$recount_token\"",
		e->title, e->id, unrestricted ? " --unrestricted" : "", e->fs_uuid, e->kernel);
	while (bootline_next(&pos, &word, &n))
		if (bootline_arg(word, n, arg, sizeof(arg)) == 0)
			fprintf(f, " '%s'", arg);
	fputs("; then\n      if initrd \"($recount_store)/recount.cpio\"", f);
	pos = e->initrd ? e->initrd : "";
	while (bootline_next(&pos, &word, &n))
		fprintf(f, " \"($recount_boot)\"'%.*s'", (int)n, word);
	fputs("; then\n"
	      "        boot\n"
	      "      fi\n"
	      "    fi\n"
	      "  fi\n"
	      "  echo 'recount: this entry cannot be booted; rebooting'\n"
	      "  sleep 5\n"
	      "  reboot\n"
	      "}\n",
	      f);
}

int oneshot_block(const char *store_uuid, const struct oneshot_entry *entries, size_t n,
		  int unrestricted, char **text)
{
	_cleanup_free_ char *buf = NULL;
	size_t len;
	FILE *f;
	int r, bad;

	r = check(store_uuid, entries, n);
	if (r < 0)
		return r;
	f = open_memstream(&buf, &len);
	if (!f)
		return -ENOMEM;
	print_guard(f, store_uuid, entries, n);
	for (size_t i = 0; i < n; i++)
		print_entry(f, &entries[i], unrestricted);
	bad = ferror(f);
	if (fclose(f) || bad)
		return -ENOMEM;
	*text = TAKE_PTR(buf);
	return 0;
}
