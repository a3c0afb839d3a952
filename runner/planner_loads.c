/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The loads of a plan, sized for the machine. */
#include "runner/planner.h"

#include <errno.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

static uint64_t round_down(uint64_t bytes, uint64_t unit)
{
	return bytes / unit * unit;
}

/* 110 % of RAM: a little more than fits, so that it pages all the time (irman, contest). */
static void size_load(struct plan_load *l, const struct machine *m)
{
	uint64_t ram = m->memtotal_bytes;

	if (!strcmp(l->name, "mem")) {
		l->bytes = round_down(ram / 100 * 110, MIB);
		l->workers = 1;
	} else if (!strcmp(l->name, "io")) {
		l->bytes = ram / 4 < 1024 * MIB ? round_down(ram / 4, MIB) : 1024 * MIB;
		l->workers = 4;
		l->steady_ms = 10000;
	} else if (!strcmp(l->name, "process")) {
		l->workers = m->cpus < PLAN_WORKERS_MAX / 4 ? 4 * m->cpus : PLAN_WORKERS_MAX;
		l->steady_ms = 1000;
	}
}

/* The load's pages, and a quarter of RAM for the build beside it, must fit somewhere. */
static const char *mem_trouble(const struct machine *m)
{
	uint64_t ram = m->memtotal_bytes;

	if (!m->swap)
		return "no swap partition is named (--swap DEV), it would only run out of memory";
	if (ram + m->swap->bytes < ram / 100 * 110 + ram / 4)
		return "the swap partition is too small: it needs 0.35 of the RAM";
	return NULL;
}

void planner_loads_free(struct plan_load *loads, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(loads[i].name);
		free(loads[i].kind);
	}
	free(loads);
}

int planner_loads(const struct options *o, const struct machine *m, struct plan_load **loads,
		  size_t *n, const char **why_no_mem)
{
	_cleanup_free_ char *words = strdup(o->loads ? o->loads : "none,mem,io,process");
	char *rest = words, *name;
	size_t count = 0;
	struct plan_load *list;

	*why_no_mem = NULL;
	list = words ? calloc(strlen(words) + 1, sizeof(*list)) : NULL;
	if (!list)
		return -ENOMEM;
	while ((name = strsep(&rest, ","))) {
		if (!strcmp(name, "mem") && (*why_no_mem = mem_trouble(m)))
			continue;
		list[count].name = strdup(name);
		list[count].kind = strdup(name);
		if (!list[count].name || !list[count].kind) {
			planner_loads_free(list, count + 1);
			return -ENOMEM;
		}
		size_load(&list[count++], m);
	}
	if (!count) {
		free(list);
		return -EINVAL;
	}
	*loads = list;
	*n = count;
	return 0;
}
