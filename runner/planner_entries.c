/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The entries of a plan: kernels chosen by pattern, and those with words of their own. */
#include "runner/planner_entries.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>

#include "results/digest.h"
#include "results/log.h"
#include "runner/bmc.h"
#include "runner/bmc_kernel.h"
#include "runner/planner.h"

#define LABEL_BYTES 31 /* of an entry with words of its own: what a table's column can bear */

/* Initrds stop at a shell on failure unless they are told otherwise: Debian's reads panic=,
 * dracut's needs the two rd. words. noresume: a hibernated system must never wake up in a trial. */
#define STOP_WORDS "panic=10 rd.shell=0 rd.emergency=reboot noresume"

struct entries { /* under way */
	const struct options *o;
	const struct machine *m;
	struct plan *plan;
	size_t n_compared; /* entries[0 … n_compared−1] are compared; one more may be the canary's
			    */
};

static int matches(const char *pattern, const struct kernel *k)
{
	return (k->label && !fnmatch(pattern, k->label, 0)) ||
	       (k->version && !fnmatch(pattern, k->version, 0)) ||
	       !fnmatch(pattern, machine_file_name(k->image), 0);
}

int planner_chooses(const char *patterns, const struct kernel *kernel)
{
	_cleanup_free_ char *list = NULL;
	char *rest, *pattern;

	if (!patterns)
		return 1;
	list = strdup(patterns);
	rest = list;
	while ((pattern = strsep(&rest, ",")))
		if (matches(pattern, kernel))
			return 1;
	return 0;
}

/* Every pattern must have a kernel: a mistyped one would silently leave out what was meant. */
static int check_patterns(const struct entries *d)
{
	_cleanup_free_ char *list = d->o->kernels ? strdup(d->o->kernels) : NULL;
	char *rest = list, *pattern;

	if (d->o->kernels && !list)
		return -ENOMEM;
	while ((pattern = strsep(&rest, ","))) {
		const struct kernel *unfit = NULL, *fit = NULL;

		for (size_t i = 0; i < d->m->kernels.n; i++) {
			const struct kernel *k = &d->m->kernels.kernels[i];

			if (matches(pattern, k) && k->skip)
				unfit = k;
			else if (matches(pattern, k))
				fit = k;
		}
		if (fit)
			continue;
		if (unfit)
			log_info("--kernels %s: %s cannot be booted: %s", pattern, unfit->image,
				 unfit->skip);
		else
			log_info(
				"--kernels %s: there is no such kernel; recount kernels lists them",
				pattern);
		return -EINVAL;
	}
	return 0;
}

/* The words of the distribution's own menu for the kernel, or for its default. */
static int entry_cmdline(const struct entries *d, const struct kernel *k, const char *append,
			 char **out)
{
	const struct menu *menu = d->m->menu;
	const struct menu_entry *e;
	_cleanup_free_ char *words = NULL;

	e = menu ? menu_find_kernel(menu, machine_file_name(k->image)) : NULL;
	if (!e && menu)
		e = menu->default_entry;
	if (!e) {
		log_info("GRUB's menu has no command line for %s and no default one", k->image);
		return -EINVAL;
	}
	if (asprintf(&words, "%s%s" STOP_WORDS, append, *append ? " " : "") < 0)
		return -ENOMEM;
	return menu_cmdline(e->cmdline, words, out);
}

static int add_entry(struct entries *d, const struct kernel *k, const char *label,
		     const char *append)
{
	struct plan_entry *e = &d->plan->entries[d->plan->n_entries++];
	char path[PATH_MAX];
	int r;

	e->label = strdup(label);
	e->version = strdup(k->version);
	e->kernel = strdup(k->image);
	e->initrd = k->initrd ? strdup(k->initrd) : NULL;
	if (!e->label || !e->version || !e->kernel || !e->initrd != !k->initrd ||
	    asprintf(&e->id, "recount-e%02zu", d->plan->n_entries) < 0)
		return -ENOMEM;
	if (d->m->bmc && !d->m->bmc_unfit && !bmc_kernel_lacks(d->m->root, k->version))
		e->bmc_s = BMC_ARM_S;
	r = entry_cmdline(d, k, append, &e->cmdline);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s%s", d->m->root, k->image);
	r = digest_file(path, e->kernel_sha256);
	if (r < 0)
		return log_errno(r, "read the kernel %s", path);
	snprintf(path, sizeof(path), "%s%s", d->m->root, e->initrd ? e->initrd : "");
	r = e->initrd ? digest_file(path, e->initrd_sha256) : 0;
	/* A link has no bytes of its own to be compared by. */
	if (r == -ELOOP)
		r = 0;
	return r < 0 ? log_errno(r, "read the initrd %s", path) : 0;
}

