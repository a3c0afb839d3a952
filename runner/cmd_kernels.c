/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The verb kernels: what could be booted, and why the rest cannot. */
#include <string.h>

#include "results/log.h"
#include "runner/amount.h"
#include "runner/bmc_kernel.h"
#include "runner/machine.h"
#include "runner/planner.h"

struct widths {
	int label, version, image, skipped;
};

static void widen(int *width, const char *text)
{
	int len = (int)strlen(text);

	if (len > *width)
		*width = len;
}

static int is_shown(const struct options *o, const struct kernel *k, int skipped)
{
	return !k->skip == !skipped && planner_chooses(o->kernels, k);
}

static void print_kernel(const struct kernel *k, const struct widths *w)
{
	char size[AMOUNT_BYTES] = "none";

	if (k->initrd)
		amount_size(size, k->initrd_bytes);
	printf("  %-*s  %-*s  %-*s  %s\n", w->label, k->label, w->version, k->version, w->image,
	       machine_file_name(k->image), size);
}

static unsigned print_skipped(const struct options *o, const struct kernel_list *l,
			      const struct widths *w)
{
	unsigned n = 0;

	for (size_t i = 0; i < l->n; i++) {
		const struct kernel *k = &l->kernels[i];

		if (!is_shown(o, k, 1))
			continue;
		if (!n++)
			printf("skipped:\n");
		printf("  %-*s  %s\n", w->skipped, machine_file_name(k->image), k->skip);
	}
	return n;
}

/* Where there is a BMC, its watchdog is what ends an early hang; not everywhere. */
static void print_not_guarded(const struct options *o, const struct machine *m)
{
	unsigned n = 0;

	if (!m->bmc)
		return;
	if (m->bmc_unfit) {
		printf("when one hangs early, the BMC's watchdog does not reset it: %s\n",
		       m->bmc_unfit);
		return;
	}
	for (size_t i = 0; i < m->kernels.n; i++) {
		const struct kernel *k = &m->kernels.kernels[i];
		const char *lacks =
			is_shown(o, k, 0) ? bmc_kernel_lacks(m->root, k->version) : NULL;

		if (!lacks)
			continue;
		if (!n++)
			printf("not reset by the BMC's watchdog when it hangs early:\n");
		printf("  %s  it has no %s to stop it later\n", k->label, lacks);
	}
}

int verb_kernels(const struct options *o)
{
	_cleanup_(cleanup_machine) struct machine *m = NULL;
	struct widths w = {5, 7, 5, 0};
	unsigned n = 0;

	if (machine_read_kernels(o, &m) < 0)
		return EXIT_FAILED;
	if (m->kernels_err < 0) {
		log_errno(m->kernels_err, "find kernels in %s/boot and %s/usr/lib/modules", m->root,
			  m->root);
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < m->kernels.n; i++) {
		const struct kernel *k = &m->kernels.kernels[i];

		if (is_shown(o, k, 1))
			widen(&w.skipped, machine_file_name(k->image));
		if (!is_shown(o, k, 0))
			continue;
		widen(&w.label, k->label);
		widen(&w.version, k->version);
		widen(&w.image, machine_file_name(k->image));
	}
	for (size_t i = 0; i < m->kernels.n; i++) {
		if (!is_shown(o, &m->kernels.kernels[i], 0))
			continue;
		if (!n++)
			printf("  %-*s  %-*s  %-*s  %s\n", w.label, "LABEL", w.version, "VERSION",
			       w.image, "IMAGE", "INITRD");
		print_kernel(&m->kernels.kernels[i], &w);
	}
	n += print_skipped(o, &m->kernels, &w);
	print_not_guarded(o, m);
	if (n)
		return EXIT_DONE;
	log_info("--kernels %s: there is no such kernel", o->kernels ? o->kernels : "");
	return EXIT_FAILED;
}
