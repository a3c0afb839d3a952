/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The BMC's watchdog: bytes as the IPMI specification v2.0 has them in §27.5 to 27.7, a BMC that is
 * made up behind the device's ioctls, and which kernels have its drivers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/ipmi.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "results/log.h"
#include "runner/bmc.h"
#include "runner/bmc_kernel.h"
#include "tests/unit/fakeroot.h"

static struct {
	/* the timer */
	uint8_t set[BMC_SET_BYTES];
	int runs, initialized, flags;
	unsigned left_ticks;
	/* how it behaves */
	int tells_runs;	   /* as a BMC does, and QEMU's does not */
	int silent;	   /* answers nothing from its n-th command on; 0: never */
	int busy;	   /* as many answers are "node busy" */
	int deaf_to_stop;  /* says yes, and goes on */
	int strangers;	   /* as many messages of somebody else come before an answer */
	int refuses_start; /* Reset Watchdog Timer's completion code */
	/* what it was asked */
	unsigned n_commands, n_sets;
	/* the answer that waits */
	uint8_t answer[16];
	size_t len;
	long id;
	uint8_t command;
} bmc;

static char root[FAKEROOT_PATH];
static char said[8192];
static int log_fd;

static void answer(uint8_t code)
{
	bmc.answer[0] = code;
	bmc.len = 1;
}

static void set(const uint8_t *data, size_t len)
{
	assert_int_equal(len, BMC_SET_BYTES);
	bmc.n_sets++;
	answer(0);
	if (bmc.deaf_to_stop && (data[1] & 7) == 0)
		return;
	memcpy(bmc.set, data, len);
	bmc.flags &= ~data[3];
	/* bit 6, "don't stop timer", is not set */
	assert_int_equal(data[0] & 0x40, 0);
	bmc.runs = 0;
	bmc.initialized = 1;
	/* QEMU's has no countdown while it is stopped */
	bmc.left_ticks = bmc.tells_runs ? data[4] | (unsigned)data[5] << 8 : 0;
}

static void get(void)
{
	answer(0);
	bmc.answer[1] = bmc.set[0] | (bmc.tells_runs && bmc.runs ? 0x40 : 0);
	bmc.answer[2] = bmc.set[1];
	bmc.answer[3] = bmc.set[2];
	bmc.answer[4] = (uint8_t)bmc.flags;
	bmc.answer[5] = bmc.set[4];
	bmc.answer[6] = bmc.set[5];
	bmc.answer[7] = bmc.left_ticks & 0xff;
	bmc.answer[8] = bmc.left_ticks >> 8;
	bmc.len = 9;
}

static void start(void)
{
	answer(bmc.initialized ? (uint8_t)bmc.refuses_start : 0x80);
	if (bmc.answer[0])
		return;
	bmc.runs = 1;
	bmc.left_ticks = (bmc.set[4] | (unsigned)bmc.set[5] << 8) - 1;
}

static int take_command(const struct ipmi_req *r)
{
	const struct ipmi_system_interface_addr *to = (const void *)r->addr;

	assert_int_equal(r->addr_len, sizeof(*to));
	assert_int_equal(to->addr_type, IPMI_SYSTEM_INTERFACE_ADDR_TYPE);
	assert_int_equal(to->channel, IPMI_BMC_CHANNEL);
	assert_int_equal(to->lun, 0);
	assert_int_equal(r->msg.netfn, 0x06);
	bmc.n_commands++;
	bmc.id = r->msgid;
	bmc.command = r->msg.cmd;
	bmc.len = 0;
	if (bmc.silent && bmc.n_commands >= (unsigned)bmc.silent)
		return 0;
	if (bmc.busy && bmc.busy--)
		answer(0xc0);
	else if (r->msg.cmd == 0x24)
		set(r->msg.data, r->msg.data_len);
	else if (r->msg.cmd == 0x25)
		get();
	else if (r->msg.cmd == 0x22)
		start();
	else
		answer(0xc1);
	return 0;
}

