/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What grub.cfg says: files, look-ups, and the command line made from an entry. */
#include "grub/menu.h"

#include <errno.h>
#include <string.h>

#include "grub/bootline.h"
#include "grub/envblock.h"
#include "grub/menu_parse.h"
#include "grub/rootfile.h"

#define CFG_BYTES_MAX (4u << 20)

static void entry_free(struct menu_entry *e)
{
	free(e->title);
	free(e->id);
	free(e->path);
	free(e->submenu_title);
	free(e->submenu_id);
	free(e->linux_path);
	free(e->cmdline);
	free(e->initrd_paths);
	free(e->fs_uuid);
}

void menu_free(struct menu *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++)
		entry_free(&m->entries[i]);
	free(m->entries);
	free(m->default_word);
	free(m->cfg_path);
	free(m->dir);
	free(m);
}

/* Reads NAME in the menu's folder: *@buf stays NULL when it is not there. */
static int read_beside(const char *root, const struct menu *m, const char *name, char **buf,
		       size_t *len)
{
	_cleanup_free_ char *path = NULL;
	int r;

	if (asprintf(&path, "%s/%s", m->dir, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = rootfile_read(root, path, CFG_BYTES_MAX, buf, len);
	return r == -ENOENT ? 0 : r;
}

static int read_grubenv(const char *root, struct menu *m, struct envblock *env, int *have)
{
	_cleanup_free_ char *buf = NULL;
	char counter[64];
	size_t len;
	int r;

	r = read_beside(root, m, "grubenv", &buf, &len);
	if (r < 0)
		return r;
	*have = buf && len > 0;
	if (!buf || envblock_decode(buf, len, env, NULL) < 0)
		envblock_init(env);
	m->boot_counter = envblock_get(env, "boot_counter", counter, sizeof(counter)) != -ENOENT;
	return 0;
}

/* A password may also be set in files that grub.cfg sources. */
static int read_passwords(const char *root, struct menu *m)
{
	static const char *const where[][2] = {{"user.cfg", "GRUB2_PASSWORD"},
					       {"custom.cfg", "superusers"}};

	for (size_t i = 0; i < ARRAY_SIZE(where); i++) {
		_cleanup_free_ char *buf = NULL;
		size_t len;
		int r = read_beside(root, m, where[i][0], &buf, &len);

		if (r < 0)
			return r;
		if (buf && strstr(buf, where[i][1]))
			m->superusers = 1;
	}
	return 0;
}

static void mark_recovery(struct menu_entry *e)
{
	static const char *const words[] = {"single",
					    "s",
					    "S",
					    "1",
					    "recovery",
					    "rescue",
					    "emergency",
					    "rd.break",
					    "systemd.unit=rescue.target",
					    "systemd.unit=emergency.target"};
	const char *pos = e->cmdline ? e->cmdline : "", *word;
	size_t len;

	while (bootline_next(&pos, &word, &len))
		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			if (len == strlen(words[i]) && memcmp(word, words[i], len) == 0)
				e->recovery = 1;
	if (strstr(e->title, "(recovery mode)") || (e->id && strstr(e->id, "-recovery-")) ||
	    (e->linux_path && strstr(e->linux_path, "-rescue-")))
		e->recovery = 1;
}

int menu_read(const char *root, struct menu **out)
{
	static const char *const dirs[] = {"/boot/grub", "/boot/grub2"};
	_cleanup_(cleanup_menu) struct menu *m = calloc(1, sizeof(*m));
	_cleanup_free_ struct envblock *env = malloc(sizeof(*env));
	_cleanup_free_ char *cfg = NULL;
	int r = -ENOENT, have_grubenv;
	size_t len;

	if (!m || !env)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(dirs) && r == -ENOENT; i++) {
		free(m->dir);
		free(m->cfg_path);
		m->cfg_path = NULL;
		m->dir = strdup(dirs[i]);
		if (!m->dir || asprintf(&m->cfg_path, "%s/grub.cfg", m->dir) < 0) {
			m->cfg_path = NULL;
			return -ENOMEM;
		}
		r = rootfile_read(root, m->cfg_path, CFG_BYTES_MAX, &cfg, &len);
	}
	if (r < 0)
		return r;
	if (strlen(cfg) != len)
		return -EBADMSG;
	r = read_grubenv(root, m, env, &have_grubenv);
	if (r == 0)
		r = read_passwords(root, m);
	if (r == 0)
		r = menu_parse(m, cfg, env, have_grubenv);
	if (r < 0)
		return r;
	for (size_t i = 0; i < m->n; i++)
		mark_recovery(&m->entries[i]);
	*out = TAKE_PTR(m);
	return 0;
}

const struct menu_entry *menu_find_kernel(const struct menu *m, const char *file_name)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct menu_entry *e = &m->entries[i];
		const char *slash = e->linux_path ? strrchr(e->linux_path, '/') : NULL;

		if (slash && !e->recovery && strcmp(slash + 1, file_name) == 0)
			return e;
	}
	return NULL;
}

static int is_dropped(const char *word, size_t len)
{
	static const char *const whole[] = {"quiet", "splash"};
	static const char *const head[] = {"crashkernel=", "resume=", "recount.",
					   "rdinit=",	   "panic=",  "BOOT_IMAGE="};

	/* A quote before the name means the same parameter. */
	if (len && *word == '"')
		word++, len--;
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
		if (len == strlen(whole[i]) && memcmp(word, whole[i], len) == 0)
			return 1;
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		if (len >= strlen(head[i]) && memcmp(word, head[i], strlen(head[i])) == 0)
			return 1;
	return 0;
}

static void print_word(FILE *f, const char *word, size_t len)
{
	fprintf(f, "%s%.*s", ftell(f) > 0 ? " " : "", (int)len, word);
}

static void print_cmdline(FILE *f, const char *cmdline, const char *append)
{
	const char *pos = cmdline, *word;
	int behind = 0;
	size_t len;

	while (bootline_next(&pos, &word, &len)) {
		if (!behind && len == 2 && memcmp(word, "--", 2) == 0) {
			behind = 1;
			if (append && *append)
				print_word(f, append, strlen(append));
		}
		if (behind || !is_dropped(word, len))
			print_word(f, word, len);
	}
	if (!behind && append && *append)
		print_word(f, append, strlen(append));
}

int menu_cmdline(const char *cmdline, const char *append, char **out)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int bad;

	if (!f)
		return -ENOMEM;
	print_cmdline(f, cmdline, append);
	bad = ferror(f);
	if (fclose(f) || bad)
		return -ENOMEM;
	*out = TAKE_PTR(text);
	return 0;
}
