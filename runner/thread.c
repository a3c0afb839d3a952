/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Starts threads. */
#include "runner/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "results/log.h"

#define STACK_BYTES (64 << 10)

int thread_start(void *(*run)(void *), void *arg)
{
	struct sched_param param = {.sched_priority = 1};
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (!err)
		err = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!err)
		err = pthread_create(&thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (err)
		return -err;
	/* Not by the attributes: a thread that is not real-time is better than none. */
	err = pthread_setschedparam(thread, SCHED_FIFO, &param);
	if (err)
		log_errno(-err, "make a thread of PID 1 real-time");
	return 0;
}

void thread_wait(sem_t *s)
{
	while (sem_wait(s) && errno == EINTR)
		;
}
