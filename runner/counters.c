/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads /proc: vmstat, diskstats, stat, pressure, meminfo, dentry-state. */
#include "runner/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/sysmacros.h>

/* The largest of these files on a machine with many disks; a longer one is cut. */
#define PROC_BYTES 65536

static int read_proc(const char *path, char *buf)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while (len < PROC_BYTES - 1 && (n = read(fd, buf + len, PROC_BYTES - 1 - len)) > 0)
		len += n;
	buf[len] = '\0';
	return len ? 0 : -ENODATA;
}

/* The number after "KEY" at the start of a line, or ABSENT. */
static int64_t line_number(const char *text, const char *key)
{
	size_t len = strlen(key);
	int64_t value;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (!strncmp(line, key, len) && sscanf(line + len, " %" SCNd64, &value) == 1)
			return value;
		if (!*line)
			break;
	}
	return ABSENT;
}

static int64_t scaled(int64_t value, int64_t factor)
{
	return value == ABSENT ? ABSENT : value * factor;
}

/* Documentation/admin-guide/iostats.rst: sectors are of 512 bytes. */
static void read_disk(char *buf, dev_t device, struct counters *out)
{
	unsigned maj, min;
	int64_t sectors_read, sectors_written;

	if (read_proc("/proc/diskstats", buf))
		return;
	for (char *line = strtok(buf, "\n"); line; line = strtok(NULL, "\n")) {
		if (sscanf(line, "%u %u %*s %*d %*d %" SCNd64 " %*d %*d %*d %" SCNd64, &maj, &min,
			   &sectors_read, &sectors_written) != 4)
			continue;
		if (maj != major(device) || min != minor(device))
			continue;
		out->read_bytes = sectors_read * 512;
		out->write_bytes = sectors_written * 512;
		return;
	}
}

static int64_t stall_ns(const char *text, const char *kind)
{
	const char *line = strstr(text, kind);
	const char *total = line ? strstr(line, "total=") : NULL;
	int64_t us;

	if (!total || sscanf(total, "total=%" SCNd64, &us) != 1)
		return ABSENT;
	return us * 1000;
}

/* Documentation/accounting/psi.rst: totals are in microseconds. */
static void read_pressure(char *buf, struct record_psi *psi)
{
	if (!read_proc("/proc/pressure/cpu", buf))
		psi->cpu_some_ns = stall_ns(buf, "some");
	if (!read_proc("/proc/pressure/memory", buf)) {
		psi->memory_some_ns = stall_ns(buf, "some");
		psi->memory_full_ns = stall_ns(buf, "full");
	}
	if (!read_proc("/proc/pressure/io", buf)) {
		psi->io_some_ns = stall_ns(buf, "some");
		psi->io_full_ns = stall_ns(buf, "full");
	}
}

void counters_read(dev_t device, struct counters *out)
{
	static char buf[PROC_BYTES];
	int64_t page = sysconf(_SC_PAGESIZE), tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);
	int64_t steal;

	memset(out, 0xff, sizeof(*out)); /* every figure ABSENT */
	if (!read_proc("/proc/vmstat", buf)) {
		out->swap_in_bytes = scaled(line_number(buf, "pswpin "), page);
		out->swap_out_bytes = scaled(line_number(buf, "pswpout "), page);
		out->oom_kills = line_number(buf, "oom_kill ");
	}
	if (!read_proc("/proc/stat", buf) &&
	    sscanf(buf, "cpu %*d %*d %*d %*d %*d %*d %*d %" SCNd64, &steal) == 1)
		out->steal_ns = steal * tick_ns;
	read_pressure(buf, &out->psi);
	read_disk(buf, device, out);
}

static int64_t minus(int64_t after, int64_t before)
{
	return after == ABSENT || before == ABSENT || after < before ? ABSENT : after - before;
}

void counters_delta(const struct counters *before, const struct counters *after,
		    struct counters *out)
{
	out->swap_in_bytes = minus(after->swap_in_bytes, before->swap_in_bytes);
	out->swap_out_bytes = minus(after->swap_out_bytes, before->swap_out_bytes);
	out->oom_kills = minus(after->oom_kills, before->oom_kills);
	out->read_bytes = minus(after->read_bytes, before->read_bytes);
	out->write_bytes = minus(after->write_bytes, before->write_bytes);
	out->steal_ns = minus(after->steal_ns, before->steal_ns);
	out->psi.cpu_some_ns = minus(after->psi.cpu_some_ns, before->psi.cpu_some_ns);
	out->psi.memory_some_ns = minus(after->psi.memory_some_ns, before->psi.memory_some_ns);
	out->psi.memory_full_ns = minus(after->psi.memory_full_ns, before->psi.memory_full_ns);
	out->psi.io_some_ns = minus(after->psi.io_some_ns, before->psi.io_some_ns);
	out->psi.io_full_ns = minus(after->psi.io_full_ns, before->psi.io_full_ns);
}

void memory_gauges_read(struct memory_gauges *out)
{
	static char buf[PROC_BYTES];
	int64_t dentries;

	memset(out, 0xff, sizeof(*out));
	if (!read_proc("/proc/meminfo", buf)) {
		out->total_bytes = scaled(line_number(buf, "MemTotal:"), 1024);
		out->cached_bytes = scaled(line_number(buf, "Cached:"), 1024);
		out->slab_reclaimable_bytes = scaled(line_number(buf, "SReclaimable:"), 1024);
		out->dirty_bytes = scaled(line_number(buf, "Dirty:"), 1024);
		out->writeback_bytes = scaled(line_number(buf, "Writeback:"), 1024);
	}
	if (!read_proc("/proc/sys/fs/dentry-state", buf) && sscanf(buf, "%" SCNd64, &dentries) == 1)
		out->dentries = dentries;
}

int process_times(pid_t pid, int64_t *user_ns, int64_t *sys_ns)
{
	static char buf[PROC_BYTES];
	int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK), user, sys;
	char path[64], *end;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	r = read_proc(path, buf);
	if (r < 0)
		return r;
	/* The name in parentheses may hold anything, so fields are counted from its end (proc(5)).
	 */
	end = strrchr(buf, ')');
	if (!end ||
	    sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNd64 " %" SCNd64,
		   &user, &sys) != 2)
		return -EBADMSG;
	*user_ns = user * tick_ns;
	*sys_ns = sys * tick_ns;
	return 0;
}
