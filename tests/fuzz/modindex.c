/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A modalias, then modules.dep, modules.alias, modules.softdep, modules.builtin and the heads of
 * modules.dep.bin and modules.alias.bin. covers: initramfs/modindex.c
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>

#include "initramfs/modindex.h"

static void resolve(const struct modindex *x, const char *alias, const char *dep)
{
	struct modindex_list list = {0};
	int r = modindex_resolve(x, alias, &list);

	REQUIRE(r == 0 || r == -ENOENT || r == -ENAMETOOLONG || r == -ELOOP);
	for (size_t i = 0; i < list.n; i++) {
		const char *path = list.paths[i];

		REQUIRE(*path && strstr(dep, path));
		REQUIRE(*path == '/' ? fuzz_is_absolute(path) : !fuzz_leaves(path));
		for (size_t k = 0; k < i; k++)
			REQUIRE(strcmp(list.paths[k], path) != 0);
	}
	free(list.paths);
}

/* The name of the first module in modules.dep; free(). */
static char *module_of(const char *dep)
{
	char *copy = strndup(dep, strcspn(dep, ":\n")), *slash, *name;

	REQUIRE(copy);
	slash = strrchr(copy, '/');
	name = strdup(slash ? slash + 1 : copy);
	REQUIRE(name);
	name[strcspn(name, ".")] = '\0';
	free(copy);
	return name;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const files[] = {"modules.alias", "modules.softdep", "modules.builtin",
					    "modules.dep.bin", "modules.alias.bin"};
	struct fuzz_input in = {data, size}, part;
	_cleanup_free_ char *alias = fuzz_text_part(&in), *dep = NULL, *name = NULL;
	_cleanup_(cleanup_modindex) struct modindex *x = NULL;
	int next, r;

	part = fuzz_part(&in);
	dep = fuzz_text(part);
	fuzz_put("modules.dep", part);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		fuzz_put(files[i], fuzz_part(&in));
	next = fuzz_next_fd();
	r = modindex_open(fuzz_folder(), &x);
	REQUIRE(r == 0 || (r == -ENOENT && !part.size));
	modindex_has_bin(fuzz_folder());
	REQUIRE(fuzz_next_fd() == next);
	if (r)
		return 0;
	resolve(x, alias, dep);
	name = module_of(dep);
	resolve(x, name, dep);
	return 0;
}
