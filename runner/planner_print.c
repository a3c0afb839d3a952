/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan for people, and how long it will take. */
#include "runner/planner.h"

#include <inttypes.h>
#include <string.h>

#include "runner/amount.h"

#define SECOND_NS INT64_C(1000000000)
#define BOOT_NS	  (90 * SECOND_NS) /* firmware, GRUB, kernel, and ours before the first T0 */

/* By experience: how much slower a build is beside a load, and what goes before T0. */
static const struct {
	const char *kind;
	int64_t percent, before_ns;
} costs[] = {
	{"none", 100, 10 * SECOND_NS},
	{"mem", 200, 90 * SECOND_NS},
	{"io", 160, 40 * SECOND_NS},
	{"process", 200, 15 * SECOND_NS},
};

static int64_t trial_ns(const struct plan *plan, const struct plan_trial *t)
{
	const struct plan_workload *w = plan_find_workload(plan, t->workload);
	const struct plan_load *l = plan_find_load(plan, t->load);

	for (size_t i = 0; l && w && i < ARRAY_SIZE(costs); i++)
		if (!strcmp(costs[i].kind, l->kind))
			return w->build_ns / 100 * costs[i].percent + costs[i].before_ns;
	return w ? w->build_ns : 0;
}

int64_t planner_estimate_ns(const struct plan *plan)
{
	int64_t ns = 0;

	for (size_t i = 0; i < plan->n_boots; i++) {
		ns += BOOT_NS;
		for (size_t k = 0; k < plan->boots[i].n_trials; k++)
			ns += trial_ns(plan, &plan->boots[i].trials[k]);
	}
	return ns;
}

static void print_argv(FILE *out, char *const *argv, unsigned jobs)
{
	for (size_t i = 0; argv[i]; i++) {
		fprintf(out, "%s%s", i ? " " : "", argv[i]);
		if (!i && jobs)
			fprintf(out, " -j%u", jobs);
	}
}

static void print_load(FILE *out, const struct plan *plan, const struct plan_load *l)
{
	char size[AMOUNT_BYTES];

	fprintf(out, "  %s", l->name);
	if (l->bytes) {
		amount_size(size, l->bytes);
		fprintf(out, ", %s", size);
	}
	if (l->workers)
		fprintf(out, ", %u worker%s", l->workers, l->workers == 1 ? "" : "s");
	if (!strcmp(l->kind, "mem") && plan->swap_uuid) {
		amount_size(size, plan->swap_bytes);
		fprintf(out, ", %s of swap", size);
	}
	fputc('\n', out);
}

static void print_head(FILE *out, const struct plan *plan)
{
	size_t n_entries = 0, n_trials = 0;
	char duration[AMOUNT_BYTES];

	for (size_t i = 0; i < plan->n_entries; i++)
		n_entries += plan_is_compared(plan, plan->entries[i].label);
	for (size_t i = 1; i < plan->n_boots; i++)
		n_trials += plan->boots[i].n_trials;
	fprintf(out,
		"campaign %s: %zu kernel%s, %u round%s, %zu load%s = %zu trial%s in %zu boot%s "
		"(+1 trial boot)\n",
		plan->id, n_entries, n_entries == 1 ? "" : "s", plan->rounds_max,
		plan->rounds_max == 1 ? "" : "s", plan->n_loads, plan->n_loads == 1 ? "" : "s",
		n_trials, n_trials == 1 ? "" : "s", plan->n_boots - 1,
		plan->n_boots == 2 ? "" : "s");
	amount_duration(duration, planner_estimate_ns(plan));
	fprintf(out, "about %s; seed %" PRIu64 "; baseline %s\n", duration, plan->seed,
		plan->baseline);
	if (plan->home_every_rounds)
		fprintf(out, "comes home to the default after every %u round%s\n",
			plan->home_every_rounds, plan->home_every_rounds == 1 ? "" : "s");
}

static void print_workloads(FILE *out, const struct plan *plan)
{
	char duration[AMOUNT_BYTES];

	fputs("\nworkload\n", out);
	for (size_t i = 0; i < plan->n_workloads; i++) {
		const struct plan_workload *w = &plan->workloads[i];

		amount_duration(duration, w->build_ns);
		fprintf(out, "  %s, in %s of the arena: ", w->name, w->dir);
		print_argv(out, w->clean, 0);
		fputs("; ", out);
		print_argv(out, w->build, plan->boots[0].trials[0].jobs);
		fprintf(out, "\n  %s cold when it was prepared\n", duration);
	}
}

static void print_boots(FILE *out, const struct plan *plan)
{
	fputs("\nboots, in order\n", out);
	for (size_t i = 0; i < plan->n_boots; i++) {
		const struct plan_boot *b = &plan->boots[i];

		if (b->round)
			fprintf(out, "  %4u  round %-4u %-20s", b->boot, b->round, b->entry);
		else
			fprintf(out, "  %4u  canary     %-20s", b->boot, b->entry);
		for (size_t k = 0; k < b->n_trials; k++)
			fprintf(out, " %s", b->trials[k].load);
		fputc('\n', out);
	}
}

void planner_print(FILE *out, const struct plan *plan)
{
	print_head(out, plan);
	print_workloads(out, plan);
	fputs("\nloads\n", out);
	for (size_t i = 0; i < plan->n_loads; i++)
		print_load(out, plan, &plan->loads[i]);
	fputs("\nentries\n", out);
	for (size_t i = 0; i < plan->n_entries; i++) {
		const struct plan_entry *e = &plan->entries[i];

		fprintf(out, "  %s%s\n    %s\n    initrd %s\n    %s\n", e->label,
			plan_is_compared(plan, e->label) ? "" : "   (for the trial boot only)",
			e->kernel, e->initrd ? e->initrd : "none", e->cmdline);
		if (e->bmc_s)
			fprintf(out, "    BMC's watchdog armed before each boot, %u s\n", e->bmc_s);
	}
	print_boots(out, plan);
}
