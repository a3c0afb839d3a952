/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names that are both in the block's text and in the environment block; see grub/oneshot.h. */
#ifndef RECOUNT_GRUB_ONESHOT_TEXT_H
#define RECOUNT_GRUB_ONESHOT_TEXT_H

/* ^recount-[a-z0-9_-]+$, at most 63 characters. GRUB takes what begins with a digit for a number,
 * so ids begin with a word. Pure. */
int oneshot_is_id(const char *s);

#endif
