/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the consoles. */
#include "runner/key.h"

#include <fcntl.h>
#include <string.h>

#define READS_MAX 64 /* of one console in one look: a line full of noise must not hold us */

static void add(struct keys *k, const char *root, const char *name)
{
	struct termios raw;
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/dev/%s", root, name);
	fd = k->n < KEY_CONSOLES_MAX ? open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
				     : -1;
	if (fd < 0)
		return;
	/* Not every console is a terminal. */
	if (tcgetattr(fd, &raw)) {
		close(fd);
		return;
	}
	k->consoles[k->n].fd = fd;
	k->consoles[k->n++].before = raw;
	raw.c_lflag &= ~(ICANON | ECHO | ISIG | IEXTEN);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	/* In line mode an h would only come with its Enter; better than none. */
	(void)!tcsetattr(fd, TCSANOW, &raw);
}

void key_open(const char *root, struct keys *out)
{
	char path[512], line[256], name[64];
	struct keys k = {.n = 0};
	FILE *f;

	add(&k, root, "console");
	snprintf(path, sizeof(path), "%s/proc/consoles", root);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s", name) == 1 && !strchr(name, '/') && name[0] != '.')
			add(&k, root, name);
	if (f)
		fclose(f);
	*out = k;
}

void key_close(struct keys *k)
{
	/* Backwards: /dev/console is one of the others, and was changed first. */
	while (k->n > 0) {
		k->n--;
		(void)!tcsetattr(k->consoles[k->n].fd, TCSANOW, &k->consoles[k->n].before);
		close(k->consoles[k->n].fd);
	}
}

int key_held(struct keys *k)
{
	char typed[64];
	ssize_t n;

	for (size_t i = 0; i < k->n; i++) {
		for (int reads = 0; reads < READS_MAX; reads++) {
			n = read(k->consoles[i].fd, typed, sizeof(typed));
			if (n <= 0)
				break;
			if (memchr(typed, 'h', n) || memchr(typed, 'H', n))
				k->held = 1;
		}
	}
	return k->held;
}