static int give_answer(struct ipmi_recv *r)
{
	assert_true(bmc.len > 0);
	r->recv_type = IPMI_RESPONSE_RECV_TYPE;
	r->msg.netfn = 0x07;
	r->msg.cmd = bmc.command;
	r->msgid = bmc.id;
	if (bmc.strangers && bmc.strangers--) {
		r->msgid = bmc.id - 1;
		r->msg.data[0] = 0xff;
		r->msg.data_len = 1;
		return 0;
	}
	assert_true(r->msg.data_len >= bmc.len);
	memcpy(r->msg.data, bmc.answer, bmc.len);
	r->msg.data_len = (unsigned short)bmc.len;
	bmc.len = 0;
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);
int64_t __wrap_spawn_now_ns(void);

static int64_t now_ns;

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	(void)fd;
	if (request == IPMICTL_SEND_COMMAND)
		return take_command(arg);
	assert_int_equal(request, IPMICTL_RECEIVE_MSG_TRUNC);
	return give_answer(arg);
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	assert_int_equal(n, 1);
	assert_true(ms > 0);
	fds[0].revents = bmc.len ? POLLIN : 0;
	if (!bmc.len)
		now_ns += ms * INT64_C(1000000);
	return bmc.len > 0;
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
	(void)left;
	now_ns += wanted->tv_sec * INT64_C(1000000000) + wanted->tv_nsec;
	return 0;
}

int64_t __wrap_spawn_now_ns(void)
{
	return now_ns;
}

static int set_up(void **state)
{
	(void)state;
	memset(&bmc, 0, sizeof(bmc));
	bmc.tells_runs = 1;
	sample_folder(root);
	fakeroot_write(root, "dev/ipmi0", "");
	log_fd = memfd_create("log", MFD_CLOEXEC);
	assert_true(log_fd >= 0);
	log_to(log_fd);
	now_ns = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	log_to(STDERR_FILENO);
	close(log_fd);
	sample_folder_remove(root);
	return 0;
}

static void forget(void)
{
	assert_int_equal(ftruncate(log_fd, 0), 0);
	assert_int_equal(lseek(log_fd, 0, SEEK_SET), 0);
}

static int was_said(const char *text)
{
	ssize_t n = pread(log_fd, said, sizeof(said) - 1, 0);

	assert_true(n >= 0);
	said[n] = '\0';
	return strstr(said, text) != NULL;
}

/* A timer that somebody has set and started. */
static void somebody_uses(uint8_t use)
{
	bmc.set[0] = use;
	bmc.set[1] = 0x01;
	bmc.set[4] = 0x58; /* 60 s */
	bmc.set[5] = 0x02;
	bmc.runs = bmc.initialized = 1;
	bmc.left_ticks = 500;
}

/* --- bytes ---------------------------------------------------------------------------------- */

static void requests_are_the_specifications_bytes(void **state)
{
	/* use 3 "OS Load", logged, stops what runs; action 1 "hard reset", no pre-timeout
	 * interrupt; pre-timeout 0; clears flag 3; 12000 times 100 ms, low byte first */
	static const uint8_t arm[] = {0x03, 0x01, 0x00, 0x08, 0xe0, 0x2e};
	static const uint8_t longest[] = {0x03, 0x01, 0x00, 0x08, 0xfa, 0xff};
	/* action 0 "no action" */
	static const uint8_t stop[] = {0x03, 0x00, 0x00, 0x08, 0x64, 0x00};
	uint8_t data[BMC_SET_BYTES];

	(void)state;
	bmc_encode_arm(BMC_ARM_S, data);
	assert_memory_equal(data, arm, sizeof(arm));
	bmc_encode_arm(6553, data);
	assert_memory_equal(data, longest, sizeof(longest));
	bmc_encode_stop(data);
	assert_memory_equal(data, stop, sizeof(stop));
}

