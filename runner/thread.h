/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Threads of PID 1, for the few things that may block where PID 1 may not. Nothing can kill one of
 * them alone: not the worker, which ends all other processes between trials, and not the kernel
 * when memory runs out.
 */
#ifndef RECOUNT_RUNNER_THREAD_H
#define RECOUNT_RUNNER_THREAD_H

#include <semaphore.h>

#include "results/macro.h"

/* Runs @run(@arg), real-time and with all signals blocked, for ever. */
int thread_start(void *(*run)(void *), void *arg) _must_check_;

/* Waits for sem_post(). */
void thread_wait(sem_t *s);

#endif
