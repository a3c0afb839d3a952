/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Collects the facts about the machine. */
#include "runner/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "grub/rootfile.h"
#include "results/log.h"
#include "runner/bmc_kernel.h"

#define FACT_MAX (1u << 20)
#define EFI_VARS "/sys/firmware/efi/efivars/"
#define EFI_GUID "-8be4df61-93ca-11d2-aa0d-00e098032b8c"

/* The root that the machine's /proc and /sys are read below. */
static const char *fact_root(const struct machine *m)
{
	return mountinfo_is_live(m->root) ? "" : m->root;
}

/* The text of a small file of /proc or /sys, without the final newline; NULL: not there. */
static char *read_fact(const struct machine *m, const char *path)
{
	char *text;
	size_t len;

	if (rootfile_read(fact_root(m), path, FACT_MAX, &text, &len) < 0)
		return NULL;
	if (len && text[len - 1] == '\n')
		text[len - 1] = '\0';
	return text;
}

static int exists(const char *root, const char *path)
{
	_cleanup_close_ int fd = rootfile_open(root, path, O_PATH);

	return fd >= 0;
}

static int64_t read_number(const struct machine *m, const char *path, int64_t absent)
{
	_cleanup_free_ char *text = read_fact(m, path);
	long long value;

	return text && sscanf(text, "%lld", &value) == 1 ? value : absent;
}

/* "MemTotal:  1024 kB" */
static uint64_t read_memtotal(const struct machine *m)
{
	_cleanup_free_ char *text = read_fact(m, "/proc/meminfo");
	const char *line = text ? strstr(text, "MemTotal:") : NULL;

	return line ? strtoull(line + strlen("MemTotal:"), NULL, 10) * 1024 : 0;
}