static void answers_are_the_specifications_bytes(void **state)
{
	/* completion code; use 4 "SMS/OS", started; power cycle, with an NMI before; 10 s before;
	 * flag of OS Load; 600 s at first, 599.9 s left */
	static const uint8_t other[] = {0x00, 0x44, 0x23, 0x0a, 0x08, 0x70, 0x17, 0x6f, 0x17};
	static const uint8_t ours[] = {0x00, 0x43, 0x01, 0x00, 0x00, 0xe0, 0x2e, 0x01, 0x00};
	/* "don't log", and stopped, which leaves the countdown where it starts */
	static const uint8_t stopped[] = {0x00, 0x83, 0x01, 0x00, 0x10, 0xe0, 0x2e, 0xe0, 0x2e};
	static const uint8_t refused[] = {0xc1};
	struct bmc_timer t;

	(void)state;
	assert_int_equal(bmc_decode_timer(other, sizeof(other), &t), 0);
	assert_int_equal(t.use, 4);
	assert_int_equal(t.runs, 1);
	assert_int_equal(t.initial_ticks, 6000);
	assert_int_equal(t.left_ticks, 5999);
	assert_int_equal(t.has_fired, 1);
	assert_true(bmc_is_foreign(&t) && !bmc_is_ours(&t));
	assert_int_equal(bmc_decode_timer(ours, sizeof(ours), &t), 0);
	assert_int_equal(t.use, BMC_USE_OS_LOAD);
	assert_int_equal(t.left_ticks, 1);
	assert_int_equal(t.has_fired, 0);
	assert_true(!bmc_is_foreign(&t) && bmc_is_ours(&t));
	assert_int_equal(bmc_decode_timer(stopped, sizeof(stopped), &t), 0);
	assert_int_equal(t.use, BMC_USE_OS_LOAD);
	assert_int_equal(t.runs, 0);
	assert_int_equal(t.has_fired, 0);
	assert_int_equal(bmc_decode_timer(refused, sizeof(refused), &t), -EIO);
	for (size_t len = 0; len < sizeof(ours); len++)
		assert_int_equal(bmc_decode_timer(ours, len, &t), -EBADMSG);
}

static void uses_have_names(void **state)
{
	(void)state;
	assert_string_equal(bmc_use_name(4), "SMS/OS");
	assert_string_equal(bmc_use_name(1), "BIOS FRB2");
	assert_string_equal(bmc_use_name(7), "unknown");
}

/* --- the device ----------------------------------------------------------------------------- */

static void armed_then_stopped(void **state)
{
	(void)state;
	bmc.flags = 0x08;
	assert_int_equal(bmc_arm(root, 1200), 0);
	assert_int_equal(bmc.runs, 1);
	assert_int_equal(bmc.set[0], 3);
	assert_int_equal(bmc.flags, 0);
	assert_int_equal(bmc.left_ticks, 11999);
	assert_true(was_said("the BMC's watchdog is armed, 1200 s"));
	bmc.left_ticks = 5000;
	assert_int_equal(bmc_stop(root), 0);
	assert_int_equal(bmc.runs, 0);
	assert_int_equal(bmc.set[1], 0);
	assert_true(was_said("the BMC's watchdog is stopped, 500 s before its end"));
	assert_false(was_said("has reset"));
	/* and again: there is nothing to say of it */
	forget();
	assert_int_equal(bmc_stop(root), 0);
	assert_false(was_said("watchdog"));
}

/* QEMU's tells that it runs by its countdown alone. */
static void simulator_that_does_not_tell_is_stopped_too(void **state)
{
	(void)state;
	bmc.tells_runs = 0;
	assert_int_equal(bmc_arm(root, 300), 0);
	assert_int_equal(bmc_stop(root), 0);
	assert_int_equal(bmc.runs, 0);
	assert_true(was_said("the BMC's watchdog is stopped, 299 s before its end"));
	bmc.n_sets = 0;
	assert_int_equal(bmc_stop(root), 0);
	assert_int_equal(bmc.n_sets, 0);
}

static void timer_of_somebody_else_is_never_touched(void **state)
{
	static const uint8_t uses[] = {1, 2, 4, 5};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(uses); i++) {
		uint8_t before[BMC_SET_BYTES];

		somebody_uses(uses[i]);
		bmc.flags = 0x08;
		memcpy(before, bmc.set, sizeof(before));
		assert_int_equal(bmc_arm(root, 1200), -EBUSY);
		assert_true(was_said(bmc_use_name(uses[i])));
		forget();
		assert_int_equal(bmc_stop(root), 0);
		assert_true(was_said(bmc_use_name(uses[i])));
		forget();
		assert_int_equal(bmc_may_be_armed(root), 0);
		assert_true(was_said(bmc_use_name(uses[i])));
		assert_int_equal(bmc.n_sets, 0);
		assert_int_equal(bmc.runs, 1);
		assert_memory_equal(bmc.set, before, sizeof(before));
	}
	/* One that is stopped is nobody's. */
	bmc.runs = 0;
	assert_int_equal(bmc_arm(root, 1200), 0);
	assert_int_equal(bmc.set[0], 3);
}

