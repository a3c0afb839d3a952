/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Draws the plan of a campaign. */
#include "runner/planner.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "results/log.h"
#include "runner/planner_entries.h"
#include "runner/shuffle.h"

#define MINUTE_MS      (60 * INT64_C(1000))
#define GIB	       (UINT64_C(1) << 30)
#define RETRIES	       2
#define BUILD_SLOWDOWN 10 /* a build that takes this many times what it took at prepare is lost */

static const struct plan_pair panic_sysctls[] = {
	{"kernel.panic", "10"},
	{"kernel.panic_on_oops", "1"},
	{"kernel.softlockup_panic", "1"},
	/* A thrashing machine keeps tasks waiting for minutes, and that is no fault of its kernel.
	 */
	{"kernel.hung_task_panic", "0"},
};

struct draft {
	const struct options *o;
	const struct machine *m;
	const struct prepared *prepared;
	struct plan *plan;
};

/* strdup() that remembers a failure, so that a struct can be filled as a list. */
static char *copy(const char *text, int *err)
{
	char *new = text ? strdup(text) : NULL;

	if (text && !new)
		*err = -ENOMEM;
	return new;
}

unsigned planner_boots_max(unsigned rounds, size_t n_entries)
{
	return 2 * (rounds * (unsigned)n_entries + 1) + 10;
}

/* A boot with a trial for each of the first @n_loads of @load_order. */
static int fill_boot(struct draft *d, unsigned round, size_t entry, const size_t *load_order,
		     size_t n_loads)
{
	struct plan *p = d->plan;
	struct plan_boot *b = &p->boots[p->n_boots];
	int err = 0;

	b->boot = (unsigned)p->n_boots++;
	b->round = round;
	b->entry = copy(p->entries[entry].label, &err);
	b->trials = calloc(n_loads, sizeof(*b->trials));
	if (!b->trials)
		return -ENOMEM;
	b->n_trials = n_loads;
	for (size_t i = 0; i < n_loads; i++) {
		b->trials[i].trial = (unsigned)i + 1;
		b->trials[i].workload = copy(p->workloads[0].name, &err);
		b->trials[i].load = copy(p->loads[load_order[i]].name, &err);
		b->trials[i].jobs = d->o->jobs ? d->o->jobs : d->m->cpus;
	}
	return err;
}

static size_t canary_entry(const struct draft *d)
{
	const char *label = machine_running_kernel(d->m)->label;
	size_t i = 0;

	while (strcmp(d->plan->entries[i].label, label) != 0)
		i++;
	return i;
}

static int draw_boots(struct draft *d, size_t n_compared)
{
	struct plan *p = d->plan;
	struct shuffle random = {p->seed};
	_cleanup_free_ size_t *entries = calloc(n_compared, sizeof(*entries));
	_cleanup_free_ size_t *loads = calloc(p->n_loads, sizeof(*loads));
	int r;

	if ((uint64_t)p->rounds_max * n_compared >= PLAN_BOOTS_MAX) {
		log_info("%u rounds of %zu entries are more than %u boots; ask for fewer --rounds",
			 p->rounds_max, n_compared, PLAN_BOOTS_MAX - 1);
		return -EINVAL;
	}
	p->boots = calloc(p->rounds_max * n_compared + 1, sizeof(*p->boots));
	if (!p->boots || !entries || !loads)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_loads; i++)
		loads[i] = i;
	/* The canary proves the way out and home while somebody is still there to see it; the
	 * loads would only make them wait. */
	r = fill_boot(d, 0, canary_entry(d), loads, 1);
	for (unsigned round = 1; r == 0 && round <= p->rounds_max; round++) {
		shuffle_order(&random, entries, n_compared);
		shuffle_order(&random, loads, p->n_loads);
		for (size_t i = 0; r == 0 && i < n_compared; i++)
			r = fill_boot(d, round, entries[i], loads, p->n_loads);
	}
	p->boots_max = planner_boots_max(p->rounds_max, n_compared);
	return r;
}

static char **copy_argv(char *const *argv, int *err)
{
	size_t n = 0;
	char **new;

	while (argv[n])
		n++;
	new = calloc(n + 1, sizeof(*new));
	if (!new)
		*err = -ENOMEM;
	for (size_t i = 0; new &&i < n; i++)
		new[i] = copy(argv[i], err);
	return new;
}

static int copy_pairs(const struct plan_pair *from, size_t n, struct plan_pair **out, size_t *out_n)
{
	struct plan_pair *pairs = calloc(n ? n : 1, sizeof(*pairs));
	int err = 0;

	if (!pairs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		pairs[i].name = copy(from[i].name, &err);
		pairs[i].value = copy(from[i].value, &err);
	}
	*out = pairs; /* freed with the plan, also on failure */
	*out_n = n;
	return err;
}

