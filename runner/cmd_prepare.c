/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The verb prepare: a tree in the arena, and the proof that it builds the same twice. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "initramfs/mounts.h"
#include "results/digest.h"
#include "results/log.h"
#include "runner/amount.h"
#include "runner/check.h"
#include "runner/command.h"
#include "runner/own_folders.h"
#include "runner/spawn.h"
#include "runner/target.h"
#include "runner/toolchain.h"
#include "runner/tree.h"

#define BUILD_UID	 65534 /* nobody */
#define CLEAN_TIMEOUT_MS (10 * 60 * INT64_C(1000))
#define BUILD_TIMEOUT_MS (24 * 3600 * INT64_C(1000))
#define TAIL_BYTES	 4096
#define TAIL_LINES	 20

struct job {
	const struct options *o;
	const struct machine *m;
	struct prepared *p;
	struct spawn_user user;
	char dir[PATH_MAX]; /* the tree, in the mounted arena */
	const char *make;   /* the target that configures it; NULL: none */
	int brought;	    /* it was copied or unpacked into the arena now */
	int forgotten;	    /* what was prepared before is not any more */
};

static void print_tail(int fd)
{
	char text[TAIL_BYTES + 1];
	off_t size = lseek(fd, 0, SEEK_END);
	ssize_t n = pread(fd, text, TAIL_BYTES, size > TAIL_BYTES ? size - TAIL_BYTES : 0);
	unsigned lines = 0;

	if (n <= 0)
		return;
	text[n] = '\0';
	for (ssize_t i = n - 1; i > 0; i--)
		if (text[i - 1] == '\n' && ++lines == TAIL_LINES) {
			memmove(text, text + i, (size_t)(n - i) + 1);
			break;
		}
	fputs(text, stderr);
}

/* What a build leaves running would keep the arena busy. Its orphans are this process's children
 * (PR_SET_CHILD_SUBREAPER) and are waited for, so that they have let go of it. */
static void kill_leftovers(pid_t group)
{
	if (group <= 0 || kill(-group, SIGKILL))
		return;
	while (waitpid(-group, NULL, 0) > 0 || errno == EINTR)
		;
}

/* Runs a command of the workload as the trials will; its last complaints are printed when it fails.
 */