static void one_that_has_fired_says_so_once(void **state)
{
	(void)state;
	assert_int_equal(bmc_arm(root, 1200), 0);
	bmc.runs = 0;
	bmc.left_ticks = 0;
	bmc.flags = 0x08;
	assert_int_equal(bmc_stop(root), 0);
	assert_true(was_said("the BMC's watchdog has reset this machine"));
	assert_false(was_said("is stopped"));
	forget();
	assert_int_equal(bmc_stop(root), 0);
	assert_false(was_said("has reset"));
}

static void machine_without_a_bmc_has_nothing_to_say(void **state)
{
	(void)state;
	assert_int_equal(bmc_arm("/nonexistent", 1200), -ENODEV);
	assert_int_equal(bmc_stop("/nonexistent"), -ENODEV);
	assert_int_equal(bmc_wait("/nonexistent", 0), 0);
	assert_int_equal(now_ns, 0);
	assert_int_equal(bmc_wait("/nonexistent", 3000), 0);
	assert_true(now_ns >= INT64_C(3000000000) && now_ns < INT64_C(4000000000));
	assert_int_equal(bmc.n_commands, 0);
	assert_false(was_said("BMC"));
}

static void other_names_of_the_device(void **state)
{
	static const char *const names[] = {"dev/ipmi0", "dev/ipmi/0", "dev/ipmidev/0"};
	char path[2 * FAKEROOT_PATH];

	(void)state;
	fakeroot_path(path, root, names[0]);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		unlink(path);
		assert_int_equal(bmc_wait(root, 0), 0);
		fakeroot_path(path, root, names[i]);
		fakeroot_write(root, names[i], "");
		assert_int_equal(bmc_wait(root, 0), 1);
		assert_int_equal(bmc_stop(root), 0);
		assert_int_equal(bmc.n_commands, i + 1);
	}
}

static void busy_is_asked_again_and_strangers_are_passed_over(void **state)
{
	(void)state;
	bmc.busy = 2;
	bmc.strangers = 3;
	assert_int_equal(bmc_arm(root, 1200), 0);
	assert_int_equal(bmc.runs, 1);
	assert_true(now_ns < INT64_C(1000000000));
}

/* Before the attempt is written down. */
static void only_one_that_answers_and_is_free_may_be_armed(void **state)
{
	(void)state;
	assert_int_equal(bmc_may_be_armed(root), 1);
	somebody_uses(BMC_USE_OS_LOAD);
	assert_int_equal(bmc_may_be_armed(root), 1);
	somebody_uses(4);
	assert_int_equal(bmc_may_be_armed(root), 0);
	assert_int_equal(bmc_may_be_armed("/nonexistent"), 0);
	bmc.runs = 0;
	assert_int_equal(bmc_may_be_armed(root), 1);
	bmc.silent = 1;
	assert_int_equal(bmc_may_be_armed(root), 0);
	assert_int_equal(bmc.n_sets, 0);
}

static void silence_ends_in_seconds(void **state)
{
	(void)state;
	bmc.silent = 1;
	assert_int_equal(bmc_stop(root), -ETIMEDOUT);
	assert_true(now_ns < INT64_C(20000000000));
	assert_true(was_said("cannot ask the BMC for its watchdog"));
}

static void one_that_does_not_stop_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(bmc_arm(root, 1200), 0);
	bmc.deaf_to_stop = 1;
	assert_int_equal(bmc_stop(root), -EIO);
	assert_true(was_said("cannot stop the BMC's watchdog"));
}

static void half_an_arming_is_undone(void **state)
{
	(void)state;
	bmc.refuses_start = 0xff;
	assert_int_equal(bmc_arm(root, 1200), -EIO);
	assert_true(was_said("command 0x22 with completion code 0xff"));
	assert_int_equal(bmc.runs, 0);
	assert_int_equal(bmc.set[1], 0);
	assert_false(was_said("may run"));
	/* the answer to the start is lost, and so are all that follow: it may run, which is said */
	memset(&bmc, 0, sizeof(bmc));
	bmc.tells_runs = 1;
	bmc.silent = 3;
	assert_int_equal(bmc_arm(root, 1200), -EINPROGRESS);
	assert_true(was_said("the BMC's watchdog may run, 1200 s"));
}

