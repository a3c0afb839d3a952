/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Talks to the BMC about its watchdog timer. */
#include "runner/bmc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ipmi.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include "results/log.h"
#include "runner/pause.h"
#include "runner/spawn.h"

#define NETFN_APP     0x06
#define NETFN_APP_RSP 0x07

enum { RESET_WATCHDOG = 0x22, SET_WATCHDOG = 0x24, GET_WATCHDOG = 0x25 };

#define USE_MASK      0x07
#define USE_RUNS      0x40 /* of the answer */
#define ACTION_NONE   0x00
#define ACTION_RESET  0x01
#define FLAG_OS_LOAD  (1 << BMC_USE_OS_LOAD)
#define ANSWER_BYTES  9	  /* of Get Watchdog Timer, completion code included */
#define TICKS	      10  /* a second */
#define STOPPED_TICKS 100 /* as ipmitool leaves it */

#define BUSY	  0xc0 /* completion code: try again */
#define TIMED_OUT 0xc3
#define UNKNOWN	  0xff /* Linux's, too, when the way to the BMC fails (IPMI_ERR_UNSPECIFIED) */
#define TRIES	  3
#define ANSWER_MS 2000
#define RETRY_MS  200

const char *const bmc_modules[] = {"ipmi_si", "ipmi_devintf", NULL};

static void encode(uint8_t data[BMC_SET_BYTES], uint8_t action, unsigned ticks)
{
	data[0] = BMC_USE_OS_LOAD;
	data[1] = action;
	data[2] = 0;
	data[3] = FLAG_OS_LOAD;
	data[4] = ticks & 0xff;
	data[5] = ticks >> 8;
}

void bmc_encode_arm(unsigned seconds, uint8_t data[BMC_SET_BYTES])
{
	encode(data, ACTION_RESET, seconds * TICKS);
}

void bmc_encode_stop(uint8_t data[BMC_SET_BYTES])
{
	encode(data, ACTION_NONE, STOPPED_TICKS);
}

int bmc_decode_timer(const uint8_t *data, size_t len, struct bmc_timer *out)
{
	if (len > 0 && data[0])
		return -EIO;
	if (len < ANSWER_BYTES)
		return -EBADMSG;
	*out = (struct bmc_timer){
		.use = data[1] & USE_MASK,
		.runs = (data[1] & USE_RUNS) != 0,
		.initial_ticks = data[5] | (unsigned)data[6] << 8,
		.left_ticks = data[7] | (unsigned)data[8] << 8,
		.has_fired = (data[4] & FLAG_OS_LOAD) != 0,
	};
	return 0;
}

int bmc_is_foreign(const struct bmc_timer *t)
{
	return t->runs && t->use != BMC_USE_OS_LOAD;
}

int bmc_is_ours(const struct bmc_timer *t)
{
	return t->use == BMC_USE_OS_LOAD && (t->runs || t->left_ticks);
}

const char *bmc_use_name(unsigned use)
{
	static const char *const names[] = {"unknown", "BIOS FRB2", "BIOS/POST",
					    "OS Load", "SMS/OS",    "OEM"};

	return use < ARRAY_SIZE(names) ? names[use] : names[0];
}

/* A descriptor; -ENODEV: none of the device's names is there. Silent. */
static int find_device(const char *root)
{
	static const char *const names[] = {"/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0"};
	char path[4096];
	int fd = -1;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (snprintf(path, sizeof(path), "%s%s", root, names[i]) >= (int)sizeof(path))
			return -ENAMETOOLONG;
		fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno != ENOENT && errno != ENOTDIR && errno != ENXIO && errno != ENODEV)
			return -errno;
	}
	return -ENODEV;
}

static int open_device(const char *root)
{
	int fd = find_device(root);

	return fd < 0 && fd != -ENODEV ? log_errno(fd, "open the BMC's device") : fd;
}

static int send_command(int fd, long id, uint8_t command, const uint8_t *data, size_t len)
{
	struct ipmi_system_interface_addr bmc = {
		.addr_type = IPMI_SYSTEM_INTERFACE_ADDR_TYPE,
		.channel = IPMI_BMC_CHANNEL,
	};
	struct ipmi_req request = {
		.addr = (unsigned char *)&bmc,
		.addr_len = sizeof(bmc),
		.msgid = id,
		.msg = {.netfn = NETFN_APP,
			.cmd = command,
			.data_len = (unsigned short)len,
			.data = (unsigned char *)data},
	};

	return ioctl(fd, IPMICTL_SEND_COMMAND, &request) < 0 ? -errno : 0;
}

/* The next message; 1 when it is the answer to @id, 0 when it is another. */
static int receive(int fd, long id, uint8_t command, uint8_t answer[IPMI_MAX_MSG_LENGTH],
		   size_t *len)
{
	struct ipmi_addr from;
	struct ipmi_recv message = {
		.addr = (unsigned char *)&from,
		.addr_len = sizeof(from),
		.msg = {.data = answer, .data_len = IPMI_MAX_MSG_LENGTH},
	};

	if (ioctl(fd, IPMICTL_RECEIVE_MSG_TRUNC, &message) < 0 && errno != EMSGSIZE)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	*len = message.msg.data_len;
	return message.recv_type == IPMI_RESPONSE_RECV_TYPE && message.msgid == id &&
	       message.msg.netfn == NETFN_APP_RSP && message.msg.cmd == command;
}

