/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What arms and stops the BMC's watchdog on the normal boot, beside a systemctl and a modprobe that
 * are made up, and a BMC that answers or does not. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "runner/bmc.h"
#include "runner/bmc_home.h"
#include "runner/service.h"
#include "tests/unit/fakeroot.h"
#include "tests/unit/sample.h"

static char root[FAKEROOT_PATH];
static struct attempt_state attempts[2];
static struct boot_state boots[64];
static struct campaign campaign;

static struct {
	int arm_answer, stop_answer;
	int device_after; /* the device is there at the n-th look */
	time_t up_s;	  /* since this kernel started */
	char calls[256];  /* "arm 1200,stop," */
	char calls_at_signal[256];
	char told[512];	 /* to everybody */
	unsigned told_s; /* for how long it is true */
	int n_looks, n_waits;
	int64_t slept_ms;
} world;

int __wrap_bmc_arm(const char *where, unsigned seconds);
int __wrap_bmc_stop(const char *where);
int __wrap_bmc_wait(const char *where, int ms);
void __wrap_service_tell_until(const char *notice, const char *text, unsigned left_s);
unsigned __wrap_service_told_s(const char *notice);
void __wrap_service_untell(const char *notice);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

static void note(const char *call)
{
	size_t len = strlen(world.calls);

	snprintf(world.calls + len, sizeof(world.calls) - len, "%s,", call);
}

int __wrap_bmc_arm(const char *where, unsigned seconds)
{
	char call[32];

	assert_string_equal(where, "");
	snprintf(call, sizeof(call), "arm %u", seconds);
	note(call);
	return world.arm_answer;
}

int __wrap_bmc_stop(const char *where)
{
	assert_string_equal(where, "");
	note("stop");
	return world.stop_answer;
}

int __wrap_bmc_wait(const char *where, int ms)
{
	assert_string_equal(where, "");
	world.n_waits += ms > 0;
	return ++world.n_looks >= world.device_after;
}

void __wrap_service_untell(const char *notice)
{
	assert_string_equal(notice, BMC_HOME_NOTICE);
	world.told[0] = '\0';
	world.told_s = 0;
}

void __wrap_service_tell_until(const char *notice, const char *text, unsigned left_s)
{
	assert_string_equal(notice, BMC_HOME_NOTICE);
	snprintf(world.told, sizeof(world.told), "%s", text);
	world.told_s = left_s;
}

unsigned __wrap_service_told_s(const char *notice)
{
	assert_string_equal(notice, BMC_HOME_NOTICE);
	return world.told_s;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	assert_int_equal(id, CLOCK_BOOTTIME);
	*out = (struct timespec){.tv_sec = world.up_s};
	return 0;
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
	const struct timespec short_time = {.tv_nsec = 100000};

	(void)left;
	clock_nanosleep(CLOCK_MONOTONIC, 0, &short_time, NULL);
	world.slept_ms += wanted->tv_sec * 1000 + wanted->tv_nsec / 1000000;
	return 0;
}

static void remember(int signal)
{
	(void)signal;
	memcpy(world.calls_at_signal, world.calls, sizeof(world.calls));
}

/* The program @name in $PATH, a shell script. */
static void program(const char *name, const char *script)
{
	char text[512], path[2 * FAKEROOT_PATH];

	snprintf(text, sizeof(text), "#!/bin/sh\necho %s $* >>%s/ran\n%s\n", name, root, script);
	fakeroot_write(root, name, text);
	fakeroot_path(path, root, name);
	assert_int_equal(chmod(path, 0755), 0);
}

static void has_run(const char *expected)
{
	char path[2 * FAKEROOT_PATH], text[512] = "";
	FILE *f;

	fakeroot_path(path, root, "ran");
	f = fopen(path, "r");
	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		fclose(f);
	}
	assert_string_equal(text, expected);
}

