/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The key `h`: whoever presses it on any console wants the machine back. Every terminal among the
 * kernel's consoles is read, without echo and without waiting for a whole line. Nothing happens
 * between two looks: what is typed meanwhile waits in the terminal.
 */
#ifndef RECOUNT_RUNNER_KEY_H
#define RECOUNT_RUNNER_KEY_H

#include <stddef.h>
#include <termios.h>

#include "results/macro.h"

#define KEY_CONSOLES_MAX 8

struct keys {
	struct {
		int fd;
		struct termios before;
	} consoles[KEY_CONSOLES_MAX];
	size_t n;
	int held; /* an h was seen */
};

/*
 * Opens @root/dev/console and the terminals that @root/proc/consoles names ("" for the running
 * machine). Never blocks, never makes one the controlling terminal. 0 consoles are no error: nobody
 * can press anything then. key_close() puts the terminals back.
 */
void key_open(const char *root, struct keys *out);
void key_close(struct keys *k);

/* Looks once, without waiting: 1 when h or H has been typed since key_open(), on any of them. */
int key_held(struct keys *k);

#endif
