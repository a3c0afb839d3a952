/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attributes used everywhere: checked results, cleanup of locals, transfer of ownership. */
#ifndef RECOUNT_RESULTS_MACRO_H
#define RECOUNT_RESULTS_MACRO_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _must_check_	   __attribute__((warn_unused_result))
#define _printf_(fmt, arg) __attribute__((format(printf, fmt, arg)))
#define _cleanup_(fn)	   __attribute__((cleanup(fn)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Hands a resource over: yields it and leaves the variable empty, so that cleanup skips it. */
#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define _cleanup_free_	   _cleanup_(cleanup_free)
#define _cleanup_close_	   _cleanup_(cleanup_close)
#define _cleanup_fclose_   _cleanup_(cleanup_fclose)
#define _cleanup_closedir_ _cleanup_(cleanup_closedir)

#endif
