/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The verb report: of the store's partition, or of a folder with a store's content. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "results/log.h"
#include "results/report.h"
#include "runner/machine.h"

static int is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The active campaign, or else the latest. */
static int choose_id(struct store *s, char id[STORE_ID])
{
	char **ids = NULL;
	size_t n = 0;
	int r = store_active(s, id);

	if (r == 0)
		return 0;
	r = store_campaigns(s, &ids, &n);
	if (r < 0)
		return log_errno(r, "list the campaigns");
	if (n)
		snprintf(id, STORE_ID, "%s", ids[n - 1]);
	for (size_t i = 0; i < n; i++)
		free(ids[i]);
	free(ids);
	if (n)
		return 0;
	log_info("there is no campaign in this store; recount start makes one");
	return -ENOENT;
}

static void say_damage(const char *path, int err)
{
	log_errno(err, "read %s; it is left out", path);
}

static int print(const struct options *o, const struct campaign *c)
{
	int r = o->json ? report_json(stdout, c, o->baseline) : report_text(stdout, c, o->baseline);

	if (r == -ENOENT) {
		log_info("--baseline %s: the campaign has no such entry:", o->baseline);
		for (size_t i = 0; i < c->plan->n_entries; i++)
			log_info("  %s", c->plan->entries[i].label);
		return EXIT_REFUSED;
	}
	if (r < 0)
		log_errno(r, "write the report");
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

static int report(const struct options *o, struct store *s, const char *wanted)
{
	_cleanup_(cleanup_plan) struct plan *plan = NULL;
	_cleanup_(cleanup_campaign) struct campaign *c = NULL;
	char id[STORE_ID];
	const char *why = NULL;
	int r;

	if (!wanted) {
		r = choose_id(s, id);
		if (r < 0)
			return EXIT_FAILED;
		wanted = id;
	}
	r = store_plan(s, wanted, &plan, NULL, &why);
	if (r == -ENOENT || r == -EINVAL) {
		log_info("there is no campaign %s here", wanted);
		return EXIT_FAILED;
	}
	if (r < 0) {
		log_errno(r, "read campaigns/%s/plan.json%s%s%s", wanted,
			  why ? " (damaged or cut short, at " : "", why ? why : "", why ? ")" : "");
		return EXIT_FAILED;
	}
	r = campaign_load(s, plan, say_damage, &c);
	if (r < 0) {
		log_errno(r, "read the results of %s", wanted);
		return EXIT_FAILED;
	}
	return print(o, c);
}

static int report_folder(const struct options *o, const char *dir, const char *id)
{
	_cleanup_(cleanup_store) struct store *s = NULL;
	char path[4096];
	int r;

	snprintf(path, sizeof(path), "%s/campaigns", dir);
	if (!is_folder(path)) {
		log_info("%s does not hold a store's content (no campaigns in it)", dir);
		return EXIT_FAILED;
	}
	r = store_open(dir, &s);
	if (r < 0) {
		log_errno(r, "open %s", dir);
		return EXIT_FAILED;
	}
	return report(o, s, id);
}

static int report_partition(const struct options *o, const char *id)
{
	_cleanup_(cleanup_machine) struct machine *m = NULL;
	struct store *s;
	int r, code;

	if (geteuid() != 0) {
		log_info("the store's partition can be read by root only; run this as root, or "
			 "name a "
			 "folder with its content: recount report DIR");
		return EXIT_REFUSED;
	}
	if (machine_read_devices(o, &m) < 0)
		return EXIT_FAILED;
	r = machine_peek_store(m, &s);
	if (r < 0)
		return machine_open_exit(r);
	code = report(o, s, id);
	return machine_close_store(s) < 0 ? EXIT_FAILED : code;
}

int verb_report(const struct options *o)
{
	const char *dir = o->n_args && is_folder(o->args[0]) ? o->args[0] : NULL;
	const char *id = o->n_args > (dir ? 1 : 0) ? o->args[dir ? 1 : 0] : NULL;

	if (!dir && o->n_args > 1) {
		log_info("%s: no such folder", o->args[0]);
		return EXIT_USAGE;
	}
	if (!dir && id && strchr(id, '/')) {
		log_info("%s: no such folder", id);
		return EXIT_FAILED;
	}
	return dir ? report_folder(o, dir, id) : report_partition(o, id);
}
