/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Is the machine fit for a campaign? */
#include "runner/check.h"

#include <errno.h>
#include <string.h>

#include "results/digest.h"
#include "runner/amount.h"
#include "runner/launch.h"
#include "runner/planner.h"
#include "runner/target.h"
#include "runner/toolchain.h"
#include "runner/tree.h"

/* More than recount.cpio ever has. */
#define ARCHIVE_BYTES (UINT64_C(4) << 20)

struct check {
	struct findings *f;
	const struct options *o;
	const struct machine *m;
	struct store *store;
	const struct prepared *prepared;
};

/* 0, and said: the partitions cannot be read, so there is nothing to say of what they hold. */
static int check_privilege(struct check *c)
{
	if (geteuid() == 0)
		return 1;
	if (!*c->m->root) {
		findings_no(c->f, "root",
			    "devices cannot be read; run this as root (sudo recount …)");
		return 0;
	}
	findings_warn(c->f, "root", "not root: what the store holds cannot be read");
	return 1;
}

static void check_root_fs(struct check *c)
{
	const struct machine *m = c->m;

	if (strcmp(m->root_fstype, "ext4") != 0 && strcmp(m->root_fstype, "xfs") != 0)
		findings_no(c->f, "root",
			    "the root file system is %s; recount-init can read the toolchain from "
			    "ext4 or xfs only: move the system to one of them",
			    *m->root_fstype ? m->root_fstype : "not known");
	else if (!m->root_dev || !*m->root_dev->uuid)
		findings_no(
			c->f, "root",
			"the root file system is on no plain partition with a UUID; recount-init "
			"cannot find it: move the system to one");
	else if (*m->root_dev->stack || !strcmp(m->root_dev->usage, "raid"))
		findings_no(c->f, "root",
			    "the root file system lies on %s; recount-init opens plain partitions "
			    "only: move the system to one",
			    *m->root_dev->stack ? m->root_dev->stack : "RAID");
	else
		findings_ok(c->f, "root", "%s %s", m->root_dev->path + strlen(m->root),
			    m->root_fstype);
	for (size_t i = 0; i < m->devices.n; i++)
		if (device_is_hibernated(&m->devices.devices[i]))
			findings_no(
				c->f, "root",
				"%s holds a hibernated system; resume and shut it down, or drop "
				"it with mkswap",
				m->devices.devices[i].path + strlen(m->root));
	if (!m->systemd)
		findings_no(
			c->f, "systemd",
			"systemd does not run this machine; the referee, which brings a campaign "
			"on after a failure, is a unit of it");
}

/* Why the running kernel cannot be booted; NULL: it is none of the list. */
static const char *why_not_running(const struct machine *m)
{
	for (size_t i = 0; i < m->kernels.n; i++) {
		const struct kernel *k = &m->kernels.kernels[i];

		if (k->skip && !k->same && k->version && !strcmp(k->version, m->uname))
			return k->skip;
	}
	return NULL;
}

static void check_kernels(struct check *c)
{
	const struct machine *m = c->m;
	const char *why = why_not_running(m);
	size_t fit = c->o->n_appends;

	for (size_t i = 0; i < m->kernels.n; i++) {
		const struct kernel *k = &m->kernels.kernels[i];

		if (!planner_chooses(c->o->kernels, k))
			continue;
		if (k->skip) {
			if (!k->same)
				findings_warn(c->f, "kernels", "%s is left out: %s", k->image,
					      k->skip);
			continue;
		}
		fit++;
		if (m->menu && !menu_find_kernel(m->menu, machine_file_name(k->image)))
			findings_warn(
				c->f, "kernels",
				"GRUB's menu has no entry for %s: it gets the default's command "
				"line (or run update-grub)",
				k->image);
	}
	if (!machine_running_kernel(m))
		findings_no(c->f, "kernels",
			    "the running kernel %s is not among those that can be booted: %s",
			    m->uname, why ? why : "there is no image of it (recount kernels)");
	if (!fit)
		findings_no(c->f, "kernels", "none can be booted%s%s; recount kernels lists them",
			    c->o->kernels ? " of --kernels " : "",
			    c->o->kernels ? c->o->kernels : "");
	else if (fit == 1)
		findings_warn(c->f, "kernels",
			      "there is only one: nothing to compare it with (install another, or "
			      "--append)");
	else
		findings_ok(c->f, "kernels", "%zu entries", fit);
}

static void check_tree(struct check *c)
{
	_cleanup_free_ char *name = NULL;
	struct plan_workload asked = {0};
	const struct prepared *p = c->prepared;
	const char *why;
	int r;

	if (c->m->arena && strcmp(p->arena_uuid, c->m->arena->uuid) != 0)
		findings_no(c->f, "tree",
			    "it was prepared in another arena; recount prepare --tree SRC does it "
			    "anew");
	name = c->o->tree ? tree_name(c->o->tree) : NULL;
	if (c->o->tree && strcmp(p->workload.dir, c->o->tree) != 0 &&
	    (!name || strcmp(p->workload.dir, name) != 0))
		findings_no(c->f, "tree", "%s is prepared, not %s; recount prepare --tree %s",
			    p->workload.dir, name ? name : c->o->tree, c->o->tree);
	if (c->o->target) {
		r = target_parse(c->o->target, c->o->product, &asked, &why);
		if (r == -EINVAL)
			findings_no(c->f, "tree", "--target %s: %s", c->o->target, why);
		else if (r == 0 && !target_equal(&asked, &p->workload))
			findings_no(
				c->f, "tree",
				"another target is prepared; recount prepare --tree %s --target "
				"'%s'",
				p->workload.dir, c->o->target);
		plan_workload_clear(&asked);
	}
}