static int draw_workload(struct draft *d)
{
	const struct plan_workload *from = &d->prepared->workload;
	struct plan_workload *to = calloc(1, sizeof(*to));
	int err = 0;

	if (!to)
		return -ENOMEM;
	*to = *from; /* hashes and times; every pointer is replaced */
	to->name = copy(from->name, &err);
	to->dir = copy(from->dir, &err);
	to->clean = copy_argv(from->clean, &err);
	to->build = copy_argv(from->build, &err);
	to->product = copy(from->product, &err);
	d->plan->workloads = to;
	d->plan->n_workloads = 1;
	return err;
}

static void draw_limits(struct draft *d)
{
	struct plan *p = d->plan;

	p->margin = 0.01;
	p->rounds_max = d->o->rounds;
	p->home_every_rounds = d->o->home_every;
	p->retries = RETRIES;
	p->boot_timeout_ms = 10 * MINUTE_MS;
	p->trial_timeout_ms = d->prepared->workload.build_ns / 1000000 * BUILD_SLOWDOWN;
	if (p->trial_timeout_ms < 10 * MINUTE_MS)
		p->trial_timeout_ms = 10 * MINUTE_MS;
	/* The mem load's first pass fills RAM and swap; allow a slow disk a minute a GiB. */
	p->load_start_timeout_ms = (5 + (int64_t)(d->m->memtotal_bytes / GIB)) * MINUTE_MS;
	p->build_uid = d->prepared->build_uid;
	p->umask = 022;
}

static int draw_partitions(struct draft *d)
{
	const struct machine *m = d->m;
	struct plan *p = d->plan;
	int err = 0;

	p->store_uuid = copy(m->store->uuid, &err);
	p->root_uuid = copy(m->root_dev->uuid, &err);
	p->root_fstype = copy(m->root_fstype, &err);
	p->arena_uuid = copy(m->arena->uuid, &err);
	p->arena_partuuid = copy(*m->arena->partuuid ? m->arena->partuuid : NULL, &err);
	p->arena_fstype = copy(m->arena->type, &err);
	p->arena_options = copy("noatime", &err);
	p->arena_bytes = m->arena->bytes;
	if (m->swap) {
		p->swap_uuid = copy(m->swap->uuid, &err);
		p->swap_bytes = m->swap->bytes;
	}
	p->memtotal_bytes = m->memtotal_bytes;
	return err;
}

static int draw_head(struct draft *d, const char *id)
{
	struct plan *p = d->plan;
	char utc[32];
	time_t now = time(NULL);
	struct tm tm;
	int err = 0;

	strftime(utc, sizeof(utc), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	p->id = copy(id, &err);
	p->created_utc = copy(utc, &err);
	p->rtc_offset_s = d->m->rtc_offset_s;
	p->boot_mode = copy("initramfs", &err);
	p->mode = copy("as-shipped", &err);
	p->default_uname = copy(d->m->uname, &err);
	p->seed = d->o->seed;
	if (!d->o->has_seed) {
		if (getrandom(&p->seed, sizeof(p->seed), 0) != sizeof(p->seed))
			return -errno;
		p->seed &= PLAN_EXACT_MAX;
	}
	return err;
}

static int draw_loads(struct draft *d)
{
	const char *why_no_mem;
	int r = planner_loads(d->o, d->m, &d->plan->loads, &d->plan->n_loads, &why_no_mem);

	if (r == 0 && why_no_mem)
		log_info("skipped: the mem load: %s", why_no_mem);
	else if (r == -EINVAL)
		log_info("no load is left: the mem load cannot run: %s", why_no_mem);
	return r;
}

static int draw(struct draft *d, const char *id)
{
	size_t n_compared = 0;
	int r = draw_head(d, id);

	if (r == 0)
		r = draw_partitions(d);
	draw_limits(d);
	if (r == 0)
		r = copy_pairs(panic_sysctls, ARRAY_SIZE(panic_sysctls), &d->plan->panic,
			       &d->plan->n_panic);
	if (r == 0)
		r = copy_pairs(d->prepared->toolchain, d->prepared->n_toolchain,
			       &d->plan->toolchain, &d->plan->n_toolchain);
	if (r == 0)
		r = draw_workload(d);
	if (r == 0)
		r = draw_loads(d);
	if (r == 0)
		r = planner_entries(d->o, d->m, d->plan, &n_compared);
	return r != 0 ? r : draw_boots(d, n_compared);
}

int planner_draw(const struct options *o, const struct machine *m, const struct prepared *prepared,
		 const char *id, struct plan **out)
{
	_cleanup_(cleanup_plan) struct plan *plan = calloc(1, sizeof(*plan));
	struct draft d = {o, m, prepared, plan};
	const char *why;
	int r;

	if (!plan)
		return -ENOMEM;
	if (!m->store || !m->arena || !m->root_dev) {
		log_info("a plan needs store, arena and root; see recount check");
		return -EINVAL;
	}
	r = draw(&d, id);
	if (r < 0)
		return r;
	r = plan_check(plan, &why);
	if (r < 0)
		return log_errno(r, "draw a plan: \"%s\" does not fit its format", why);
	*out = TAKE_PTR(plan);
	return 0;
}