static int run(struct job *j, char *const *argv, int64_t timeout_ms, int64_t *wall_ns)
{
	/* A file of the arena: a build may complain more than memory holds. */
	_cleanup_close_ int errors = open(ARENA_DIR, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct spawn s = {.dir = j->dir, .argv = argv, .user = &j->user, .err_fd = errors};
	struct rusage usage;
	int64_t start;
	int status, r;

	if (errors < 0)
		return log_errno(-errno, "make a file in the arena");
	start = spawn_now_ns();
	r = spawn_run(&s, timeout_ms, &status, &usage);
	if (wall_ns)
		*wall_ns = spawn_now_ns() - start;
	kill_leftovers(s.pid);
	if (r == 0)
		return 0;
	print_tail(errors);
	if (r != -ECHILD)
		return log_errno(r, "run %s", argv[0]);
	log_info("refused: %s in %s failed; the lines above are its last ones", argv[0],
		 j->p->workload.dir);
	return -EINVAL;
}

static int run_build(struct job *j, int64_t *wall_ns)
{
	_cleanup_free_ char **argv = NULL;
	char jobs[16];

	snprintf(jobs, sizeof(jobs), "-j%u", j->p->jobs);
	argv = target_insert(j->p->workload.build, jobs);
	if (!argv)
		return -ENOMEM;
	return run(j, argv, BUILD_TIMEOUT_MS, wall_ns);
}

static const char *target_of(const struct job *j)
{
	return j->o->target ? j->o->target : "vmlinux";
}

static int is_part(const struct job *j)
{
	return target_is_part(target_of(j));
}

static int has_file(const struct job *j, const char *folder, const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s", j->dir, folder, name);
	return access(path, F_OK) == 0;
}

/* 1: what is built is a whole kernel tree, by its own makefiles. */
static int is_kbuild(const struct job *j)
{
	return !is_part(j) && has_file(j, ".", "Kbuild") && has_file(j, ".", "Kconfig");
}

static int is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* What can only be a path, and is none, would be "made" by make only after the tree was copied. */
static int check_config(const char *config)
{
	if (!config || is_file(config) || (*config != '.' && !strchr(config, '/')))
		return 0;
	log_info("refused: --config %s: there is no such file; name a file, or a make target such "
		 "as defconfig",
		 config);
	return -EINVAL;
}

/* A file becomes .config and is to be completed; a word is a make target. */
static int take_config(struct job *j)
{
	const char *config = j->o->config;
	char target[PATH_MAX + 16];
	char owner[32];
	/* As root in a tree of the build user: no link of it may be followed, nor a folder filled.
	 */
	char *copy[] = {"cp", "-T", "--remove-destination", "--", (char *)config, target, NULL};
	char *own[] = {"chown", "-h", owner, "--", target, NULL};
	int r;

	j->make = config;
	if (!config || !is_file(config))
		return 0;
	j->make = "olddefconfig";
	snprintf(target, sizeof(target), "%s/.config", j->dir);
	snprintf(owner, sizeof(owner), "%u:%u", j->p->build_uid, j->p->build_uid);
	r = command_run(copy);
	return r < 0 ? r : command_run(own);
}

static int configure(struct job *j)
{
	char *make[] = {"make", (char *)j->make, NULL};
	int r = 0;

	if (j->make) {
		log_info("make %s", j->make);
		r = run(j, make, CLEAN_TIMEOUT_MS, NULL);
	}
	if (r < 0)
		return r;
	if (!is_part(j) && !has_file(j, ".", ".config")) {
		log_info("refused: there is no .config in %s; --config defconfig makes one, "
			 "--config FILE takes yours",
			 j->p->workload.dir);
		return -EINVAL;
	}
	return 0;
}

/* From here on the tree changes, and a manifest of it would be wrong. */
static int forget(struct job *j)
{
	struct store *s;
	int r = machine_open_store(j->m, &s), r2;

	if (r < 0)
		return r;
	r = prepared_remove(s);
	if (r < 0)
		log_errno(r, "remove prepared/manifest.json from the store");
	r2 = machine_close_store(s);
	j->forgotten = r == 0;
	return r < 0 ? r : r2;
}

static int bring_tree(struct job *j)
{
	struct plan_workload *w = &j->p->workload;
	const char *target = target_of(j), *why;
	int r;

	r = target_parse(target, j->o->product, w, &why);
	if (r == -EINVAL)
		log_info("--target '%s'%s%s: %s", target, j->o->product ? " --product " : "",
			 j->o->product ? j->o->product : "", why);
	if (r < 0)
		return r;
	r = tree_bring(j->o->tree, ARENA_DIR, j->m->arena->path, j->p->build_uid, &w->dir);
	if (r < 0)
		return r == -ENOSPC ? -EINVAL : r;
	j->brought = r;
	snprintf(j->dir, sizeof(j->dir), ARENA_DIR "/%s", w->dir);
	if (!has_file(j, is_part(j) ? w->build[2] : ".", "Makefile")) {
		log_info("refused: there is no Makefile in %s%s%s; is it a source tree?", w->dir,
			 is_part(j) ? "/" : "", is_part(j) ? w->build[2] : "");
		return -EINVAL;
	}
	r = is_kbuild(j) ? target_clean_parallel(w, j->p->jobs) : 0;
	if (r == 0)
		r = forget(j);
	if (r == 0)
		r = take_config(j);
	if (r < 0)
		return r;
	w->name = strdup("kernel");
	return w->name ? 0 : -ENOMEM;
}

static int drop_caches(void)
{
	_cleanup_close_ int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	sync();
	if (fd < 0 || write(fd, "3", 1) != 1)
		return log_errno(-errno, "drop the page cache");
	return 0;
}

/* The product for people, to whom "." says little. */
static const char *shown_product(const struct job *j)
{
	const char *product = j->p->workload.product;

	return strcmp(product, ".") ? product : "the set of object files";
}

static int hash_product(const struct job *j, char hex[PLAN_SHA256])
{
	const char *product = j->p->workload.product;
	int r = digest_product(j->dir, product, hex);

	if (r == -ENOTDIR || r == -ELOOP) {
		log_info("refused: %s leads through a link, or a file; --product names the file "
			 "itself",
			 product);
		return -EINVAL;
	}
	if (r == -ENOENT) {
		log_info("refused: the build left no %s%s; --product names what it makes",
			 strcmp(product, ".") ? product : "object files in the tree",
			 strcmp(product, ".") ? " (or no object files in it)" : "");
		return -EINVAL;
	}
	return r < 0 ? log_errno(r, "hash %s/%s", j->dir, product) : 0;
}

/* A clean that leaves the product as it is would let every trial time a build of nothing. */
static int check_clean(const struct job *j, const char *built)
{
	char hex[PLAN_SHA256];
	int r = digest_product(j->dir, j->p->workload.product, hex);

	if (r == 0 && strcmp(hex, built) == 0) {
		log_info("refused: %s of %s is still there after its clean, so that nothing would "
			 "be built; mend the clean target",
			 shown_product(j), j->p->workload.dir);
		return -EINVAL;
	}
	return r < 0 && r != -ENOENT ? log_errno(r, "hash %s/%s", j->dir, j->p->workload.product)
				     : 0;
}

/* The first build also makes what `make clean` keeps; so the second is the one to time, and the
 * tree's hash is taken between them. */
static int build_twice(struct job *j)
{
	struct plan_workload *w = &j->p->workload;
	char first[PLAN_SHA256], duration[AMOUNT_BYTES];
	int r;

	log_info("building %s, to see that it builds", w->dir);
	r = run(j, w->clean, CLEAN_TIMEOUT_MS, NULL);
	if (r == 0)
		r = run_build(j, &w->build_ns);
	if (r == 0)
		r = hash_product(j, first);
	if (r < 0)
		return r;
	amount_duration(duration, w->build_ns);
	log_info("it does, in %s; building again, cold", duration);
	r = run(j, w->clean, CLEAN_TIMEOUT_MS, NULL);
	if (r == 0)
		r = check_clean(j, first);
	if (r < 0)
		return r;
	r = digest_tree(j->dir, w->tree_sha256);
	if (r < 0)
		return log_errno(r, "hash the tree %s", j->dir);
	r = drop_caches();
	if (r == 0)
		r = run_build(j, &w->build_ns);
	if (r == 0)
		r = hash_product(j, w->product_sha256);
	if (r < 0)
		return r;
	if (strcmp(first, w->product_sha256) != 0) {
		log_info("refused: %s differs between two builds, so that no trial could be "
			 "checked:\n"
			 "  %s\n  %s",
			 shown_product(j), first, w->product_sha256);
		return -EINVAL;
	}
	amount_duration(duration, w->build_ns);
	log_info("%s cold, -j%u; the product is the same", duration, j->p->jobs);
	return 0;
}

static int in_own_folders(struct job *j)
{
	int r = own_folders_enter(), r2;

	if (r < 0)
		return r;
	r = configure(j);
	if (r == 0)
		r = build_twice(j);
	r2 = own_folders_leave();
	return r < 0 ? r : r2;
}

static int prepare(struct job *j)
{
	int r;

	r = toolchain_read(j->m, &j->p->toolchain, &j->p->n_toolchain);
	if (r < 0)
		return r == -EXDEV || r == -ENOENT ? -EINVAL : r;
	r = spawn_make_home(ARENA_DIR, j->p->build_uid);
	if (r == 0)
		r = bring_tree(j);
	return r < 0 ? r : in_own_folders(j);
}

static int in_arena(struct job *j)
{
	int r = machine_mount_arena(j->m), r2;

	if (r < 0)
		return r;
	r = prepare(j);
	r2 = machine_unmount_arena();
	if (r2 == -EBUSY)
		log_info("something that the build started has outlived it and uses the arena; end "
			 "it (ps -u %u), and keep the build from starting it",
			 j->p->build_uid);
	return r < 0 ? r : r2;
}

static int save(const struct machine *m, const struct prepared *p)
{
	struct store *s;
	int r = machine_open_store(m, &s), r2;

	if (r < 0)
		return r;
	r = prepared_save(s, p);
	if (r < 0)
		log_errno(r, "write prepared/manifest.json on the store");
	r2 = machine_close_store(s);
	return r < 0 ? r : r2;
}

/* Is the machine fit for a preparation? Exit code. */
static int check(const struct options *o, const struct machine *m)
{
	struct findings f = {NULL, 0, 0};
	struct store *s;

	if (geteuid() != 0) {
		log_info("refused: run this as root (sudo recount prepare …)");
		return EXIT_REFUSED;
	}
	if (check_config(o->config) < 0)
		return EXIT_REFUSED;
	check_partitions(&f, o, m, 0, 0);
	if (f.obstacles)
		return EXIT_REFUSED;
	if (machine_peek_store(m, &s) < 0)
		return EXIT_FAILED;
	check_active(&f, s);
	if (machine_close_store(s) < 0)
		return EXIT_FAILED;
	return f.obstacles ? EXIT_REFUSED : EXIT_DONE;
}

/* After a failure. */
static void say_what_stays(const struct job *j)
{
	const char *dir = j->p->workload.dir, *device = j->m->arena->path;

	if (j->brought)
		log_info("%s stays in the arena: recount prepare --tree %s uses it again; mount %s "
			 "/mnt && rm -r /mnt/%s; umount /mnt removes it",
			 dir, dir, device, dir);
	if (j->forgotten)
		log_info("nothing is prepared now; recount prepare does it anew");
}

int verb_prepare(const struct options *o)
{
	_cleanup_(cleanup_machine) struct machine *m = NULL;
	_cleanup_(cleanup_prepared) struct prepared *p = calloc(1, sizeof(*p));
	_cleanup_close_ int lock = -1;
	struct job j = {.o = o, .p = p};
	int r, code;

	if (*o->root || !o->tree) {
		log_info(*o->root ? "prepare works on the running machine only, not with --root"
				  : "say which tree: recount prepare --tree SRC");
		return EXIT_USAGE;
	}
	if (!p || machine_read(o, &m) < 0)
		return EXIT_FAILED;
	r = machine_lock(m, "prepare", LOCK_EX | LOCK_NB, &lock);
	if (r < 0)
		return r == -EBUSY ? EXIT_REFUSED : EXIT_FAILED;
	code = check(o, m);
	if (code != EXIT_DONE)
		return code;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) {
		log_errno(-errno, "become the parent of what builds leave running");
		return EXIT_FAILED;
	}
	j.m = m;
	p->jobs = o->jobs ? o->jobs : m->cpus;
	p->build_uid = BUILD_UID;
	p->arena_uuid = strdup(m->arena->uuid);
	j.user = (struct spawn_user){.uid = BUILD_UID, .umask = 022};
	r = p->arena_uuid ? in_arena(&j) : -ENOMEM;
	if (r == 0)
		r = save(m, p);
	if (r < 0) {
		say_what_stays(&j);
		return r == -EINVAL ? EXIT_REFUSED : EXIT_FAILED;
	}
	printf("prepared %s; next: recount check\n", p->workload.dir);
	return EXIT_DONE;
}
