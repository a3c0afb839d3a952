/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the modaliases in /sys ask for, loaded through libkmod. */
#include "initramfs/modules.h"

#include <errno.h>
#include <libkmod.h>
#include <search.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <syslog.h>

#include "initramfs/modalias.h"
#include "initramfs/modindex.h"
#include "results/log.h"

#define ROUNDS_MAX 8 /* a bus below a bus below a bus … */

struct loader {
	struct kmod_ctx *ctx;
	struct modindex *index; /* NULL: libkmod uses its own */
	const char *dir;
	void *refused; /* tsearch() tree of the modules that were refused, to count them once */
	struct modules_result result;
};

/* The same of all passes, to say so once: who waits for a disk looks again and again. */
static void *told;

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* True when @name is new to the tree @seen. */
static int is_news(void **seen, const char *name)
{
	char *copy;

	if (tfind(name, seen, by_text))
		return 0;
	copy = strdup(name);
	if (copy && !tsearch(copy, seen, by_text))
		free(copy);
	return 1;
}

static void loader_close(struct loader *l)
{
	tdestroy(l->refused, free);
	modindex_free(l->index);
	kmod_unref(l->ctx);
}

static void forward_log(void *data, int priority, const char *file, int line, const char *fn,
			const char *format, va_list args)
{
	char text[512];

	(void)data;
	(void)priority;
	(void)file;
	(void)line;
	(void)fn;
	vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = '\0';
	log_warn("libkmod: %s", text);
}

/*
 * The folder in which @dir is PREFIX/lib/modules/VERSION or PREFIX/usr/lib/modules/VERSION, so that
 * modules and modprobe.d come from the same system. -1 when @dir is no such path.
 */
static int prefix_length(const char *dir)
{
	size_t n = strlen(dir);
	static const char *const tails[] = {"/usr/lib/modules", "/lib/modules"};

	while (n && dir[n - 1] == '/')
		n--;
	while (n && dir[n - 1] != '/')
		n--;
	for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
		size_t t = strlen(tails[i]);

		if (n > t && strncmp(dir + n - 1 - t, tails[i], t) == 0)
			return (int)(n - 1 - t);
	}
	return -1;
}

static int loader_open(struct loader *l, const char *dir)
{
	static const char *const folders[] = {"/etc/modprobe.d", "/run/modprobe.d",
					      "/usr/local/lib/modprobe.d", "/lib/modprobe.d"};
	char paths[ARRAY_SIZE(folders)][4096];
	const char *config[ARRAY_SIZE(folders) + 1] = {NULL};
	int prefix = prefix_length(dir);
	struct stat st;
	int r;

	memset(l, 0, sizeof(*l));
	l->dir = dir;
	if (stat(dir, &st) < 0)
		return -errno;
	for (size_t i = 0; prefix >= 0 && i < ARRAY_SIZE(folders); i++) {
		if (snprintf(paths[i], sizeof(paths[i]), "%.*s%s", prefix, dir, folders[i]) >=
		    (int)sizeof(paths[i]))
			return -ENAMETOOLONG;
		config[i] = paths[i];
	}
	l->ctx = kmod_new(dir, config);
	if (!l->ctx)
		return log_errno(-ENOMEM, "set up libkmod for %s", dir);
	kmod_set_log_priority(l->ctx, LOG_ERR);
	kmod_set_log_fn(l->ctx, forward_log, NULL);

	if (modindex_has_bin(dir)) {
		/* Missing companions only make look-ups slower: each opens what there is. */
		if (kmod_load_resources(l->ctx) < 0)
			log_info("some module indexes are missing in %s", dir);
		return 0;
	}
	r = modindex_open(dir, &l->index);
	if (r < 0)
		return log_errno(r, "read %s/modules.dep", dir);
	l->result.text_index = 1;
	return 0;
}

static int is_in_kernel(struct kmod_module *mod)
{
	int state = kmod_module_get_initstate(mod);

	return state == KMOD_MODULE_BUILTIN || state == KMOD_MODULE_LIVE ||
	       state == KMOD_MODULE_COMING;
}

