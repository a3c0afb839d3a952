/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The store: whole files or none, also when the power goes. Linked with --wrap for write, fsync,
 * renameat2, mkdirat and unlinkat: from the n-th such call on, nothing reaches the disk any more.
 */
#include "tests/unit/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "results/digest.h"
#include "results/store.h"

#define NEVER	    1000000
#define FOLDERS_MAX 8

static struct {
	int calls, dies_at; /* the dies_at-th call fails, and all later ones */
	int unsynced;	    /* bytes were written since the last fsync of a file */
	int early_renames;  /* a name was given to bytes that were not on the disk */
	int folder_changes;
	ino_t changed[FOLDERS_MAX]; /* folders whose names a power cut could still undo */
	size_t n_changed;
} disk;

static char folder[SAMPLE_FOLDER];
static struct store *store;

ssize_t __real_write(int fd, const void *buf, size_t len);
int __real_fsync(int fd);
int __real_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int __real_mkdirat(int dir, const char *name, mode_t mode);
int __real_unlinkat(int dir, const char *name, int flags);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
int __wrap_fsync(int fd);
int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int __wrap_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_unlinkat(int dir, const char *name, int flags);

static void changed(int dir)
{
	struct stat st;

	assert_int_equal(fstat(dir, &st), 0);
	assert_true(disk.n_changed < FOLDERS_MAX);
	disk.changed[disk.n_changed++] = st.st_ino;
	disk.folder_changes++;
}

static void synced(ino_t dir)
{
	size_t i, kept = 0;

	for (i = 0; i < disk.n_changed; i++)
		if (disk.changed[i] != dir)
			disk.changed[kept++] = disk.changed[i];
	disk.n_changed = kept;
}

static int is_dead(void)
{
	if (++disk.calls < disk.dies_at)
		return 0;
	errno = EIO;
	return 1;
}

/* Gives a third of what is asked, so that a writer must go on; the last one is torn. */
ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
	size_t part = len / 3 + 1;

	disk.unsynced = 1;
	if (is_dead()) {
		if (disk.calls == disk.dies_at && __real_write(fd, buf, part / 2) < 0)
			return -1;
		errno = EIO;
		return -1;
	}
	return __real_write(fd, buf, part);
}

int __wrap_fsync(int fd)
{
	struct stat st;

	if (is_dead())
		return -1;
	assert_int_equal(fstat(fd, &st), 0);
	if (S_ISDIR(st.st_mode))
		synced(st.st_ino);
	else
		disk.unsynced = 0;
	return __real_fsync(fd);
}

int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	int r;

	if (is_dead())
		return -1;
	r = __real_renameat2(from_dir, from, to_dir, to, flags);
	disk.early_renames += disk.unsynced;
	if (r == 0)
		changed(to_dir);
	return r;
}

int __wrap_mkdirat(int dir, const char *name, mode_t mode)
{
	int r;

	if (is_dead())
		return -1;
	r = __real_mkdirat(dir, name, mode);
	if (r == 0)
		changed(dir);
	return r;
}

int __wrap_unlinkat(int dir, const char *name, int flags)
{
	int r;

	if (is_dead())
		return -1;
	r = __real_unlinkat(dir, name, flags);
	/* It does no harm when a temporary file comes back. */
	if (r == 0 && name[0] != '.')
		changed(dir);
	return r;
}

static void power_on(int dies_at)
{
	memset(&disk, 0, sizeof(disk));
	disk.dies_at = dies_at;
}