/* "LABEL+mitigations=off,nosmt", made short and unique. */
static int append_label(const struct entries *d, const char *label, const char *words,
			char out[LABEL_BYTES + 1])
{
	char full[LABEL_BYTES + 1];
	int n = snprintf(full, sizeof(full), "%s+%s", label, words);

	for (char *p = full; *p; p++)
		if (*p == ' ' || *p == '\t')
			*p = ',';
		else if (*p < ' ' || *p > '~')
			*p = '?';
	memcpy(out, full, sizeof(full));
	if (n > LABEL_BYTES)
		out[LABEL_BYTES - 1] = '~';
	for (unsigned i = 2; plan_find_entry(d->plan, out); i++)
		if (snprintf(out, LABEL_BYTES + 1, "%.*s~%u", LABEL_BYTES - 5, full, i) < 0 ||
		    i == 1000)
			return -EINVAL;
	return 0;
}

static int add_appends(struct entries *d)
{
	char label[LABEL_BYTES + 1];
	int r;

	for (size_t i = 0; i < d->o->n_appends; i++) {
		const char *of = d->o->appends[i].label, *words = d->o->appends[i].cmdline;
		const struct kernel *k = machine_find_kernel(d->m, of);

		if (!k || k->skip) {
			log_info("--append %s: %s%s; recount kernels lists the labels", of,
				 k ? "cannot be booted: " : "no kernel has this label",
				 k ? k->skip : "");
			return -EINVAL;
		}
		r = append_label(d, of, words, label);
		if (r == 0)
			r = add_entry(d, k, label, words);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The entries to compare, and behind them the running kernel for the canary, where it is not one of
 * them. n_compared counts the former. */
static int draw_entries(struct entries *d)
{
	const struct kernel *running = machine_running_kernel(d->m);
	int r = check_patterns(d);

	if (r < 0)
		return r;
	if (!running) {
		log_info("the running kernel %s is not among those that can be booted; recount "
			 "kernels tells why",
			 d->m->uname);
		return -EINVAL;
	}
	d->plan->entries = calloc(d->m->kernels.n + d->o->n_appends + 1, sizeof(struct plan_entry));
	if (!d->plan->entries)
		return -ENOMEM;
	for (size_t i = 0; i < d->m->kernels.n; i++) {
		const struct kernel *k = &d->m->kernels.kernels[i];

		if (!planner_chooses(d->o->kernels, k))
			continue;
		if (k->skip)
			log_info("skipped: %s: %s", k->image, k->skip);
		else if ((r = add_entry(d, k, k->label, "")) < 0)
			return r;
	}
	r = add_appends(d);
	if (r < 0)
		return r;
	d->n_compared = d->plan->n_entries;
	return plan_find_entry(d->plan, running->label) ? 0
							: add_entry(d, running, running->label, "");
}

static int choose_baseline(struct entries *d)
{
	const char *label = d->o->baseline;
	size_t i;

	if (!label)
		label = machine_running_kernel(d->m)->label;
	for (i = 0; i < d->n_compared; i++)
		if (!strcmp(d->plan->entries[i].label, label))
			break;
	if (i == d->n_compared && d->o->baseline) {
		log_info("--baseline %s: no entry of this plan has this label; recount kernels "
			 "lists "
			 "them",
			 label);
		return -EINVAL;
	}
	d->plan->baseline = strdup(d->plan->entries[i < d->n_compared ? i : 0].label);
	return d->plan->baseline ? 0 : -ENOMEM;
}

int planner_entries(const struct options *o, const struct machine *m, struct plan *plan,
		    size_t *n_compared)
{
	struct entries d = {.o = o, .m = m, .plan = plan};
	int r = draw_entries(&d);

	if (r == 0)
		r = choose_baseline(&d);
	if (r == 0)
		*n_compared = d.n_compared;
	return r;
}
