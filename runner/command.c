/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs a program and waits for it. */
#include "runner/command.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "results/log.h"

int command_run(char *const *argv)
{
	int status;
	pid_t pid;

	/* What is buffered here would be printed by the child as well. */
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return log_errno(-errno, "run %s", argv[0]);
	if (pid == 0) {
		int null = open("/dev/null", O_RDONLY);

		if (null >= 0)
			dup2(null, STDIN_FILENO);
		execvp(argv[0], argv);
		log_errno(-errno, "run %s", argv[0]);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return log_errno(-errno, "wait for %s", argv[0]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	log_info("%s failed", argv[0]);
	return -EIO;
}
