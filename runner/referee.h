/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The referee's decisions, apart from the files they are read from: what became of the attempt
 * that was armed, and what comes next. All pure. Used by `recount referee` on the normal boot and
 * by `resume`, which asks the same questions.
 */
#ifndef RECOUNT_RUNNER_REFEREE_H
#define RECOUNT_RUNNER_REFEREE_H

#include "grub/oneshot.h"
#include "results/campaign.h"

/* An attempt that GRUB did not take is armed again this often, then a person is asked: it is no
 * power cut that comes every time. */
#define REFEREE_REARMS_MAX 3

/* How long after its last possible end an attempt still counts as one of this night. */
#define REFEREE_LATE_S 600

enum referee_verdict {
	REFEREE_NONE,	 /* no attempt is open */
	REFEREE_REARM,	 /* GRUB never took it: the same attempt again, nobody is blamed */
	REFEREE_BOOK,	 /* it failed: book the reason, then go on */
	REFEREE_GO_HOME, /* this very boot is the attempt, but recount-init did not run: book it,
			  * arm nothing, reboot to the default */
	REFEREE_STAY,	 /* a recount boot that nobody waits for: arm nothing, leave it alone */
	REFEREE_STUCK,	 /* the first boot after the canary carries its token: the run ends */
};

struct referee_finding {
	enum referee_verdict verdict;
	unsigned boot, attempt; /* of the attempt; 0, 0 where there is none */
	const char *reason;	/* static, as in failed-N.json, for REFEREE_BOOK and _GO_HOME; else
				 * NULL */
};

/*
 * What became of the open attempt of @c. @state: the three keys of the store's block. @token: the
 * recount.token of this boot's own command line, "" on the machine's default. @panic_text: 1 when
 * panic text was found that is newer than the attempt.
 */
struct referee_finding referee_judge(const struct campaign *c, const struct oneshot_state *state,
				     const char *token, int panic_text);

enum referee_step {
	REFEREE_ARM,	    /* arm *boot, *attempt */
	REFEREE_WAIT,	    /* an attempt ended long ago: a person pressed the button; ask them */
	REFEREE_HELD,	    /* a person pressed h in the last boot; ask them */
	REFEREE_COMPLETE,   /* nothing is left: write the report */
	REFEREE_LIMIT,	    /* too many boots: the same, and say so */
	REFEREE_CANARY_BAD, /* the trial boot did not come home: the same, and say so */
};

/* The attempt that was armed last, by the numbers of arming and no clock, and when (UTC; 0: not
 * known): 1, or 0 when none was. Pure. */
int referee_last_armed(const struct campaign *c, unsigned *boot, unsigned *attempt,
		       int64_t *armed_s);

struct referee_now {	   /* what a campaign does not say */
	const char *uname; /* of this boot */
	int64_t now_s;	   /* UTC */
	int64_t rearmed_s; /* when the last attempt was armed again; 0: never */
	int asked;	   /* 1: a person asks to go on; nothing is left to wait for */
};

/*
 * What comes next, once the open attempt of @c is settled: @finding is what was found before that.
 * An attempt to be armed again comes back as it is. The canary has passed only when this boot's
 * uname is the one of the plan. *boot and *attempt are written for REFEREE_ARM only.
 */
enum referee_step referee_next(const struct campaign *c, const struct referee_finding *finding,
			       const struct referee_now *now, unsigned *boot, unsigned *attempt);

/* What REFEREE_WAIT and REFEREE_HELD wait for, in words; NULL for the other steps. Static. */
const char *referee_waits_for(enum referee_step step);

/* Seconds since 1970 of a text like 2026-11-30T22:51:59Z; -EBADMSG. */
int referee_utc(const char *text, int64_t *seconds) _must_check_;

/*
 * The line for people that says why a campaign ended early: of the canary what became of its
 * attempts, or which kernel it came home to (@uname, of this boot). "" for REFEREE_COMPLETE. Owned
 * by caller, free(). Pure.
 */
int referee_explain(const struct campaign *c, enum referee_step step,
		    const struct referee_finding *finding, const char *uname,
		    char **text) _must_check_;

#endif