/* --- kernels -------------------------------------------------------------------------------- */

#define VERSION "6.1.0-57-amd64"
#define FOLDER	"usr/lib/modules/" VERSION "/"
#define IPMI	"kernel/drivers/char/ipmi/"

static void kernels_need_both_drivers(void **state)
{
	(void)state;
	assert_string_equal(bmc_kernel_lacks(root, VERSION), "ipmi_si");
	fakeroot_write(root, FOLDER "modules.dep",
		       IPMI "ipmi_msghandler.ko:\n" IPMI "ipmi_si.ko.xz: " IPMI
			    "ipmi_msghandler.ko\n");
	assert_string_equal(bmc_kernel_lacks(root, VERSION), "ipmi_devintf");
	fakeroot_write(root, FOLDER "modules.dep",
		       IPMI "ipmi_devintf.ko:\n" IPMI "ipmi_si.ko.xz:\n");
	assert_null(bmc_kernel_lacks(root, VERSION));
	assert_string_equal(bmc_kernel_lacks(root, "6.1.0-57-cloud-amd64"), "ipmi_si");
}

static void drivers_may_be_built_in(void **state)
{
	(void)state;
	fakeroot_write(root, "lib/modules/" VERSION "/modules.dep", IPMI "ipmi_devintf.ko:\n");
	fakeroot_write(root, "lib/modules/" VERSION "/modules.builtin", IPMI "ipmi_si.ko\n");
	assert_null(bmc_kernel_lacks(root, VERSION));
	/* a kernel without a folder of modules */
	fakeroot_write(root, "boot/config-7.1", "CONFIG_IPMI_SI=y\n");
	assert_string_equal(bmc_kernel_lacks(root, "7.1"), "ipmi_devintf");
	fakeroot_write(root, "boot/config-7.1",
		       "CONFIG_IPMI_SI=y\nCONFIG_IPMI_DEVICE_INTERFACE=y\n");
	assert_null(bmc_kernel_lacks(root, "7.1"));
	/* a module that is nowhere does not help */
	fakeroot_write(root, "boot/config-7.1",
		       "CONFIG_IPMI_SI=y\nCONFIG_IPMI_DEVICE_INTERFACE=m\n");
	assert_string_equal(bmc_kernel_lacks(root, "7.1"), "ipmi_devintf");
}

static void machines_that_give_it_to_others(void **state)
{
	char path[2 * FAKEROOT_PATH];

	(void)state;
	assert_null(bmc_kernel_unfit(root));
	fakeroot_path(path, root, "sys/class/ipmi/ipmi0/device/driver");
	assert_int_equal(symlink("../../../bus/platform/drivers/ipmi_si", path), 0);
	assert_null(bmc_kernel_unfit(root));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("../../../bus/i2c/drivers/ipmi_ssif", path), 0);
	assert_non_null(strstr(bmc_kernel_unfit(root), "not reached through ipmi_si"));
	fakeroot_write(root, "sys/module/ipmi_watchdog/refcnt", "0\n");
	assert_non_null(strstr(bmc_kernel_unfit(root), "ipmi_watchdog"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(requests_are_the_specifications_bytes),
		TEST(answers_are_the_specifications_bytes),
		TEST(uses_have_names),
		TEST(armed_then_stopped),
		TEST(simulator_that_does_not_tell_is_stopped_too),
		TEST(timer_of_somebody_else_is_never_touched),
		TEST(one_that_has_fired_says_so_once),
		TEST(machine_without_a_bmc_has_nothing_to_say),
		TEST(other_names_of_the_device),
		TEST(busy_is_asked_again_and_strangers_are_passed_over),
		TEST(only_one_that_answers_and_is_free_may_be_armed),
		TEST(silence_ends_in_seconds),
		TEST(one_that_does_not_stop_is_an_error),
		TEST(half_an_arming_is_undone),
		TEST(kernels_need_both_drivers),
		TEST(drivers_may_be_built_in),
		TEST(machines_that_give_it_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