static void check_tools(struct check *c)
{
	const struct prepared *p = c->prepared;
	const char *missing = toolchain_missing(c->m), *elsewhere;
	static const char *const tools[] = {"make", "gcc"};
	char path[4096], hex[PLAN_SHA256];

	if (missing)
		findings_no(c->f, "tools", "there is no %s; install it (on Debian: make gcc)",
			    missing);
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		if (toolchain_find(c->m, tools[i], path) < 0)
			continue;
		elsewhere = toolchain_elsewhere(c->m, path);
		if (elsewhere)
			findings_no(c->f, "tools",
				    "%s lies on the file system mounted at %s; recount-init mounts "
				    "the root file system alone: move the toolchain there",
				    path, elsewhere);
	}
	for (size_t i = 0; p && i < p->n_toolchain; i++) {
		snprintf(path, sizeof(path), "%s%s", c->m->root, p->toolchain[i].name);
		if (digest_file(path, hex) < 0 || strcmp(hex, p->toolchain[i].value) != 0)
			findings_no(c->f, "tools",
				    "%s is not what it was when the tree was prepared; recount "
				    "prepare does it anew",
				    p->toolchain[i].name);
	}
}

static void check_prepared(struct check *c)
{
	char duration[AMOUNT_BYTES];
	unsigned before = c->f->obstacles;

	/* Without a store nothing can be prepared: its own obstacle is all there is to say. */
	if (c->prepared)
		check_tree(c);
	else if (c->store)
		findings_no(c->f, "tree", "nothing is prepared; recount prepare --tree SRC");
	else if (c->m->store && *c->m->root)
		findings_warn(c->f, "tree",
			      "what is prepared is not known: the store cannot be read");
	check_tools(c);
	if (!c->prepared || c->f->obstacles != before)
		return;
	amount_duration(duration, c->prepared->workload.build_ns);
	findings_ok(c->f, "tree", "%s, builds here: %s cold, -j%u", c->prepared->workload.dir,
		    duration, c->prepared->jobs);
}

static void check_comfort(struct check *c)
{
	check_watchdog(c->f, c->o, c->m);
	if (c->m->turbo == 1)
		findings_warn(
			c->f, "turbo",
			"it is on; runs will vary more (echo 1 > "
			"/sys/devices/system/cpu/intel_pstate/no_turbo, or off in the firmware)");
}

/* What a plan drawn from these options will need; the plan itself is drawn only when all is well.
 */
static void needs(const struct check *c, uint64_t *store_bytes, uint64_t *arena_bytes)
{
	struct plan plan = {.retries = 2};
	struct plan_load *loads = NULL;
	const char *why_no_mem;
	size_t n_loads = 0, n_entries = c->o->n_appends;

	*arena_bytes = 0;
	if (planner_loads(c->o, c->m, &loads, &n_loads, &why_no_mem) < 0)
		loads = NULL;
	for (size_t i = 0; loads && i < n_loads; i++)
		if (!strcmp(loads[i].kind, "io"))
			*arena_bytes = loads[i].bytes;
	planner_loads_free(loads, loads ? n_loads : 0);
	for (size_t i = 0; i < c->m->kernels.n; i++)
		n_entries += !c->m->kernels.kernels[i].skip &&
			     planner_chooses(c->o->kernels, &c->m->kernels.kernels[i]);
	plan.n_boots = c->o->rounds * n_entries + 1;
	plan.boots = calloc(plan.n_boots, sizeof(*plan.boots));
	for (size_t i = 0; plan.boots && i < plan.n_boots; i++)
		plan.boots[i].n_trials = n_loads;
	*store_bytes = plan.boots ? launch_store_bytes(&plan, ARCHIVE_BYTES) : ARCHIVE_BYTES;
	free(plan.boots);
}

void check_machine(struct findings *f, const struct options *o, const struct machine *m,
		   struct store *store, const struct prepared *prepared)
{
	struct check c = {f, o, m, store, prepared};
	uint64_t store_bytes, arena_bytes;

	int may_read = check_privilege(&c);

	check_grub(f, m);
	if (may_read) {
		check_root_fs(&c);
		needs(&c, &store_bytes, &arena_bytes);
		check_partitions(f, o, m, store_bytes, arena_bytes);
		check_prepared(&c);
	}
	check_kernels(&c);
	check_comfort(&c);
}

void check_active(struct findings *f, struct store *store)
{
	char id[STORE_ID];
	int r = store_active(store, id);

	if (r == 0)
		findings_no(
			f, "campaign",
			"%s is active; recount status shows it, recount stop ends it (its results "
			"stay)",
			id);
	else if (r != -ENOENT)
		findings_no(f, "campaign",
			    "the store's file \"active\" is damaged (%s); recount stop removes it",
			    strerror(-r));
}