/* True when @mod was built for another kernel than the running one; says so. */
static int is_of_other_kernel(struct kmod_module *mod)
{
	struct kmod_list *info = NULL, *entry;
	struct utsname running;
	int other = 0;

	if (uname(&running) < 0 || kmod_module_get_info(mod, &info) < 0)
		return 0;
	kmod_list_foreach(entry, info) {
		const char *value = kmod_module_info_get_value(entry);
		size_t n = strcspn(value, " ");

		if (strcmp(kmod_module_info_get_key(entry), "vermagic") != 0 ||
		    (n == strlen(running.release) && strncmp(value, running.release, n) == 0))
			continue;
		log_warn("module %s was built for %.*s, this kernel is %s",
			 kmod_module_get_name(mod), (int)n, value, running.release);
		other = 1;
	}
	kmod_module_info_free_list(info);
	return other;
}

/* Counts the outcome of loading @mod, and logs a failure once. */
static void note_outcome(struct loader *l, struct kmod_module *mod, int err)
{
	const char *name = kmod_module_get_name(mod);

	if (err == 0) {
		l->result.loaded += is_in_kernel(mod);
		return;
	}
	/* The driver is there and found nothing to drive. */
	if (err == -ENODEV || !is_news(&l->refused, name))
		return;
	l->result.failed++;
	if (!is_news(&told, name))
		return;
	if (err == -ENOEXEC && is_of_other_kernel(mod))
		return;
	if (err == -ENOENT) /* the kernel's word for an unknown symbol */
		log_warn("cannot load the module %s: something that it needs is missing", name);
	else
		log_errno(err, "load the module %s", name);
}

static int leave_alone(struct kmod_module *mod, const char *command, void *data)
{
	(void)data;
	log_info("module %s is left alone: modprobe.d loads it by \"%s\"",
		 kmod_module_get_name(mod), command);
	return 0;
}

/* Modules in libkmod's own order, by its own indexes. */
static int insert_with_deps(struct loader *l, struct kmod_module *mod, unsigned flags)
{
	int r;

	if (is_in_kernel(mod))
		return 0;
	r = kmod_module_probe_insert_module(mod, flags, NULL, leave_alone, NULL, NULL);
	if (r > 0) /* blacklisted */
		return 0;
	if (r == -EEXIST)
		r = 0;
	note_outcome(l, mod, r);
	return r;
}

static int is_blacklisted(struct loader *l, const char *name)
{
	struct kmod_config_iter *iter = kmod_config_get_blacklists(l->ctx);
	int found = 0;

	while (iter && !found && kmod_config_iter_next(iter))
		found = strcmp(kmod_config_iter_get_key(iter), name) == 0;
	if (iter)
		kmod_config_iter_free_iter(iter);
	return found;
}