/* What has written its process into the file pid. */
static void kill_hanging(void)
{
	char path[2 * FAKEROOT_PATH];
	FILE *f = NULL;
	int pid = 0;

	fakeroot_path(path, root, "pid");
	for (int i = 0; pid == 0 && i < 1000; i++) {
		f = fopen(path, "r");
		if (f && fscanf(f, "%d", &pid) != 1)
			pid = 0;
		if (f)
			fclose(f);
		usleep(1000);
	}
	assert_true(pid > 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int set_up(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	memset(attempts, 0, sizeof(attempts));
	memset(boots, 0, sizeof(boots));
	campaign = (struct campaign){.plan = sample_plan(), .boots = boots};
	assert_true(campaign.plan->n_boots <= ARRAY_SIZE(boots));
	sample_folder(root);
	assert_int_equal(setenv("PATH", root, 1), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	plan_free((struct plan *)campaign.plan);
	sample_folder_remove(root);
	return 0;
}

/* A campaign whose last attempt had the watchdog armed for so long. */
static void armed_last(unsigned seconds)
{
	((struct plan *)campaign.plan)->entries[0].bmc_s = 1200;
	attempts[0] = (struct attempt_state){.exists = 1,
					     .armed = {.token = "a", .sequence = 1, .bmc_s = 1200}};
	attempts[1] = (struct attempt_state){
		.exists = 1, .armed = {.token = "b", .sequence = 2, .bmc_s = seconds}};
	boots[1].attempts = attempts;
	boots[1].n_attempts = ARRAY_SIZE(attempts);
}

/* --- the reboot ------------------------------------------------------------------------------ */

static void armed_just_before_the_reboot(void **state)
{
	(void)state;
	program("systemctl", "exit 0");
	assert_int_equal(bmc_home_reboot(1200), 0);
	assert_string_equal(world.calls, "arm 1200,");
	has_run("systemctl reboot\n");
}

/* Nothing is asked of a BMC that a campaign does not use. */
static void left_alone_on_the_way_home(void **state)
{
	(void)state;
	program("systemctl", "exit 0");
	assert_int_equal(bmc_home_reboot(0), 0);
	assert_string_equal(world.calls, "");
	has_run("systemctl reboot\n");
}

static void reboot_that_is_refused_stops_it_again(void **state)
{
	(void)state;
	program("systemctl", "exit 1");
	assert_int_equal(bmc_home_reboot(1200), -ECHILD);
	assert_string_equal(world.calls, "arm 1200,stop,");
}

/* Only where it may have been armed. */
static void one_that_cannot_be_stopped_again_is_told(void **state)
{
	static const struct {
		int armed;
		unsigned told_s;
	} cases[] = {{0, 1200}, {-EINPROGRESS, 1200}, {-ETIMEDOUT, 0}, {-EBUSY, 0}, {-ENODEV, 0}};

	(void)state;
	program("systemctl", "exit 1");
	world.stop_answer = -ETIMEDOUT;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		world.arm_answer = cases[i].armed;
		world.told_s = 0;
		assert_int_equal(bmc_home_reboot(1200), -ECHILD);
		assert_int_equal(world.told_s, cases[i].told_s);
	}
	world.arm_answer = world.stop_answer = 0;
	world.told_s = 900;
	assert_int_equal(bmc_home_reboot(1200), -ECHILD);
	assert_int_equal(world.told_s, 0);
}

/* A person who presses Ctrl-C, or loses the connection, in the middle. */
static void signals_wait_until_all_is_done_or_undone(void **state)
{
	static const int enders[] = {SIGINT, SIGHUP, SIGTERM};
	char script[64];
	sigset_t blocked;

	(void)state;
	assert_int_equal(setpgid(0, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(enders); i++) {
		/* As a terminal, or systemd, sends it: to the child as well, which lives on. */
		snprintf(script, sizeof(script), "kill -%d 0; exit 0", enders[i]);
		program("systemctl", script);
		memset(world.calls, 0, sizeof(world.calls));
		memset(world.calls_at_signal, 0, sizeof(world.calls_at_signal));
		signal(enders[i], remember);
		assert_int_equal(bmc_home_reboot(1200), 0);
		signal(enders[i], SIG_DFL);
		assert_string_equal(world.calls_at_signal, "arm 1200,");
		sigprocmask(SIG_BLOCK, NULL, &blocked);
		assert_int_equal(sigismember(&blocked, enders[i]), 0);
	}
}

static void no_systemctl_stops_it_again(void **state)
{
	(void)state;
	assert_int_equal(bmc_home_reboot(1200), -ENOENT);
	assert_string_equal(world.calls, "arm 1200,stop,");
}

static void bmc_that_is_not_armed_keeps_nobody_from_rebooting(void **state)
{
	(void)state;
	program("systemctl", "exit 0");
	world.arm_answer = -ETIMEDOUT;
	assert_int_equal(bmc_home_reboot(1200), 0);
	has_run("systemctl reboot\n");
}

/* --- its drivers ------------------------------------------------------------------------------ */

static void drivers_that_are_there_are_not_loaded(void **state)
{
	(void)state;
	world.device_after = 1;
	assert_int_equal(bmc_home_load(), 1);
	has_run("");
}

static void drivers_are_loaded_and_waited_for(void **state)
{
	(void)state;
	program("modprobe", "exit 0");
	world.device_after = 2;
	assert_int_equal(bmc_home_load(), 1);
	assert_int_equal(world.n_waits, 1);
	has_run("modprobe -a ipmi_si ipmi_devintf\n");
}

/* No driver, no device: nothing is waited for. */
static void machine_without_a_bmc_does_not_wait(void **state)
{
	(void)state;
	program("modprobe", "exit 1");
	world.device_after = 3;
	assert_int_equal(bmc_home_load(), 0);
	assert_int_equal(world.n_waits, 0);
}

static void driver_that_hangs_is_left_behind(void **state)
{
	(void)state;
	program("modprobe", "echo $$ >${0%/*}/pid; exec /bin/sleep 600");
	world.device_after = 3;
	assert_int_equal(bmc_home_load(), 0);
	assert_int_equal(world.n_waits, 0);
	assert_int_equal(world.slept_ms, 60000);
	kill_hanging();
}

/* --- at home ---------------------------------------------------------------------------------- */

static void timer_of_the_last_attempt_counts_until_it_is_done(void **state)
{
	(void)state;
	assert_int_equal(bmc_home_armed_s(&campaign), 0);
	armed_last(900);
	assert_int_equal(bmc_home_armed_s(&campaign), 900);
	attempts[1].failed = 1;
	assert_int_equal(bmc_home_armed_s(&campaign), 900);
	attempts[1].done = 1;
	assert_int_equal(bmc_home_armed_s(&campaign), 0);
	attempts[1].done = 0;
	((struct plan *)campaign.plan)->entries[0].bmc_s = 0;
	assert_int_equal(bmc_home_armed_s(&campaign), 0);
}

static void stopped_at_home_with_its_notice(void **state)
{
	(void)state;
	snprintf(world.told, sizeof(world.told), "of before");
	assert_int_equal(bmc_home_stop(1200), 0);
	assert_string_equal(world.calls, "stop,");
	assert_string_equal(world.told, "");
}

static void silent_bmc_is_told_with_its_time(void **state)
{
	static const int answers[] = {-ETIMEDOUT, -ENODEV, -EIO};

	(void)state;
	world.up_s = 200;
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		world.stop_answer = answers[i];
		world.told[0] = '\0';
		assert_int_equal(bmc_home_stop(1200), 1000);
		assert_int_equal(world.told_s, 1000);
		assert_non_null(strstr(world.told, "its watchdog may reset this machine until 20"));
		assert_non_null(strstr(world.told, "ipmitool mc watchdog off"));
	}
}

/* It was armed before this kernel started. */
static void silence_is_nothing_once_the_time_is_over(void **state)
{
	(void)state;
	world.stop_answer = -ETIMEDOUT;
	world.up_s = 1200;
	assert_int_equal(bmc_home_stop(1200), 0);
	assert_string_equal(world.told, "");
	world.up_s = 1199;
	assert_int_equal(bmc_home_stop(1200), 1);
}

static void what_was_told_is_tried_once_more(void **state)
{
	(void)state;
	world.device_after = 1;
	/* nobody was told of anything: nothing is asked */
	assert_int_equal(bmc_home_left_s(0), 0);
	assert_string_equal(world.calls, "");
	world.told_s = 500;
	world.stop_answer = -ETIMEDOUT;
	assert_int_equal(bmc_home_left_s(0), 500);
	world.stop_answer = 0;
	assert_int_equal(bmc_home_left_s(0), 0);
	assert_int_equal(world.told_s, 0);
	assert_string_equal(world.calls, "stop,stop,");
}

/* A `stop` before the referee: a timer that obeys is stopped; of one that does not nobody knows. */
static void campaign_that_uses_it_is_asked_unsaid(void **state)
{
	(void)state;
	world.device_after = 1;
	assert_int_equal(bmc_home_left_s(1), 0);
	world.stop_answer = -ETIMEDOUT;
	assert_int_equal(bmc_home_left_s(1), 0);
	world.told_s = 500;
	assert_int_equal(bmc_home_left_s(1), 500);
	assert_string_equal(world.calls, "stop,stop,stop,");
}

static void what_was_told_stands_where_no_driver_can_be_loaded(void **state)
{
	(void)state;
	program("modprobe", "exit 1");
	world.device_after = 9;
	world.told_s = 500;
	assert_int_equal(bmc_home_left_s(0), 500);
	assert_string_equal(world.calls, "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(armed_just_before_the_reboot),
		TEST(left_alone_on_the_way_home),
		TEST(reboot_that_is_refused_stops_it_again),
		TEST(one_that_cannot_be_stopped_again_is_told),
		TEST(signals_wait_until_all_is_done_or_undone),
		TEST(no_systemctl_stops_it_again),
		TEST(bmc_that_is_not_armed_keeps_nobody_from_rebooting),
		TEST(drivers_that_are_there_are_not_loaded),
		TEST(drivers_are_loaded_and_waited_for),
		TEST(machine_without_a_bmc_does_not_wait),
		TEST(driver_that_hangs_is_left_behind),
		TEST(timer_of_the_last_attempt_counts_until_it_is_done),
		TEST(stopped_at_home_with_its_notice),
		TEST(silent_bmc_is_told_with_its_time),
		TEST(silence_is_nothing_once_the_time_is_over),
		TEST(what_was_told_is_tried_once_more),
		TEST(campaign_that_uses_it_is_asked_unsaid),
		TEST(what_was_told_stands_where_no_driver_can_be_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
