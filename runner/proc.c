/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Words written to /proc and /sys. */
#include "runner/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "results/log.h"

int proc_write(const char *path, const char *word)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || write(fd, word, strlen(word)) < 0)
		return log_errno(-errno, "write %s to %s", word, path);
	return 0;
}

void proc_sysctl(const char *name, const char *value)
{
	static const char top[] = "/proc/sys/";
	char path[256];

	snprintf(path, sizeof(path), "%s%s", top, name);
	for (char *c = path + strlen(top); *c; c++)
		if (*c == '.')
			*c = '/';
	if (proc_write(path, value) < 0)
		return;
}
