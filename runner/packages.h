/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Is a package manager at work? A reboot in the middle of one leaves packages half installed. */
#ifndef RECOUNT_RUNNER_PACKAGES_H
#define RECOUNT_RUNNER_PACKAGES_H

/* The path below @root of a lock of dpkg, apt or rpm that a process holds; NULL: none. Static. */
const char *packages_lock_held(const char *root);

#endif
