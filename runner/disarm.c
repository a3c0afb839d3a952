/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Clears the one-shot key, or takes away what reads it. */
#include "runner/disarm.h"

#include <errno.h>
#include <stdint.h>
#include <sys/statvfs.h>

#include "grub/oneshot.h"
#include "results/log.h"
#include "runner/install.h"

#define ROOM_BYTES (64u << 10) /* for a few small files and their folders */

int disarm(const char *root, const char *store_dir)
{
	struct oneshot_state state;
	char path[4096];
	int r;

	snprintf(path, sizeof(path), "%s/grub/grubenv", store_dir);
	r = oneshot_read(path, &state);
	/* From a damaged block GRUB takes nothing. */
	if (r == -ENOENT || r == -EBADMSG || (r == 0 && !state.next_entry[0]))
		return 0;
	if (r == 0)
		r = oneshot_disarm(path);
	if (r == 0)
		return 0;
	log_errno(r, "clear the one-shot key in %s", path);
	/* GRUB may be able to write where this kernel is not: it would boot what is armed. */
	r = install_block_remove(root);
	if (r < 0)
		return r;
	log_info("recount's block is removed from custom.cfg instead, so that the machine boots "
		 "its default; recount resume puts it back");
	return 1;
}

int disarm_is_unwritable(const char *dir)
{
	struct statvfs fs;

	if (statvfs(dir, &fs))
		return 1;
	return (fs.f_flag & ST_RDONLY) || (uint64_t)fs.f_bavail * fs.f_frsize < ROOM_BYTES ||
	       fs.f_ffree == 0;
}
