/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Puts custom.cfg's block, the unit and the store's boot files in place, and takes them away. */
#include "runner/install.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "grub/checkpoint.h"
#include "grub/envblock.h"
#include "grub/oneshot.h"
#include "grub/replace.h"
#include "grub/rootfile.h"
#include "initramfs/cpio.h"
#include "results/log.h"

#define SYSTEM_DIR  "/etc/systemd/system"
#define WANTS_DIR   SYSTEM_DIR "/multi-user.target.wants"
#define UNIT_PATH   SYSTEM_DIR "/" INSTALL_UNIT
#define UNIT_LINK   WANTS_DIR "/" INSTALL_UNIT
#define UNIT_MARK   "# recount: written by `recount start`, removed by `recount stop`\n"
#define UNIT_MADE   "# recount: multi-user.target.wants was made for it\n"
#define UNIT_BMC    " --bmc"
#define UNIT_MAX    65536
#define ARCHIVE_MAX (64u << 20)

static const char *const grub_dirs[] = {"/boot/grub", "/boot/grub2"};

static int sync_folder(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) ? -errno : 0;
}

static char *below(char path[PATH_MAX], const char *root, const char *name)
{
	snprintf(path, PATH_MAX, "%s%s", root, name);
	return path;
}

/* systemd.service(5), "COMMAND LINES": a quoted word, with % and $ doubled. */
static int quote_program(FILE *f, const char *program)
{
	const char *p;

	if (program[0] != '/')
		return -EINVAL;
	fputc('"', f);
	for (p = program; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return -EINVAL;
		if (*p == '"' || *p == '\\')
			fputc('\\', f);
		else if (*p == '%' || *p == '$')
			fputc(*p, f);
		fputc(*p, f);
	}
	fputc('"', f);
	return 0;
}

int install_unit_text(const char *program, unsigned notice_s, int uses_bmc, int made_wants,
		      char **text)
{
	_cleanup_free_ char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);
	int r;

	if (!f)
		return -ENOMEM;
	fprintf(f,
		UNIT_MARK "%s[Unit]\n"
			  "Description=recount: goes on with the active campaign\n"
			  "After=local-fs.target systemd-pstore.service\n"
			  "RequiresMountsFor=/boot\n"
			  "\n"
			  "[Service]\n"
			  "Type=simple\n"
			  "ExecStart=",
		made_wants ? UNIT_MADE : "");
	r = quote_program(f, program);
	fprintf(f,
		" referee --notice %u%s\n"
		"StandardOutput=journal+console\n"
		"\n"
		"[Install]\n"
		"WantedBy=multi-user.target\n",
		notice_s, uses_bmc ? UNIT_BMC : "");
	if (fclose(f) && r == 0)
		r = -ENOMEM;
	if (r == 0)
		*text = TAKE_PTR(out);
	return r;
}

static int own_program(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (n < 0)
		return -errno;
	path[n] = '\0';
	return access(path, X_OK) ? -errno : 0;
}

static int is_ours(const char *unit)
{
	return !strncmp(unit, UNIT_MARK, strlen(UNIT_MARK));
}

/* Was the folder made for a unit that is there already, or would it be now? */
static int wants_made(const char *root, int *made)
{
	_cleanup_free_ char *old = NULL;
	char path[PATH_MAX];
	size_t len;
	int r;

	r = rootfile_read(root, UNIT_PATH, UNIT_MAX, &old, &len);
	if (r == 0 && !is_ours(old))
		return -EEXIST;
	if (r == 0 && strstr(old, UNIT_MADE)) {
		*made = 1;
		return 0;
	}
	if (r < 0 && r != -ENOENT)
		return r;
	*made = access(below(path, root, WANTS_DIR), F_OK) != 0;
	return 0;
}

static int install_unit(const char *root, unsigned notice_s, int uses_bmc)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX], program[PATH_MAX];
	int r, made = 0;

	r = own_program(program);
	if (r < 0)
		return log_errno(r, "find this program's own file");
	r = wants_made(root, &made);
	if (r == 0)
		r = install_unit_text(program, notice_s, uses_bmc, made, &text);
	if (r == 0)
		r = replace_file(below(path, root, UNIT_PATH), text, strlen(text));
	if (r < 0)
		return log_errno(r, "write %s%s", root, UNIT_PATH);
	if (mkdir(below(path, root, WANTS_DIR), 0755) && errno != EEXIST)
		return log_errno(-errno, "make %s", path);
	if (symlink(UNIT_PATH, below(path, root, UNIT_LINK)) && errno != EEXIST)
		return log_errno(-errno, "make %s", path);
	r = sync_folder(below(path, root, WANTS_DIR));
	if (r == 0)
		r = sync_folder(below(path, root, SYSTEM_DIR));
	return r < 0 ? log_errno(r, "sync %s", path) : 0;
}

