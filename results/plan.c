/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan in memory: look-ups by name, and its release. */
#include "results/plan.h"

#include <string.h>

void plan_pairs_free(struct plan_pair *pairs, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		free(pairs[i].name);
		free(pairs[i].value);
	}
	free(pairs);
}

static void strings_free(char **strings)
{
	size_t i;

	for (i = 0; strings && strings[i]; i++)
		free(strings[i]);
	free(strings);
}

static void entry_free(struct plan_entry *e)
{
	free(e->label);
	free(e->id);
	free(e->version);
	free(e->kernel);
	free(e->initrd);
	free(e->cmdline);
	free(e->twin_of);
}

void plan_workload_clear(struct plan_workload *w)
{
	free(w->name);
	free(w->dir);
	strings_free(w->clean);
	strings_free(w->build);
	free(w->product);
	*w = (struct plan_workload){0};
}

static void boot_free(struct plan_boot *b)
{
	size_t i;

	for (i = 0; i < b->n_trials; i++) {
		free(b->trials[i].workload);
		free(b->trials[i].load);
	}
	free(b->trials);
	free(b->entry);
}

void plan_free(struct plan *plan)
{
	size_t i;

	if (!plan)
		return;
	for (i = 0; i < plan->n_entries; i++)
		entry_free(&plan->entries[i]);
	for (i = 0; i < plan->n_workloads; i++)
		plan_workload_clear(&plan->workloads[i]);
	for (i = 0; i < plan->n_loads; i++) {
		free(plan->loads[i].name);
		free(plan->loads[i].kind);
	}
	for (i = 0; i < plan->n_boots; i++)
		boot_free(&plan->boots[i]);
	plan_pairs_free(plan->panic, plan->n_panic);
	plan_pairs_free(plan->toolchain, plan->n_toolchain);
	free(plan->entries);
	free(plan->workloads);
	free(plan->loads);
	free(plan->boots);
	free(plan->id);
	free(plan->created_utc);
	free(plan->boot_mode);
	free(plan->mode);
	free(plan->baseline);
	free(plan->default_uname);
	free(plan->store_uuid);
	free(plan->root_uuid);
	free(plan->root_fstype);
	free(plan->root_options);
	free(plan->arena_uuid);
	free(plan->arena_partuuid);
	free(plan->arena_fstype);
	free(plan->arena_options);
	free(plan->swap_uuid);
	free(plan);
}

const struct plan_entry *plan_find_entry(const struct plan *plan, const char *label)
{
	size_t i;

	for (i = 0; label && i < plan->n_entries; i++)
		if (strcmp(plan->entries[i].label, label) == 0)
			return &plan->entries[i];
	return NULL;
}

const struct plan_workload *plan_find_workload(const struct plan *plan, const char *name)
{
	size_t i;

	for (i = 0; name && i < plan->n_workloads; i++)
		if (strcmp(plan->workloads[i].name, name) == 0)
			return &plan->workloads[i];
	return NULL;
}

const struct plan_load *plan_find_load(const struct plan *plan, const char *name)
{
	size_t i;

	for (i = 0; name && i < plan->n_loads; i++)
		if (strcmp(plan->loads[i].name, name) == 0)
			return &plan->loads[i];
	return NULL;
}

int plan_uses_bmc(const struct plan *plan)
{
	size_t i;

	for (i = 0; i < plan->n_entries; i++)
		if (plan->entries[i].bmc_s)
			return 1;
	return 0;
}

int plan_is_compared(const struct plan *plan, const char *label)
{
	size_t i;

	for (i = 0; i < plan->n_boots; i++)
		if (plan->boots[i].round > 0 && strcmp(plan->boots[i].entry, label) == 0)
			return 1;
	return 0;
}
