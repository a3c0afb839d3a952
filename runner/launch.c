/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Installs, activates and arms a campaign, then reboots. */
#include "runner/launch.h"

#include <errno.h>
#include <string.h>

#include "grub/oneshot.h"
#include "results/log.h"
#include "runner/arm.h"
#include "runner/bmc_home.h"
#include "runner/install.h"
#include "runner/service.h"

/* What may be written at most: a trial's record and, when its build fails, errors-TT-N.txt; an
 * attempt's small records, its environment, and the kernel's messages or a panic's text (pstore
 * keeps 10 KiB of one, unless it is told otherwise). */
#define TRIAL_BYTES   ((16u << 10) + (64u << 10))
#define ATTEMPT_BYTES ((16u << 10) + (128u << 10) + (128u << 10))
#define SPARE_BYTES   (4u << 20) /* plan, report, folders */

#define PATH_BYTES 1024

struct place { /* where GRUB finds the files of an entry */
	char kernel[PATH_BYTES], initrd[PATH_BYTES], fs_uuid[64];
};

static int is_in_boot(const char *path)
{
	return !strncmp(path, "/boot/", strlen("/boot/"));
}

/* The path GRUB needs for @path, and the file system it lies on. */
static int translate(const struct machine *m, const char *path, char out[PATH_BYTES],
		     const struct device **device)
{
	const char *prefix = is_in_boot(path) ? m->boot_prefix : "";
	const char *rest = is_in_boot(path) ? path + strlen("/boot") : path;

	*device = is_in_boot(path) ? m->boot_dev : m->root_dev;
	if (!*device || !(*device)->uuid[0])
		return -ENODEV;
	return snprintf(out, PATH_BYTES, "%s%s", prefix, rest) >= PATH_BYTES ? -ENAMETOOLONG : 0;
}

/* Does one of a menu's initrd line's words name @initrd? */
static int names_file(const char *words, const char *initrd)
{
	_cleanup_free_ char *copy = words ? strdup(words) : NULL;
	char *rest = copy, *word;

	while ((word = strsep(&rest, " \t")))
		if (!strcmp(machine_file_name(word), machine_file_name(initrd)))
			return 1;
	return 0;
}

/* As the distribution's own menu has it, which is known to boot. */
static int place_from_menu(const struct machine *m, const struct plan_entry *e, struct place *p)
{
	const struct menu_entry *menu = NULL;

	if (m->menu && is_in_boot(e->kernel))
		menu = menu_find_kernel(m->menu, machine_file_name(e->kernel));
	if (!menu || !menu->fs_uuid || !menu->linux_path)
		return -ENOENT;
	if (e->initrd && !names_file(menu->initrd_paths, e->initrd))
		return -ENOENT;
	/* The whole line: microcode comes in an initrd of its own. */
	if (e->initrd && snprintf(p->initrd, PATH_BYTES, "%s", menu->initrd_paths) >= PATH_BYTES)
		return -ENAMETOOLONG;
	snprintf(p->fs_uuid, sizeof(p->fs_uuid), "%s", menu->fs_uuid);
	return snprintf(p->kernel, PATH_BYTES, "%s", menu->linux_path) >= PATH_BYTES ? -ENAMETOOLONG
										     : 0;
}

static int find_place(const struct machine *m, const struct plan_entry *e, struct place *p)
{
	const struct device *kernel = NULL, *initrd = NULL;
	int r;

	*p = (struct place){0};
	if (place_from_menu(m, e, p) == 0)
		return 0;
	*p = (struct place){0};
	r = translate(m, e->kernel, p->kernel, &kernel);
	if (r == 0 && e->initrd)
		r = translate(m, e->initrd, p->initrd, &initrd);
	if (r < 0)
		return log_errno(r, "tell GRUB where %s lies", e->kernel);
	if (e->initrd && initrd != kernel)
		return log_errno(-EXDEV, "load %s and %s from two file systems", e->kernel,
				 e->initrd);
	snprintf(p->fs_uuid, sizeof(p->fs_uuid), "%s", kernel->uuid);
	return 0;
}

static void free_words(char **words, size_t n)
{
	size_t i;

	for (i = 0; words && i < 2 * n; i++)
		free(words[i]);
	free(words);
}