/* What was written into @grub_dir; a machine below a folder is unmounted before it boots. */
static int show_grub(const char *root, const char *grub_dir)
{
	int r = *root ? 0 : checkpoint_make(grub_dir);

	return r < 0 ? log_errno(r, "make %s/custom.cfg visible to GRUB", grub_dir) : 0;
}

int install_outside(const char *root, const char *grub_dir, const char *text, unsigned notice_s,
		    int uses_bmc)
{
	char path[PATH_MAX];
	int r;

	if (snprintf(path, sizeof(path), "%s%s/custom.cfg", root, grub_dir) >= PATH_MAX)
		return log_errno(-ENAMETOOLONG, "write %s", path);
	r = oneshot_install(path, text);
	if (r < 0)
		return log_errno(r, "write the block into %s", path);
	r = show_grub(root, grub_dir);
	return r < 0 ? r : install_unit(root, notice_s, uses_bmc);
}

int install_uses_bmc(const char *root)
{
	_cleanup_free_ char *unit = NULL;
	size_t len;

	return rootfile_read(root, UNIT_PATH, UNIT_MAX, &unit, &len) == 0 && is_ours(unit) &&
	       strstr(unit, UNIT_BMC "\n") != NULL;
}

static int remove_unit(const char *root)
{
	_cleanup_free_ char *unit = NULL;
	char path[PATH_MAX];
	size_t len;
	int r;

	r = rootfile_read(root, UNIT_PATH, UNIT_MAX, &unit, &len);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return log_errno(r, "read %s%s", root, UNIT_PATH);
	if (!is_ours(unit))
		return 0;
	if (unlink(below(path, root, UNIT_LINK)) && errno != ENOENT && errno != ENOTDIR)
		return log_errno(-errno, "remove %s", path);
	r = sync_folder(below(path, root, WANTS_DIR));
	if (r < 0 && r != -ENOENT)
		return log_errno(r, "sync %s", path);
	/* Another unit may have been enabled since: then the folder stays. */
	if (strstr(unit, UNIT_MADE) && rmdir(below(path, root, WANTS_DIR)) && errno != ENOENT &&
	    errno != ENOTEMPTY && errno != EEXIST)
		return log_errno(-errno, "remove %s", path);
	r = replace_remove(below(path, root, UNIT_PATH));
	return r < 0 ? log_errno(r, "remove %s", path) : 0;
}

int install_block_remove(const char *root)
{
	char path[PATH_MAX];
	int r, there, failure = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(grub_dirs); i++) {
		snprintf(path, sizeof(path), "%s%s/custom.cfg", root, grub_dirs[i]);
		there = oneshot_installed(path) == 1;
		r = oneshot_uninstall(path);
		if (r == -EBADMSG)
			log_info("%s: one of the lines \"### BEGIN recount\" and \"### END recount "
				 "###\" is missing or was changed: take recount's lines out by "
				 "hand. "
				 "With nothing armed they do nothing",
				 path);
		if (r < 0 && r != -ENOENT)
			failure = log_errno(r, "remove recount's block from %s", path);
		else if (there && show_grub(root, grub_dirs[i]) < 0)
			log_warn("GRUB may see the block once more");
	}
	return failure;
}

int install_outside_remove(const char *root)
{
	int failure = install_block_remove(root), r = remove_unit(root);

	return r < 0 ? r : failure;
}

const char *install_missing(const char *root, const char *store_dir)
{
	char path[PATH_MAX];
	int block = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(grub_dirs); i++) {
		snprintf(path, sizeof(path), "%s%s/custom.cfg", root, grub_dirs[i]);
		block |= oneshot_installed(path) == 1;
	}
	if (!block)
		return "recount's block in custom.cfg";
	return access(below(path, store_dir, "/recount.cpio"), F_OK) ? "recount.cpio on the store"
								     : NULL;
}

