/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The key h on consoles that are pseudo terminals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>

#include "runner/key.h"
#include "tests/unit/fakeroot.h"

struct desk {
	char root[FAKEROOT_PATH];
	int person[2]; /* the other ends: who sits at console and ttyS1 */
	struct keys keys;
};

/* A terminal under the name @device. */
static int plug_in(const char *root, const char *device)
{
	char path[2 * FAKEROOT_PATH];
	int fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(grantpt(fd), 0);
	assert_int_equal(unlockpt(fd), 0);
	fakeroot_path(path, root, device);
	assert_int_equal(symlink(ptsname(fd), path), 0);
	return fd;
}

static int set_up(void **state)
{
	struct desk *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	sample_folder(d->root);
	d->person[0] = plug_in(d->root, "dev/console");
	d->person[1] = plug_in(d->root, "dev/ttyS1");
	fakeroot_write(d->root, "dev/netcon0", "");
	fakeroot_write(d->root, "proc/consoles",
		       "netcon0              -W- (E  p  )  \n"
		       "ttyS1                -W- (EC p a)    4:65\n"
		       "ttyS7                -W- (E  p  )    4:71\n");
	*state = d;
	return 0;
}

static int tear_down(void **state)
{
	struct desk *d = *state;

	key_close(&d->keys);
	close(d->person[0]);
	close(d->person[1]);
	sample_folder_remove(d->root);
	free(d);
	return 0;
}

static void type(int person, const char *text)
{
	assert_int_equal(write(person, text, strlen(text)), strlen(text));
}

static int echoes(int person)
{
	char back[16];

	return read(person, back, sizeof(back)) > 0;
}

static void h_on_any_console_holds(void **state)
{
	struct desk *d = *state;

	for (int i = 0; i < 2; i++) {
		key_open(d->root, &d->keys);
		assert_int_equal(d->keys.n, 2);
		assert_int_equal(key_held(&d->keys), 0);
		type(d->person[i], i ? "H" : "xh");
		assert_int_equal(key_held(&d->keys), 1);
		/* and it stays so */
		assert_int_equal(key_held(&d->keys), 1);
		assert_false(echoes(d->person[i]));
		key_close(&d->keys);
	}
}

static void other_keys_do_not(void **state)
{
	struct desk *d = *state;

	key_open(d->root, &d->keys);
	type(d->person[0], "jg \n\x1b[A\x03");
	assert_int_equal(key_held(&d->keys), 0);
}

static void h_before_we_looked_counts(void **state)
{
	struct desk *d = *state;
	struct termios t;
	/* Somebody else keeps the terminal open, as the kernel does its console. */
	int other = open(ptsname(d->person[1]), O_RDWR | O_NOCTTY | O_CLOEXEC);

	assert_true(other >= 0);
	type(d->person[1], "h");
	key_open(d->root, &d->keys);
	assert_int_equal(key_held(&d->keys), 1);
	/* and the terminal is given back as it was */
	key_close(&d->keys);
	assert_int_equal(tcgetattr(other, &t), 0);
	assert_true((t.c_lflag & ICANON) && (t.c_lflag & ECHO));
	close(other);
}

static void machine_without_consoles_is_never_held(void **state)
{
	struct desk *d = *state;

	key_open("/nonexistent", &d->keys);
	assert_int_equal(d->keys.n, 0);
	assert_int_equal(key_held(&d->keys), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(h_on_any_console_holds),
		TEST(other_keys_do_not),
		TEST(h_before_we_looked_counts),
		TEST(machine_without_consoles_is_never_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
