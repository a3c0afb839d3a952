/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a device or image file holds already, by libblkid's signatures. */
#ifndef RECOUNT_RUNNER_SIGNATURE_H
#define RECOUNT_RUNNER_SIGNATURE_H

#include <stddef.h>

#include "results/macro.h"

/* 1, and a few words in @what ("ext4 \"home\"", "a gpt partition table"), when @fd holds anything
 * that libblkid knows; 0 when not. */
int signature_find(int fd, char *what, size_t size) _must_check_;

/* Wipes every signature, so that no trace of an older format makes a new one ambivalent. @fd is
 * open for writing. */
int signature_wipe(int fd) _must_check_;

#endif