int install_block_damaged(const char *root, char path[INSTALL_PATH])
{
	char full[PATH_MAX];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(grub_dirs); i++) {
		snprintf(full, sizeof(full), "%s%s/custom.cfg", root, grub_dirs[i]);
		if (oneshot_installed(full) != -EBADMSG)
			continue;
		snprintf(path, INSTALL_PATH, "%s/custom.cfg", grub_dirs[i]);
		return 1;
	}
	return 0;
}

int install_outside_present(const char *root)
{
	_cleanup_free_ char *unit = NULL;
	char path[PATH_MAX];
	size_t i, len;
	int r;

	for (i = 0; i < ARRAY_SIZE(grub_dirs); i++) {
		snprintf(path, sizeof(path), "%s%s/custom.cfg", root, grub_dirs[i]);
		r = oneshot_installed(path);
		/* Half a block is for a person to look at, and removing it will say so. */
		if (r == 1 || r == -EBADMSG)
			return 1;
	}
	return rootfile_read(root, UNIT_PATH, UNIT_MAX, &unit, &len) == 0 && is_ours(unit);
}

int install_archive_build(void **buf, size_t *len)
{
	char program[PATH_MAX], path[PATH_MAX + 16];
	char *slash;
	int r;

	r = own_program(program);
	if (r < 0)
		return log_errno(r, "find this program's own file");
	slash = strrchr(program, '/');
	*slash = '\0';
	snprintf(path, sizeof(path), "%s/recount-init", program);
	if (access(path, R_OK))
		snprintf(path, sizeof(path), "%s/recount-init", LIBEXECDIR);
	r = cpio_build(path, buf, len);
	return r < 0 ? log_errno(r, "make the boot archive from %s", path) : 0;
}

static int install_archive(const char *path, const void *archive, size_t len)
{
	_cleanup_free_ char *there = NULL;
	const char *why = NULL;
	size_t there_len = 0;
	int r;

	r = rootfile_read("", path, ARCHIVE_MAX, &there, &there_len);
	if (r < 0 || there_len != len || memcmp(there, archive, len) != 0) {
		free(there);
		there = NULL;
		r = replace_file(path, archive, len);
		if (r == 0)
			r = rootfile_read("", path, ARCHIVE_MAX, &there, &there_len);
	}
	if (r == 0 && (there_len != len || memcmp(there, archive, len) != 0))
		r = -EIO;
	if (r == 0)
		r = cpio_check(there, there_len, &why);
	if (r == -EBADMSG && why)
		log_warn("%s: %s", path, why);
	return r < 0 ? log_errno(r, "write %s", path) : 0;
}

int install_store(const char *store_dir, const void *archive, size_t len)
{
	struct envblock *block;
	char path[PATH_MAX];
	const char *why;
	int r;

	r = install_archive(below(path, store_dir, "/recount.cpio"), archive, len);
	if (r < 0)
		return r;
	if (mkdir(below(path, store_dir, "/grub"), 0755) && errno != EEXIST)
		return log_errno(-errno, "make %s", path);
	r = sync_folder(store_dir);
	if (r < 0)
		return log_errno(r, "sync %s", store_dir);
	block = malloc(sizeof(*block));
	if (!block)
		return -ENOMEM;
	r = envblock_read(below(path, store_dir, "/grub/grubenv"), block, &why);
	if (r == -ENOENT || r == -EBADMSG) {
		envblock_init(block);
		r = envblock_create(path, block);
		if (r == 0)
			r = envblock_write(path, block);
	}
	free(block);
	return r < 0 ? log_errno(r, "make %s", path) : 0;
}

int install_store_remove(const char *store_dir)
{
	char path[PATH_MAX];
	int r;

	r = replace_remove(below(path, store_dir, "/recount.cpio"));
	if (r == 0)
		r = replace_remove(below(path, store_dir, "/grub/grubenv"));
	if (r < 0)
		return log_errno(r, "remove %s", path);
	if (rmdir(below(path, store_dir, "/grub")) && errno != ENOENT && errno != ENOTEMPTY &&
	    errno != EEXIST)
		return log_errno(-errno, "remove %s", path);
	r = sync_folder(store_dir);
	return r < 0 ? log_errno(r, "sync %s", store_dir) : 0;
}
