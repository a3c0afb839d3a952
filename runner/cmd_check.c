/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The verbs check and plan: both look at everything and change nothing. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "results/log.h"
#include "runner/check.h"
#include "runner/planner.h"

struct view { /* the machine, and what of its store could be read */
	struct machine *machine;
	struct store *store;	   /* NULL: cannot be read */
	struct prepared *prepared; /* NULL: nothing, or not known */
};

static int open_view(const struct options *o, struct view *v)
{
	int r = machine_read(o, &v->machine);

	if (r < 0)
		return r;
	if (!machine_may_open_store(v->machine))
		return 0;
	r = machine_peek_store(v->machine, &v->store);
	if (r < 0)
		return r;
	r = prepared_load(v->store, &v->prepared);
	if (r < 0 && r != -ENOENT)
		log_errno(r, "read prepared/manifest.json on the store (recount prepare writes a "
			     "new one)");
	return 0;
}

static int close_view(struct view *v)
{
	int r = v->store ? machine_close_store(v->store) : 0;

	prepared_free(v->prepared);
	machine_free(v->machine);
	return r;
}

int verb_check(const struct options *o)
{
	struct view v = {0};
	struct findings f = {stdout, 0, 0};
	int r = open_view(o, &v);

	if (r == 0) {
		if (v.store)
			check_active(&f, v.store);
		check_machine(&f, o, v.machine, v.store, v.prepared);
		printf("%u obstacle%s, %u warning%s. Nothing was changed.\n", f.obstacles,
		       f.obstacles == 1 ? "" : "s", f.warnings, f.warnings == 1 ? "" : "s");
	}
	if (close_view(&v) < 0 || r < 0)
		return EXIT_FAILED;
	return f.obstacles ? EXIT_REFUSED : EXIT_DONE;
}

/* It keeps nobody from looking at a plan. */
static void say_active(struct store *store)
{
	char id[STORE_ID];
	int r = store_active(store, id);

	if (r == 0)
		log_info("campaign %s is active, so that recount start would be refused: recount "
			 "status shows it, recount stop ends it (its results stay)",
			 id);
	else if (r != -ENOENT)
		log_info("the store's file \"active\" is damaged (%s), so that recount start would "
			 "be refused: recount stop removes it",
			 strerror(-r));
}

static int print_plan(const struct options *o, const struct view *v)
{
	_cleanup_(cleanup_plan) struct plan *plan = NULL;
	struct findings f = {NULL, 0, 0};
	time_t now = time(NULL);
	struct tm tm;
	char id[STORE_ID];
	int r;

	check_machine(&f, o, v->machine, v->store, v->prepared);
	if (f.obstacles) {
		log_info("no plan: recount check tells more");
		return EXIT_REFUSED;
	}
	if (!v->prepared) {
		log_info("no plan: what is prepared cannot be read (run recount as root, on the "
			 "machine itself)");
		return EXIT_REFUSED;
	}
	/* `start` gives the id; it makes no difference to the rest. */
	strftime(id, sizeof(id), "%Y-%m-%d-a", localtime_r(&now, &tm));
	r = planner_draw(o, v->machine, v->prepared, id, &plan);
	if (r < 0)
		return r == -EINVAL ? EXIT_REFUSED : EXIT_FAILED;
	say_active(v->store);
	planner_print(stdout, plan);
	return EXIT_DONE;
}

int verb_plan(const struct options *o)
{
	struct view v = {0};
	int r = open_view(o, &v), code = EXIT_FAILED;

	if (r == 0)
		code = print_plan(o, &v);
	return close_view(&v) < 0 ? EXIT_FAILED : code;
}