int launch_block(const struct machine *m, const struct plan *plan, const char *plan_sha256,
		 char **text)
{
	_cleanup_free_ struct oneshot_entry *entries = calloc(plan->n_entries, sizeof(*entries));
	_cleanup_free_ struct place *places = calloc(plan->n_entries, sizeof(*places));
	char **words = calloc(2 * plan->n_entries, sizeof(*words)); /* title, command line */
	size_t i, n = plan->n_entries;
	int r = entries && places && words ? 0 : -ENOMEM;

	for (i = 0; r == 0 && i < n; i++) {
		const struct plan_entry *e = &plan->entries[i];

		r = find_place(m, e, &places[i]);
		if (r < 0)
			break;
		if (asprintf(&words[2 * i], "recount: %s", e->label) < 0)
			words[2 * i] = NULL;
		/* In front: the kernel leaves everything behind a "--" to init. */
		if (asprintf(&words[2 * i + 1],
			     "rdinit=/recount-init recount.store=%s recount.plan=%s %s",
			     plan->store_uuid, plan_sha256, e->cmdline) < 0)
			words[2 * i + 1] = NULL;
		if (!words[2 * i] || !words[2 * i + 1])
			r = -ENOMEM;
		entries[i] = (struct oneshot_entry){
			.id = e->id,
			.title = words[2 * i],
			.fs_uuid = places[i].fs_uuid,
			.kernel = places[i].kernel,
			.initrd = e->initrd ? places[i].initrd : NULL,
			.cmdline = words[2 * i + 1],
		};
	}
	if (r == 0) {
		r = oneshot_block(plan->store_uuid, entries, n, m->menu && m->menu->superusers,
				  text);
		if (r < 0)
			log_errno(r, "write the plan's entries for GRUB");
	}
	free_words(words, n);
	return r;
}

uint64_t launch_store_bytes(const struct plan *plan, size_t archive_len)
{
	uint64_t attempt = 0;
	size_t i;

	for (i = 0; i < plan->n_boots; i++)
		attempt += ATTEMPT_BYTES + (uint64_t)plan->boots[i].n_trials * TRIAL_BYTES;
	return attempt * plan->retries + 2 * (uint64_t)archive_len + SPARE_BYTES;
}

static int install(const struct launch *l, int *arming)
{
	_cleanup_free_ char *block = NULL;
	char token[RECORD_TOKEN];
	int r;

	r = launch_block(l->machine, l->plan, l->plan_sha256, &block);
	if (r == 0)
		r = install_store(STORE_DIR, l->archive, l->archive_len);
	if (r == 0)
		r = install_outside(l->machine->root, l->machine->menu->dir, block,
				    l->options->notice_s, plan_uses_bmc(l->plan));
	if (r < 0)
		return r;
	r = store_activate(l->store, l->plan->id);
	if (r < 0)
		return log_errno(r, "make %s the active campaign", l->plan->id);
	if (arming)
		*arming = 1;
	return arm_boot(l->store, STORE_DIR, l->plan, l->plan_sha256, l->boot, l->attempt, token,
			l->bmc_s);
}

int launch_install(const struct launch *l, int *arming)
{
	int r;

	if (!l->machine->menu)
		return log_errno(-ENOENT, "read GRUB's menu");
	r = install(l, arming);
	if (r == 0)
		return 0;
	if (oneshot_disarm(STORE_DIR "/grub/grubenv") < 0)
		log_warn("the one-shot key could not be cleared; without its block GRUB never "
			 "reads it");
	if (store_deactivate(l->store) < 0)
		log_warn("%s stays the active campaign: recount stop", l->plan->id);
	if (install_outside_remove(l->machine->root) == 0)
		log_info("what was installed is removed again; nothing is active");
	return r;
}

int launch_bmc_is_quiet(const struct options *o)
{
	unsigned left_s = *o->root ? 0 : bmc_home_left_s(0);

	if (left_s == 0)
		return 1;
	log_info("refused; nothing was changed: the BMC's watchdog may be counting from another "
		 "boot. Try again in %u s, or stop it: ipmitool mc watchdog off",
		 left_s);
	return 0;
}

int launch_confirm(const struct options *o, const char *question)
{
	char line[16];

	if (o->yes)
		return 1;
	if (!isatty(STDIN_FILENO)) {
		log_info("there is no terminal to ask at: say --yes to agree beforehand");
		return -ENOTTY;
	}
	printf("%s [y/N] ", question);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 0;
	return line[0] == 'y' || line[0] == 'Y';
}

int launch_reboots(const struct options *o)
{
	return !o->no_reboot && !*o->root;
}

int launch_reboot(const struct options *o, const char *id, unsigned bmc_s)
{
	if (!launch_reboots(o)) {
		printf("%s is armed: reboot the machine to begin, or take it back with "
		       "`recount stop`\n",
		       id);
		return EXIT_DONE;
	}
	printf("rebooting\n");
	fflush(stdout);
	sync();
	if (bmc_home_reboot(bmc_s) == 0)
		return EXIT_DONE;
	log_info("%s is armed: reboot the machine yourself, or take it back with `recount stop`",
		 id);
	return EXIT_FAILED;
}