/* One file of a text index; what it depends on was inserted before it. */
static int insert_file(struct loader *l, const char *path, int use_blacklist)
{
	struct kmod_module *mod = NULL;
	const char *command;
	char full[4096];
	int r;

	if (snprintf(full, sizeof(full), "%s%s%s", *path == '/' ? "" : l->dir,
		     *path == '/' ? "" : "/", path) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	r = kmod_module_new_from_path(l->ctx, full, &mod);
	if (r < 0)
		return log_errno(r, "find the module file %s", full);
	command = kmod_module_get_install_commands(mod);
	if (is_in_kernel(mod) || (use_blacklist && is_blacklisted(l, kmod_module_get_name(mod)))) {
		r = 0;
	} else if (command) {
		r = leave_alone(mod, command, NULL);
	} else {
		r = kmod_module_insert_module(mod, 0, kmod_module_get_options(mod));
		if (r == -EEXIST)
			r = 0;
		note_outcome(l, mod, r);
	}
	kmod_module_unref(mod);
	return r;
}

/* @folders: NULL for anywhere. */
static int lies_below(const char *path, const char *const *folders)
{
	if (!folders)
		return 1;
	for (; path && *folders; folders++)
		if (strstr(path, *folders))
			return 1;
	return 0;
}

static void load_alias_by_bin(struct loader *l, const char *alias, const char *const *folders)
{
	struct kmod_list *list = NULL, *entry;

	if (kmod_module_new_from_lookup(l->ctx, alias, &list) < 0)
		return;
	kmod_list_foreach(entry, list) {
		struct kmod_module *mod = kmod_module_get_module(entry);

		if (lies_below(kmod_module_get_path(mod), folders))
			insert_with_deps(l, mod, KMOD_PROBE_APPLY_BLACKLIST);
		kmod_module_unref(mod);
	}
	kmod_module_unref_list(list);
}

static void load_alias_by_text(struct loader *l, const char *alias, const char *const *folders)
{
	struct modindex_list list = {0};
	int wanted = !folders;

	if (modindex_resolve(l->index, alias, &list) == 0) {
		for (size_t i = 0; i < list.n && !wanted; i++)
			wanted = lies_below(list.paths[i], folders);
		for (size_t i = 0; i < list.n && wanted; i++)
			insert_file(l, list.paths[i], 1);
	}
	free(list.paths);
}

static void load_alias(struct loader *l, const char *alias, enum modules_pass pass)
{
	static const char *const drivers[] = {"/drivers/", NULL};
	/* The last two make the device of Intel's iTCO_wdt. */
	static const char *const platform[] = {"/drivers/hwmon/", "/drivers/watchdog/",
					       "/mfd/lpc_ich.", "/i2c-i801.", NULL};
	const char *const *folders = NULL;

	if (pass == MODULES_PLATFORM)
		folders = !strncmp(alias, "cpu:", 4) || !strncmp(alias, "acpi:", 5) ? drivers
										    : platform;
	if (l->index)
		load_alias_by_text(l, alias, folders);
	else
		load_alias_by_bin(l, alias, folders);
}

static int load_rounds(struct loader *l, const char *sys, enum modules_pass pass)
{
	_cleanup_(cleanup_modalias) struct modalias_set *seen = modalias_new();
	const char *const *fresh;
	size_t n;
	int r;

	if (!seen)
		return -ENOMEM;
	for (int round = 0; round < ROUNDS_MAX; round++) {
		r = modalias_collect(seen, sys, &fresh, &n);
		if (r < 0)
			return log_errno(r, "list the devices below %s/devices", sys);
		if (n == 0)
			break;
		for (size_t i = 0; i < n; i++)
			load_alias(l, fresh[i], pass);
	}
	return 0;
}

int modules_load(const char *dir, const char *sys, enum modules_pass pass,
		 struct modules_result *out)
{
	struct loader l;
	int r = loader_open(&l, dir);

	if (r == 0)
		r = load_rounds(&l, sys, pass);
	if (r == 0)
		*out = l.result;
	loader_close(&l);
	return r;
}

static int load_name_by_bin(struct loader *l, const char *name)
{
	struct kmod_list *list = NULL, *entry;
	int r = kmod_module_new_from_lookup(l->ctx, name, &list);

	if (r == 0 && !list)
		r = -ENOENT;
	kmod_list_foreach(entry, list) {
		struct kmod_module *mod = kmod_module_get_module(entry);
		int one = insert_with_deps(l, mod, 0);

		r = r < 0 ? r : one;
		kmod_module_unref(mod);
	}
	kmod_module_unref_list(list);
	return r;
}

static int load_name_by_text(struct loader *l, const char *name)
{
	struct modindex_list list = {0};
	struct kmod_module *mod = NULL;
	int r = modindex_resolve(l->index, name, &list);

	for (size_t i = 0; i < list.n; i++) {
		int one = insert_file(l, list.paths[i], 0);

		r = r < 0 ? r : one;
	}
	free(list.paths);
	/* A soft dependency that failed is no reason to fail when the module itself is in. */
	if (r < 0 && kmod_module_new_from_name(l->ctx, name, &mod) == 0 && is_in_kernel(mod))
		r = 0;
	kmod_module_unref(mod);
	return r;
}

int modules_load_name(const char *dir, const char *name)
{
	struct loader l;
	int r = loader_open(&l, dir);

	if (r == 0)
		r = l.index ? load_name_by_text(&l, name) : load_name_by_bin(&l, name);
	loader_close(&l);
	return r;
}