static int await(int fd, long id, uint8_t command, uint8_t answer[IPMI_MAX_MSG_LENGTH], size_t *len)
{
	int64_t deadline_ns = spawn_now_ns() + ANSWER_MS * INT64_C(1000000), left_ns;
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	int r;

	while ((left_ns = deadline_ns - spawn_now_ns()) > 0) {
		r = poll(&ready, 1, (int)(left_ns / 1000000) + 1);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r <= 0)
			continue;
		r = receive(fd, id, command, answer, len);
		if (r)
			return r < 0 ? r : 0;
	}
	return -ETIMEDOUT;
}

static int is_passing(uint8_t code)
{
	return code == BUSY || code == TIMED_OUT || code == UNKNOWN;
}

/* One command and its answer, completion code first. An answer that may be another the next time
 * is asked for again; so is one that never comes. */
static int talk(int fd, uint8_t command, const uint8_t *data, size_t data_len,
		uint8_t answer[IPMI_MAX_MSG_LENGTH], size_t *len)
{
	static long id;
	int r = 0;

	for (int try = 0; try < TRIES; try++) {
		id++;
		r = send_command(fd, id, command, data, data_len);
		if (r == 0)
			r = await(fd, id, command, answer, len);
		if (r == 0 && *len == 0)
			r = -EBADMSG;
		if (r == 0 && (!is_passing(answer[0]) || try == TRIES - 1))
			return 0;
		if (r != 0 && r != -ETIMEDOUT && r != -EAGAIN)
			return r;
		r = -ETIMEDOUT;
		pause_ms(RETRY_MS);
	}
	return r;
}

static int command(int fd, uint8_t number, const uint8_t *data, size_t data_len)
{
	uint8_t answer[IPMI_MAX_MSG_LENGTH];
	size_t len = 0;
	int r = talk(fd, number, data, data_len, answer, &len);

	if (r == 0 && answer[0]) {
		log_warn("the BMC answers command 0x%02x with completion code 0x%02x", number,
			 answer[0]);
		r = -EIO;
	}
	return r;
}

static int get(int fd, struct bmc_timer *out)
{
	uint8_t answer[IPMI_MAX_MSG_LENGTH];
	size_t len = 0;
	int r = talk(fd, GET_WATCHDOG, NULL, 0, answer, &len);

	if (r == 0)
		r = bmc_decode_timer(answer, len, out);
	return r < 0 ? log_errno(r, "ask the BMC for its watchdog") : 0;
}

/* 1, which is said. */
static int is_left_alone(const struct bmc_timer *t)
{
	if (!bmc_is_foreign(t))
		return 0;
	log_info("the BMC's watchdog runs for somebody else (%s); it is left alone",
		 bmc_use_name(t->use));
	return 1;
}

static int set_stopped(int fd)
{
	uint8_t data[BMC_SET_BYTES];
	struct bmc_timer after = {0};
	int r;

	bmc_encode_stop(data);
	r = command(fd, SET_WATCHDOG, data, sizeof(data));
	if (r == 0)
		r = get(fd, &after);
	if (r == 0 && after.runs && after.use == BMC_USE_OS_LOAD)
		r = -EIO;
	return r;
}

int bmc_may_be_armed(const char *root)
{
	_cleanup_close_ int fd = open_device(root);
	struct bmc_timer t = {0};

	return fd >= 0 && get(fd, &t) == 0 && !is_left_alone(&t);
}

int bmc_arm(const char *root, unsigned seconds)
{
	_cleanup_close_ int fd = open_device(root);
	uint8_t data[BMC_SET_BYTES];
	struct bmc_timer t = {0};
	int r = fd < 0 ? fd : get(fd, &t);

	if (r < 0)
		return r;
	if (is_left_alone(&t))
		return -EBUSY;
	bmc_encode_arm(seconds, data);
	r = command(fd, SET_WATCHDOG, data, sizeof(data));
	if (r == 0)
		r = command(fd, RESET_WATCHDOG, NULL, 0);
	if (r == 0) {
		log_info("the BMC's watchdog is armed, %u s", seconds);
		return 0;
	}
	log_errno(r, "arm the BMC's watchdog");
	/* An answer that is lost does not tell whether the command was. */
	if (set_stopped(fd) == 0)
		return r;
	log_warn("the BMC's watchdog may run, %u s", seconds);
	return -EINPROGRESS;
}

int bmc_stop(const char *root)
{
	_cleanup_close_ int fd = open_device(root);
	struct bmc_timer t = {0};
	int r = fd < 0 ? fd : get(fd, &t);

	if (r < 0)
		return r;
	if (t.use == BMC_USE_OS_LOAD && t.has_fired)
		log_info("the BMC's watchdog has reset this machine");
	else if (is_left_alone(&t) || !bmc_is_ours(&t))
		return 0;
	r = set_stopped(fd);
	if (r < 0)
		return log_errno(r, "stop the BMC's watchdog, which resets the machine in %u s",
				 t.left_ticks / TICKS);
	if (t.runs || (t.left_ticks && t.left_ticks != t.initial_ticks))
		log_info("the BMC's watchdog is stopped, %u s before its end",
			 t.left_ticks / TICKS);
	return 0;
}

int bmc_wait(const char *root, int ms)
{
	for (int waited_ms = 0;; waited_ms += RETRY_MS) {
		_cleanup_close_ int fd = find_device(root);

		if (fd >= 0)
			return 1;
		if (waited_ms >= ms)
			return 0;
		pause_ms(RETRY_MS);
	}
}