static int setup(void **state)
{
	(void)state;
	power_on(NEVER);
	sample_folder(folder);
	assert_int_equal(store_open(folder, &store), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	power_on(NEVER);
	store_close(store);
	sample_folder_remove(folder);
	return 0;
}

static void holds(const char *path, const char *want)
{
	char *text = NULL;
	size_t len = 0;

	assert_int_equal(store_get(store, path, 4096, &text, &len), 0);
	assert_string_equal(text, want);
	assert_int_equal(len, strlen(want));
	free(text);
}

static int lacks(const char *path)
{
	char *text = NULL;
	size_t len;
	int err = store_get(store, path, 4096, &text, &len);

	free(text);
	return err == -ENOENT;
}

static void put_makes_folders_and_keeps_bytes(void **state)
{
	char *text;
	size_t len;

	(void)state;
	assert_int_equal(store_put(store, "a/b/c.json", "x\0y", 3), 0);
	assert_int_equal(store_get(store, "a/b/c.json", 3, &text, &len), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(text, "x\0y\0", 4);
	free(text);
	assert_int_equal(store_get(store, "a/b/c.json", 2, &text, &len), -E2BIG);
	assert_int_equal(store_get(store, "a/b", 99, &text, &len), -EINVAL);
	assert_int_equal(store_put(store, "a/b/empty", "", 0), 0);
	holds("a/b/empty", "");
}

static void put_never_overwrites(void **state)
{
	(void)state;
	assert_int_equal(store_put(store, "f", "one", 3), 0);
	assert_int_equal(store_put(store, "f", "two", 3), -EEXIST);
	holds("f", "one");
	assert_int_equal(store_replace(store, "f", "two", 3), 0);
	holds("f", "two");
	assert_int_equal(store_put(store, "active", "one", 3), 0);
	assert_int_equal(store_put(store, "active", "two", 3), 0);
	holds("active", "two");
}

static void paths_do_not_leave_the_store(void **state)
{
	static const char *const paths[] = {"",	  "/f", "..",  "../f", "a/../../f", "a//f",
					    "a/", ".",	"./f", ".f",   "a/.f"};
	char link[sizeof(folder) + 8], *text, **names, longest[300];
	size_t i, len, n;

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(store_put(store, longest, "x", 1), -EINVAL);
	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		assert_int_equal(store_put(store, paths[i], "x", 1), -EINVAL);
		assert_int_not_equal(store_get(store, paths[i], 9, &text, &len), 0);
		assert_int_equal(store_list(store, paths[i], &names, &n), -EINVAL);
	}
	/* Refused before anything was made. */
	assert_int_equal(store_list(store, "a", &names, &n), 0);
	assert_int_equal(n, 0);
	snprintf(link, sizeof(link), "%s/a", folder);
	assert_int_equal(access(link, F_OK), -1);
	assert_int_equal(store_put(store, "real/f", "x", 1), 0);
	snprintf(link, sizeof(link), "%s/out", folder);
	assert_int_equal(symlink("real", link), 0);
	assert_int_equal(store_put(store, "out/g", "x", 1), -ENOTDIR);
	assert_int_equal(store_list(store, "out", &names, &n), -ENOTDIR);
	snprintf(link, sizeof(link), "%s/file", folder);
	assert_int_equal(symlink("real/f", link), 0);
	assert_int_equal(store_get(store, "file", 99, &text, &len), -ELOOP);
}

static void a_leftover_temporary_file_is_replaced(void **state)
{
	char left[sizeof(folder) + 16];
	char **names;
	size_t n;
	int fd;

	(void)state;
	snprintf(left, sizeof(left), "%s/.tmp-f", folder);
	fd = open(left, O_WRONLY | O_CREAT, 0400);
	assert_true(fd >= 0);
	assert_int_equal(__real_write(fd, "a very long leftover", 20), 20);
	close(fd);
	assert_int_equal(store_put(store, "f", "new", 3), 0);
	holds("f", "new");
	assert_int_equal(access(left, F_OK), -1);
	snprintf(left, sizeof(left), "%s/.tmp-g", folder);
	assert_int_equal(symlink("f", left), 0);
	assert_int_equal(store_put(store, "g", "gee", 3), 0);
	holds("f", "new");
	holds("g", "gee");
	assert_int_equal(store_list(store, "nothing", &names, &n), 0);
	assert_int_equal(n, 0);
}

static void put_survives_a_stop_at_every_call(void **state)
{
	static const char text[] = "the whole text of a record";
	char path[64];
	int n, last = 0, err, seen_none = 0, seen_whole = 0;

	(void)state;
	for (n = 1; !last; n++) {
		snprintf(path, sizeof(path), "boots-%d/0007/trial-01-1.json", n);
		power_on(n);
		err = store_put(store, path, text, strlen(text));
		last = disk.calls < n;
		assert_int_equal(err, last ? 0 : -EIO);
		power_on(NEVER);
		store_close(store);
		assert_int_equal(store_open(folder, &store), 0);
		if (lacks(path)) {
			seen_none++;
			assert_int_equal(last, 0);
			assert_int_equal(store_put(store, path, text, strlen(text)), 0);
		} else {
			seen_whole++;
		}
		holds(path, text);
	}
	/* Two folders, three writes, their fsyncs, the rename: not less. */
	assert_true(seen_none >= 9);
	/* Only the last fsync of the folder comes after the rename. */
	assert_int_equal(seen_whole, 2);
}

#define OLD "the old text"
#define NEW "the new text, which is longer"

/* A file of that name is never overwritten: it stays, and that is well. */
static int put_text(void)
{
	int r = store_put(store, "a/b/f", NEW, strlen(NEW));

	return r == -EEXIST ? 0 : r;
}

static int replace(void)
{
	return store_replace(store, "a/b/f", NEW, strlen(NEW));
}

static int take_away(void)
{
	return store_remove(store, "a/b/f");
}

static int activate(void)
{
	return store_activate(store, "the-new-one");
}

static int deactivate(void)
{
	return store_deactivate(store);
}

static const struct operation {
	const char *name;
	int (*run)(void);
	const char *path, *before, *after; /* text of the file, NULL: it is not there */
	int calls;			   /* that a whole run makes, at least */
} operations[] = {
	/* Three writes, an fsync, the rename, the folder's fsync; two calls for every new folder;
	 * one that looks for a leftover. */
	{"put of a new file", put_text, "a/b/f", NULL, NEW, 11},
	{"put over a file", put_text, "a/b/f", OLD, OLD, 5},
	{"replace of a new file", replace, "a/b/f", NULL, NEW, 11},
	{"replace of a file", replace, "a/b/f", OLD, NEW, 7},
	{"remove", take_away, "a/b/f", OLD, NULL, 2},
	{"first activate", activate, "active", NULL, "the-new-one\n", 7},
	{"second activate", activate, "active", "the-old-one\n", "the-new-one\n", 7},
	{"deactivate", deactivate, "active", "the-old-one\n", NULL, 2},
};

/* The power comes back: nothing is known but what is on the disk. */
static void reopen(void)
{
	power_on(NEVER);
	store_close(store);
	assert_int_equal(store_open(folder, &store), 0);
}

static int is_there(const struct operation *o, const char *text)
{
	char *found = NULL;
	size_t len = 0;
	int r, same;

	r = store_get(store, o->path, 4096, &found, &len);
	if (r < 0)
		assert_int_equal(r, -ENOENT);
	same = r < 0 ? !text : text && len == strlen(text) && !memcmp(found, text, len);
	free(found);
	return same;
}

/* 1 when the operation was over before its @n-th call. */
static int stop_at(const struct operation *o, int n)
{
	char **names;
	size_t count, i;
	int r, over;

	sample_folder(folder);
	assert_int_equal(store_open(folder, &store), 0);
	if (o->before)
		assert_int_equal(store_replace(store, o->path, o->before, strlen(o->before)), 0);
	power_on(n);
	r = o->run();
	over = disk.calls < n;
	if (r != 0 && (r != -EIO || over))
		fail_msg("%s stopped at call %d gave %d", o->name, n, r);
	if (r == 0 && (disk.n_changed || disk.early_renames))
		fail_msg("%s stopped at call %d is said to be on the disk, and is not", o->name, n);
	reopen();
	if (!is_there(o, o->after) && (r == 0 || !is_there(o, o->before)))
		fail_msg("%s stopped at call %d: neither the old nor the new is there", o->name, n);
	assert_int_equal(store_list(store, "a/b", &names, &count), 0);
	for (i = 0; i < count; i++)
		assert_string_equal(names[i], "f");
	store_names_free(names, count);
	if (o->run() != 0 || !is_there(o, o->after))
		fail_msg("%s stopped at call %d cannot be done again", o->name, n);
	store_close(store);
	sample_folder_remove(folder);
	return over;
}

/* The store opens with the old or the new after a stop at every call, and can go on. */
static void every_operation_survives_a_stop_at_every_call(void **state)
{
	size_t i;
	int n;

	(void)state;
	teardown(NULL);
	for (i = 0; i < ARRAY_SIZE(operations); i++) {
		for (n = 1; !stop_at(&operations[i], n); n++)
			;
		if (n - 1 < operations[i].calls)
			fail_msg("%s has only %d calls to stop at", operations[i].name, n - 1);
	}
	setup(NULL);
}

static void names_are_given_to_synced_bytes_and_synced_too(void **state)
{
	(void)state;
	power_on(NEVER);
	assert_int_equal(store_put(store, "a/b/c", "text", 4), 0);
	assert_int_equal(disk.early_renames, 0);
	assert_int_equal(disk.folder_changes, 3);
	assert_int_equal(disk.n_changed, 0);
	power_on(NEVER);
	assert_int_equal(store_remove(store, "a/b/c"), 0);
	assert_int_equal(disk.folder_changes, 1);
	assert_int_equal(disk.n_changed, 0);
}

static void remove_is_content_with_nothing(void **state)
{
	(void)state;
	assert_int_equal(store_put(store, "a/f", "x", 1), 0);
	assert_int_equal(store_remove(store, "a/f"), 0);
	assert_true(lacks("a/f"));
	assert_int_equal(store_remove(store, "a/f"), 0);
	assert_int_equal(store_remove(store, "none/f"), 0);
	assert_int_equal(store_remove(store, "../f"), -EINVAL);
}

static void active_holds_a_valid_id_or_is_damaged(void **state)
{
	char id[STORE_ID] = "before";

	(void)state;
	assert_int_equal(store_active(store, id), -ENOENT);
	assert_int_equal(store_activate(store, SAMPLE_ID), 0);
	assert_int_equal(store_active(store, id), 0);
	assert_string_equal(id, SAMPLE_ID);
	assert_int_equal(store_activate(store, "../x"), -EINVAL);
	assert_int_equal(store_activate(store, ""), -EINVAL);
	holds("active", SAMPLE_ID "\n");
	assert_int_equal(store_deactivate(store), 0);
	assert_int_equal(store_active(store, id), -ENOENT);
	assert_int_equal(store_deactivate(store), 0);
	assert_int_equal(store_put(store, "active", "", 0), 0);
	assert_int_equal(store_active(store, id), -EBADMSG);
	assert_int_equal(store_put(store, "active", "a\0b\n", 4), 0);
	assert_int_equal(store_active(store, id), -EBADMSG);
	assert_int_equal(store_put(store, "active", "A/B\n", 4), 0);
	assert_int_equal(store_active(store, id), -EBADMSG);
	assert_string_equal(id, SAMPLE_ID);
}

static void campaigns_are_listed_in_order(void **state)
{
	char **ids;
	size_t n = 99;

	(void)state;
	assert_int_equal(store_campaigns(store, &ids, &n), 0);
	assert_int_equal(n, 0);
	store_names_free(ids, n);
	assert_int_equal(store_put(store, "campaigns/b/plan.json", "x", 1), 0);
	assert_int_equal(store_put(store, "campaigns/a-2/plan.json", "x", 1), 0);
	assert_int_equal(store_put(store, "campaigns/a-10/plan.json", "x", 1), 0);
	assert_int_equal(store_put(store, "campaigns/NOT/plan.json", "x", 1), 0);
	assert_int_equal(store_campaigns(store, &ids, &n), 0);
	assert_int_equal(n, 3);
	assert_string_equal(ids[0], "a-10");
	assert_string_equal(ids[1], "a-2");
	assert_string_equal(ids[2], "b");
	store_names_free(ids, n);
}

static void plan_comes_with_the_hash_of_its_bytes(void **state)
{
	char *json = sample_read("plan.json"), sha256[PLAN_SHA256], want[PLAN_SHA256];
	struct plan *plan = NULL;
	const char *why = NULL;

	(void)state;
	digest_bytes(json, strlen(json), want);
	assert_int_equal(store_plan(store, SAMPLE_ID, &plan, sha256, &why), -ENOENT);
	assert_int_equal(store_put(store, "campaigns/" SAMPLE_ID "/plan.json", json, strlen(json)),
			 0);
	assert_int_equal(store_plan(store, SAMPLE_ID, &plan, sha256, &why), 0);
	assert_string_equal(plan->id, SAMPLE_ID);
	assert_string_equal(sha256, want);
	plan_free(plan);
	assert_int_equal(store_plan(store, SAMPLE_ID, &plan, NULL, NULL), 0);
	plan_free(plan);
	plan = NULL;
	/* The same bytes under another id, and a plan that was cut short. */
	assert_int_equal(store_put(store, "campaigns/other/plan.json", json, strlen(json)), 0);
	assert_int_equal(store_plan(store, "other", &plan, sha256, &why), -EBADMSG);
	assert_string_equal(why, "id");
	assert_int_equal(store_put(store, "campaigns/cut/plan.json", json, strlen(json) / 2), 0);
	assert_int_equal(store_plan(store, "cut", &plan, sha256, &why), -EBADMSG);
	assert_int_equal(store_plan(store, "../x", &plan, sha256, &why), -EINVAL);
	assert_null(plan);
	free(json);
}

static void boot_paths_are_those_of_the_format(void **state)
{
	char path[256];

	(void)state;
	store_boot_path(path, SAMPLE_ID, 7, "trial-03", 1, "json");
	assert_string_equal(path, "campaigns/2026-11-30-a/boots/0007/trial-03-1.json");
	store_boot_path(path, SAMPLE_ID, 1234, "panic", 2, "txt");
	assert_string_equal(path, "campaigns/2026-11-30-a/boots/1234/panic-2.txt");
}

static void open_refuses_what_is_no_folder(void **state)
{
	struct store *s = NULL;
	char path[sizeof(folder) + 8];

	(void)state;
	snprintf(path, sizeof(path), "%s/f", folder);
	assert_int_equal(store_open(path, &s), -ENOENT);
	assert_int_equal(store_put(store, "f", "x", 1), 0);
	assert_int_equal(store_open(path, &s), -ENOTDIR);
	assert_null(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(put_makes_folders_and_keeps_bytes),
		TEST(put_never_overwrites),
		TEST(paths_do_not_leave_the_store),
		TEST(a_leftover_temporary_file_is_replaced),
		TEST(put_survives_a_stop_at_every_call),
		TEST(every_operation_survives_a_stop_at_every_call),
		TEST(names_are_given_to_synced_bytes_and_synced_too),
		TEST(remove_is_content_with_nothing),
		TEST(active_holds_a_valid_id_or_is_damaged),
		TEST(campaigns_are_listed_in_order),
		TEST(plan_comes_with_the_hash_of_its_bytes),
		TEST(boot_paths_are_those_of_the_format),
		TEST(open_refuses_what_is_no_folder),
	};

	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
