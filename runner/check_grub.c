/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Will GRUB do what a campaign needs, and is its default the kernel that runs? */
#include "runner/check.h"

#include <string.h>

#include "initramfs/cmdline.h"
#include "runner/install.h"

/* The version that the default entry boots; NULL: an image that is not known. */
static const char *default_version(const struct machine *m)
{
	const char *name = machine_file_name(m->menu->default_entry->linux_path);

	for (size_t i = 0; i < m->kernels.n; i++) {
		const struct kernel *k = &m->kernels.kernels[i];

		if (k->version && !strcmp(machine_file_name(k->image), name))
			return k->version;
	}
	return NULL;
}

static void say_wrong_default(struct findings *f, const struct machine *m, const char *what)
{
	const struct kernel *running = machine_running_kernel(m);
	const struct menu_entry *e;
	const char *id, *submenu;

	e = running ? menu_find_kernel(m->menu, machine_file_name(running->image)) : NULL;
	if (!e) {
		findings_no(f, "default",
			    "GRUB's default %s, and no entry of its menu boots the running kernel "
			    "%s; run update-grub, reboot into the default, then try again",
			    what, m->uname);
		return;
	}
	id = e->id ? e->id : e->title;
	submenu = e->submenu_id ? e->submenu_id : e->submenu_title;
	findings_no(
		f, "default",
		"GRUB's default %s, but %s runs; make it the default: grub-set-default '%s%s%s' "
		"(with GRUB_DEFAULT=saved in /etc/default/grub), or reboot into the default",
		what, m->uname, submenu ? submenu : "", submenu ? ">" : "", id);
}

static void check_default(struct findings *f, const struct machine *m)
{
	const struct menu *menu = m->menu;
	const char *version;
	char what[512];

	if (!menu->default_entry || !menu->default_entry->linux_path) {
		snprintf(what, sizeof(what), "\"%s\" is none of its entries that boot a kernel",
			 menu->default_word ? menu->default_word : "");
		say_wrong_default(f, m, what);
		return;
	}
	version = default_version(m);
	if (version && !strcmp(version, m->uname)) {
		findings_ok(f, "default", "GRUB's default is the running kernel %s", version);
		return;
	}
	snprintf(what, sizeof(what), "boots %s",
		 version ? version : machine_file_name(menu->default_entry->linux_path));
	say_wrong_default(f, m, what);
}

/* At home a panic that does not reboot would end the night, and nobody would be there. */
static void check_panic(struct findings *f, const struct machine *m)
{
	const struct menu_entry *e = m->menu->default_entry;
	char value[32];

	if (!e || !e->cmdline)
		return;
	if (cmdline_get(e->cmdline, "panic", value, sizeof(value)) < 0)
		findings_warn(
			f, "default",
			"the default entry has no panic= on its command line: a panic at home "
			"would wait for a person; add panic=10 to GRUB_CMDLINE_LINUX_DEFAULT in "
			"/etc/default/grub and run update-grub");
	else if (strtol(value, NULL, 10) == 0)
		findings_warn(f, "default",
			      "the default entry has panic=%s: a panic at home would wait for a "
			      "person; make it panic=10 in /etc/default/grub and run update-grub",
			      value);
}

void check_grub(struct findings *f, const struct machine *m)
{
	const struct menu *menu = m->menu;
	char path[INSTALL_PATH];

	if (!menu) {
		findings_no(
			f, "grub",
			"no grub.cfg that can be read in /boot/grub or /boot/grub2 (%s); recount "
			"works with GRUB only: install it, or run update-grub",
			strerror(-m->menu_err));
		return;
	}
	if (!menu->sources_custom_cfg)
		findings_no(f, "grub",
			    "%s does not source custom.cfg; chmod +x /etc/grub.d/41_custom and run "
			    "update-grub",
			    menu->cfg_path);
	else
		findings_ok(f, "grub", "GRUB (%s); custom.cfg is read by %s",
			    m->efi ? "EFI" : "BIOS", menu->cfg_path);
	if (menu->boot_counter)
		findings_no(f, "grub",
			    "boot_counter is set (greenboot): it would override the one-shot; "
			    "grub-editenv - unset boot_counter, and disable greenboot");
	if (install_block_damaged(m->root, path))
		findings_no(f, "grub",
			    "%s has only one of the lines \"### BEGIN recount\" and \"### END "
			    "recount ###\": take recount's lines out of it by hand",
			    path);
	check_default(f, m);
	check_panic(f, m);
}
