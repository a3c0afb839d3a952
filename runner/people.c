/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Asks systemd-logind, or else utmp, who is logged in. */
#include "runner/people.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <utmpx.h>

#include "runner/command.h"

#define TALK_MAX (64u << 10)
#define WORD_MAX 32

/* The value of "KEY=…" on a line of its own in @text, cut to its place; "" when there is none. */
static void value_of(const char *text, const char *key, char value[WORD_MAX])
{
	size_t len = strlen(key);
	const char *line = text;

	value[0] = '\0';
	for (; line; line = strchr(line, '\n'), line += line != NULL)
		if (!strncmp(line, key, len) && line[len] == '=') {
			snprintf(value, WORD_MAX, "%.*s", (int)strcspn(line + len + 1, "\n"),
				 line + len + 1);
			return;
		}
}

static void add(char who[PEOPLE_TEXT], const char *name, const char *where)
{
	size_t len = strlen(who);

	snprintf(who + len, PEOPLE_TEXT - len, "%s%s%s%s", len ? ", " : "", name,
		 *where ? " on " : "", where);
}

static void look_at_session(char *id, char who[PEOPLE_TEXT])
{
	char *const argv[] = {"loginctl",
			      "show-session",
			      "--property=Name",
			      "--property=Class",
			      "--property=State",
			      "--property=TTY",
			      id,
			      NULL};
	char name[WORD_MAX], class[WORD_MAX], state[WORD_MAX], tty[WORD_MAX];
	_cleanup_free_ char *text = NULL;

	/* It may be over by now. */
	if (command_read(argv, TALK_MAX, &text) < 0)
		return;
	value_of(text, "Name", name);
	value_of(text, "Class", class);
	value_of(text, "State", state);
	value_of(text, "TTY", tty);
	if (!strncmp(class, "user", strlen("user")) && strcmp(state, "closing") != 0)
		add(who, name, tty);
}

/* The sessions of logind; -errno when it does not answer. */
static int ask_logind(char who[PEOPLE_TEXT])
{
	char *const argv[] = {"loginctl", "list-sessions", "--no-legend", "--no-pager", NULL};
	_cleanup_free_ char *text = NULL;
	char *rest, *line;
	int r = command_read(argv, TALK_MAX, &text);

	if (r < 0)
		return r;
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		char *id = line + strspn(line, " ");

		id[strcspn(id, " ")] = '\0';
		if (*id)
			look_at_session(id, who);
	}
	return 0;
}

/* An entry stays behind when its program died. */
static int is_alive(pid_t pid)
{
	return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
}

static void ask_utmp(char who[PEOPLE_TEXT])
{
	const struct utmpx *u;

	setutxent();
	while ((u = getutxent())) {
		char name[WORD_MAX + 1], line[WORD_MAX + 1];

		if (u->ut_type != USER_PROCESS || !is_alive(u->ut_pid))
			continue;
		snprintf(name, sizeof(name), "%.*s", WORD_MAX, u->ut_user);
		snprintf(line, sizeof(line), "%.*s", WORD_MAX, u->ut_line);
		add(who, name, line);
	}
	endutxent();
}

int people_logged_in(char who[PEOPLE_TEXT])
{
	who[0] = '\0';
	if (ask_logind(who) < 0)
		ask_utmp(who);
	return who[0] != '\0';
}

int people_inhibit(void)
{
	char *const argv[] = {"loginctl", "show-session", "--property=BlockInhibited", NULL};
	_cleanup_free_ char *text = NULL;
	char *rest, *what;
	size_t len = strlen("BlockInhibited=");

	if (command_read(argv, TALK_MAX, &text) < 0 || strncmp(text, "BlockInhibited=", len) != 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	rest = text + len;
	while ((what = strsep(&rest, ":")))
		if (!strcmp(what, "shutdown"))
			return 1;
	return 0;
}
