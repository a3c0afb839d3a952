/* SPDX-License-Identifier: GPL-3.0-or-later */
/* recount stop and uninstall: the machine is as it was before; the results stay. */
#include <errno.h>
#include <string.h>
#include <sys/file.h>

#include "grub/oneshot.h"
#include "results/log.h"
#include "runner/bmc_home.h"
#include "runner/install.h"
#include "runner/machine.h"
#include "runner/service.h"

#define GRUBENV STORE_DIR "/grub/grubenv"

struct undone {
	char id[STORE_ID]; /* of the campaign that was active; "": none */
	int something;	   /* anything at all was there to undo */
	int failed;
	unsigned bmc_left_s; /* for which its watchdog may still be counting */
};

/* The key goes first: from then on every boot is the machine's default. */
static void stop_in_store(struct store *s, struct undone *u)
{
	struct oneshot_state state;
	int r = oneshot_read(GRUBENV, &state);

	if (r == 0 && (state.next_entry[0] || state.token[0])) {
		u->something = 1;
		r = oneshot_disarm(GRUBENV);
	}
	/* From a damaged block GRUB takes nothing. */
	if (r < 0 && r != -ENOENT && r != -EBADMSG) {
		log_errno(r, "clear the one-shot key");
		u->failed = 1;
	}
	r = store_active(s, u->id);
	if (r == -ENOENT)
		u->id[0] = '\0';
	else if (r < 0)
		snprintf(u->id, sizeof(u->id), "of a damaged name");
	if (r == -ENOENT)
		return;
	u->something = 1;
	r = store_deactivate(s);
	if (r < 0) {
		log_errno(r, "end the active campaign");
		u->failed = 1;
	}
}

static void stop_outside(const struct machine *m, struct undone *u)
{
	if (!*m->root)
		service_untell(SERVICE_NOTICE);
	if (!install_outside_present(m->root))
		return;
	u->something = 1;
	if (install_outside_remove(m->root) < 0)
		u->failed = 1;
	if (!*m->root)
		service_reload();
}

/* -ENODEV: there is no store, which is said. */
static int open_store(const struct machine *m, struct store **s)
{
	if (!m->store && m->store_err == -ENOENT) {
		log_info("no store found: what is on it stays as it is");
		return -ENODEV;
	}
	return machine_open_store(m, s);
}

/* Exit code: @code, unless a timer goes on counting, which is said. */
static int finish(int code, const struct undone *u)
{
	if (!u->bmc_left_s)
		return code;
	log_info("but the BMC's watchdog may reset this machine within %u s: ipmitool mc watchdog "
		 "off",
		 u->bmc_left_s);
	return EXIT_FAILED;
}

/* Undoes everything but, unless @uninstall, the store's boot files. */
static int undo(const struct options *o, int uninstall, struct undone *u)
{
	_cleanup_(cleanup_machine) struct machine *m = NULL;
	_cleanup_close_ int lock = -1;
	struct store *s = NULL;
	int r, uses_bmc;

	if (geteuid() != 0) {
		log_info("refused: run this as root (sudo recount %s)",
			 uninstall ? "uninstall" : "stop");
		return EXIT_REFUSED;
	}
	r = machine_read_devices(o, &m);
	if (r < 0)
		return EXIT_FAILED;
	r = machine_lock(m, uninstall ? "uninstall" : "stop", LOCK_EX | LOCK_NB, &lock);
	if (r < 0)
		return r == -EBUSY ? EXIT_REFUSED : EXIT_FAILED;
	r = open_store(m, &s);
	/* Which of two is the campaign's, a person has to say first. */
	if (r == -ENOTUNIQ)
		return EXIT_REFUSED;
	if (r == 0) {
		stop_in_store(s, u);
		if (uninstall && install_store_remove(STORE_DIR) < 0)
			u->failed = 1;
		if (machine_close_store(s) < 0)
			u->failed = 1;
	} else if (r != -ENODEV) {
		u->failed = 1;
	}
	/* Also when the store could not be used: without the block GRUB never looks at it. */
	uses_bmc = install_uses_bmc(m->root);
	stop_outside(m, u);
	if (!*m->root)
		u->bmc_left_s = bmc_home_left_s(uses_bmc);
	return u->failed ? EXIT_FAILED : EXIT_DONE;
}

int verb_stop(const struct options *o)
{
	struct undone u = {0};
	int code = undo(o, 0, &u);

	if (code != EXIT_DONE)
		return finish(code, &u);
	if (u.id[0])
		printf("campaign %s is stopped; its results stay. recount resume goes on with it\n",
		       u.id);
	else if (u.something)
		printf("no active campaign; what was left of an earlier one is removed\n");
	else
		printf("no active campaign; nothing to do\n");
	return finish(EXIT_DONE, &u);
}

int verb_uninstall(const struct options *o)
{
	struct undone u = {0};
	int code = undo(o, 1, &u);

	if (code != EXIT_DONE)
		return finish(code, &u);
	if (u.id[0])
		printf("campaign %s is stopped; its results stay on the store\n", u.id);
	printf("nothing of recount is left outside its two partitions\n");
	return finish(EXIT_DONE, &u);
}
