/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernel versions: which is older, and how a person would name one. Pure. */
#ifndef RECOUNT_GRUB_VERSION_H
#define RECOUNT_GRUB_VERSION_H

#include <stddef.h>

#include "results/macro.h"

/*
 * <0, 0, >0 as @a is older than, the same as or newer than @b: dpkg's order (deb-version(7)), with
 * "-rc" before the release it leads to. For display only, never for identity.
 */
int version_compare(const char *a, const char *b);

#define VERSION_SHORT_LEVELS 4

/*
 * The version as a person would type it, into @out. @level 0 is the shortest: without the
 * distribution's mark, the flavour and a ".0" before "-rc" (6.12.117+deb12-cloud-amd64 is 6.12.117,
 * 7.3.0-rc2-mine is 7.3-rc2); 1 keeps the mark (6.12.117+deb12); 2 keeps the flavour too but not
 * the machine (6.12.117+deb12-cloud); VERSION_SHORT_LEVELS - 1 is the whole @version.
 * -ENAMETOOLONG.
 */
int version_short(const char *version, int level, char *out, size_t size) _must_check_;

#endif