/* Of a fake machine the CPUs are the "processor" lines. */
static unsigned count_cpus(const struct machine *m)
{
	_cleanup_free_ char *text = NULL;
	unsigned n = 0;

	if (mountinfo_is_live(m->root))
		return (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	text = read_fact(m, "/proc/cpuinfo");
	for (const char *at = text; at && (at = strstr(at, "processor\t")); at++)
		n++;
	return n ? n : 1;
}

/* A hardware clock that runs in local time is whole quarters of an hour away from UTC. */
static int64_t read_rtc_offset(const struct machine *m)
{
	int64_t now = time(NULL), rtc = read_number(m, "/sys/class/rtc/rtc0/since_epoch", now);
	int64_t diff = rtc - now, quarter = 15 * 60;

	return (diff + (diff < 0 ? -quarter / 2 : quarter / 2)) / quarter * quarter;
}

/* The byte of an EFI variable behind its four bytes of attributes. */
static int efi_flag(const struct machine *m, const char *name)
{
	_cleanup_free_ char *bytes = NULL;
	char path[128];
	size_t len;

	snprintf(path, sizeof(path), EFI_VARS "%s" EFI_GUID, name);
	return rootfile_read(fact_root(m), path, FACT_MAX, &bytes, &len) == 0 && len == 5 &&
	       bytes[4] == 1;
}

static int read_turbo(const struct machine *m)
{
	int64_t no_turbo = read_number(m, "/sys/devices/system/cpu/intel_pstate/no_turbo", -1);

	if (no_turbo >= 0)
		return no_turbo == 0;
	return (int)read_number(m, "/sys/devices/system/cpu/cpufreq/boost", -1);
}

/* Of a mounted root only its files can tell. */
static int has_systemd(const char *root)
{
	return *root ? exists(root, "/usr/lib/systemd/systemd") ||
			       exists(root, "/lib/systemd/systemd")
		     : exists("", "/run/systemd/system");
}

static void read_uname(struct machine *m)
{
	_cleanup_free_ char *text = NULL;
	struct utsname name;

	if (!mountinfo_is_live(m->root))
		text = read_fact(m, "/proc/sys/kernel/osrelease");
	if (!text && uname(&name) == 0)
		text = strdup(name.release);
	snprintf(m->uname, sizeof(m->uname), "%s", text ? text : "");
}

/*
 * The signature of a PE image: size of the certificate table, data directory 4 (PE format,
 * "Optional Header Data Directories"); a bzImage with the EFI stub is one.
 */
static int is_signed(const struct machine *m, const char *image)
{
	_cleanup_close_ int fd = rootfile_open(m->root, image, 0);
	unsigned char head[4096];
	uint32_t pe, size;
	ssize_t n;

	n = fd < 0 ? -1 : read(fd, head, sizeof(head));
	if (n < 0x40 || head[0] != 'M' || head[1] != 'Z')
		return 0;
	memcpy(&pe, head + 0x3c, sizeof(pe));
	/* 24 bytes of headers, 112 of PE32+, four directories of 8, one address of 4. */
	if (pe > sizeof(head) || (size_t)n < pe + 24 + 112 + 4 * 8 + 8)
		return 0;
	memcpy(&size, head + pe + 24 + 112 + 4 * 8 + 4, sizeof(size));
	return size != 0;
}

static int skip_unsigned(struct machine *m)
{
	for (size_t i = 0; m->secure_boot && i < m->kernels.n; i++) {
		struct kernel *k = &m->kernels.kernels[i];

		if (k->skip || is_signed(m, k->image))
			continue;
		k->skip = strdup("not signed, and Secure Boot is on: sign it, or switch Secure "
				 "Boot off");
		if (!k->skip)
			return -ENOMEM;
	}
	return 0;
}

static const struct device *by_number(const struct machine *m, const struct mountinfo_entry *mount)
{
	for (size_t i = 0; mount && i < m->devices.n; i++) {
		const struct device *d = &m->devices.devices[i];

		/* btrfs and its like have a number of their own; what they lie on has a name. */
		if ((d->maj == mount->maj && d->min == mount->min) ||
		    (!mount->maj && !strncmp(mount->source, "/dev/", 5) &&
		     !strcmp(mount->source + 5, d->name)))
			return d;
	}
	return NULL;
}

static void find_boot(struct machine *m)
{
	const struct mountinfo_entry *root = mountinfo_find(&m->mounts, "/");
	const struct mountinfo_entry *boot = mountinfo_find(&m->mounts, "/boot");
	const char *dir;

	m->root_dev = by_number(m, root);
	m->boot_dev = by_number(m, boot);
	snprintf(m->root_fstype, sizeof(m->root_fstype), "%s", root ? root->fstype : "");
	snprintf(m->boot_fstype, sizeof(m->boot_fstype), "%s", boot ? boot->fstype : "");
	if (!boot)
		return;
	dir = strcmp(boot->dir, "/") ? boot->dir : "";
	snprintf(m->boot_prefix, sizeof(m->boot_prefix), "%s%s", dir,
		 strcmp(boot->point, "/boot") ? "/boot" : "");
}

/* By path as typed, name, UUID or UUID=. */
static int find_swap(struct machine *m, const char *word)
{
	const char *uuid = strncmp(word, "UUID=", 5) ? word : word + 5;
	char path[PATH_MAX];
	_cleanup_free_ char *real = NULL;

	snprintf(path, sizeof(path), "%s%s", m->root, word);
	real = realpath(path, NULL);
	for (size_t i = 0; i < m->devices.n; i++) {
		const struct device *d = &m->devices.devices[i];

		if (!strcmp(d->path, path) || !strcmp(d->name, word) ||
		    (*d->uuid && !strcmp(d->uuid, uuid)) || (real && !strcmp(d->path, real))) {
			m->swap = d;
			return 0;
		}
	}
	return -ENOENT;
}

static int read_devices(struct machine *m, const struct options *o)
{
	int r = mountinfo_read(m->root, &m->mounts);

	if (r < 0)
		return log_errno(r, "read %s/proc/self/mountinfo", m->root);
	m->devices_err = devices_scan(m->root, &m->devices);
	if (m->devices_err == -ENOMEM)
		return log_errno(-ENOMEM, "list the devices");
	m->store_err = devices_by_label(&m->devices, MACHINE_STORE_LABEL, &m->store);
	m->arena_err = devices_by_label(&m->devices, MACHINE_ARENA_LABEL, &m->arena);
	m->swap_err = o->swap ? find_swap(m, o->swap) : 0;
	find_boot(m);
	return 0;
}

static int read_basis(const struct options *o, struct machine **out)
{
	_cleanup_(cleanup_machine) struct machine *m = calloc(1, sizeof(*m));
	struct stat st;

	if (!m) {
		log_errno(-ENOMEM, "read the machine");
		return -ENOMEM;
	}
	m->root = o->root ? o->root : "";
	if (*m->root && (stat(m->root, &st) || !S_ISDIR(st.st_mode))) {
		log_errno(-ENOTDIR, "use %s as the machine's root", m->root);
		return -ENOTDIR;
	}
	read_uname(m);
	m->efi = exists(fact_root(m), "/sys/firmware/efi");
	m->secure_boot = efi_flag(m, "SecureBoot") && !efi_flag(m, "SetupMode");
	m->bmc = exists(m->root, "/dev/ipmi0") || exists(m->root, "/dev/ipmi/0") ||
		 exists(m->root, "/dev/ipmidev/0");
	m->bmc_unfit = m->bmc ? bmc_kernel_unfit(fact_root(m)) : NULL;
	*out = TAKE_PTR(m);
	return 0;
}

static int read_kernels(struct machine *m)
{
	int r;

	m->kernels_err = kernels_find(m->root, &m->kernels);
	r = skip_unsigned(m);
	return r < 0 ? log_errno(r, "list the kernels") : 0;
}

int machine_read_kernels(const struct options *o, struct machine **out)
{
	_cleanup_(cleanup_machine) struct machine *m = NULL;
	int r = read_basis(o, &m);

	if (r == 0)
		r = read_kernels(m);
	if (r == 0)
		*out = TAKE_PTR(m);
	return r;
}

int machine_read_devices(const struct options *o, struct machine **out)
{
	_cleanup_(cleanup_machine) struct machine *m = NULL;
	int r = read_basis(o, &m);

	if (r != 0)
		return r;
	m->cmdline = read_fact(m, "/proc/cmdline");
	r = read_devices(m, o);
	if (r == 0)
		*out = TAKE_PTR(m);
	return r;
}

int machine_read(const struct options *o, struct machine **out)
{
	_cleanup_(cleanup_machine) struct machine *m = NULL;
	int r = machine_read_devices(o, &m);

	if (r == 0)
		r = read_kernels(m);
	if (r != 0)
		return r;
	m->cpus = count_cpus(m);
	m->memtotal_bytes = read_memtotal(m);
	m->rtc_offset_s = read_rtc_offset(m);
	m->turbo = read_turbo(m);
	m->watchdog = exists(fact_root(m), "/sys/class/watchdog/watchdog0");
	m->systemd = has_systemd(m->root);
	m->menu_err = menu_read(m->root, &m->menu);
	*out = TAKE_PTR(m);
	return 0;
}

void machine_free(struct machine *m)
{
	if (!m)
		return;
	free(m->cmdline);
	mountinfo_free(&m->mounts);
	device_list_free(&m->devices);
	menu_free(m->menu);
	kernel_list_free(&m->kernels);
	free(m);
}

const char *machine_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void machine_missing(const struct machine *m, const char *label, int err, char text[MACHINE_TEXT])
{
	char names[256] = "";
	size_t n = 0;

	for (size_t i = 0; i < m->devices.n && n < sizeof(names); i++)
		if (!strcmp(m->devices.devices[i].label, label))
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
					      m->devices.devices[i].path + strlen(m->root));
	if (m->devices_err < 0)
		snprintf(text, MACHINE_TEXT, "the devices cannot be listed: %s",
			 strerror(-m->devices_err));
	else if (err == -ENOTUNIQ)
		snprintf(text, MACHINE_TEXT,
			 "several partitions are labelled %s: %s; rename all but one: e2label DEV "
			 "OTHER",
			 label, names);
	else if (n)
		snprintf(text, MACHINE_TEXT,
			 "%s is labelled %s but cannot be used (in use by LVM, md or LUKS, or with "
			 "traces of another format); recount format --store DEV --arena DEV makes "
			 "both",
			 names, label);
	else
		snprintf(text, MACHINE_TEXT,
			 "no partition is labelled %s; attach the disk that has it, or make both: "
			 "recount format --store DEV --arena DEV",
			 label);
}

const struct kernel *machine_find_kernel(const struct machine *m, const char *label)
{
	for (size_t i = 0; i < m->kernels.n; i++)
		if (m->kernels.kernels[i].label && !strcmp(m->kernels.kernels[i].label, label))
			return &m->kernels.kernels[i];
	return NULL;
}

const struct kernel *machine_running_kernel(const struct machine *m)
{
	for (size_t i = 0; i < m->kernels.n; i++)
		if (!m->kernels.kernels[i].skip && !strcmp(m->kernels.kernels[i].version, m->uname))
			return &m->kernels.kernels[i];
	return NULL;
}
