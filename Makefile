# SPDX-License-Identifier: GPL-3.0-or-later
# recount: see README.md. `make deps` first on a fresh machine. V=1 shows the commands; SAN=1 builds
# with AddressSanitizer and UBSan into a folder of its own.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VERSION := 0.1
CC := $(if $(filter default,$(origin CC)),gcc,$(CC))
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
SBINDIR ?= $(PREFIX)/sbin
LIBEXECDIR ?= $(PREFIX)/lib/recount
MANDIR ?= $(PREFIX)/share/man
DESTDIR ?=
PYTHON ?= /usr/bin/python3
SAN ?=
V ?=

B := build$(if $(SAN),/san)
STATIC := build/static
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2))
comma := ,

# Every object goes into one archive; a program takes from it what it calls. Only init.c and
# recount.c have a main(); what may call what is a matter of layers (make layers).
SOURCES := $(wildcard results/*.c initramfs/*.c grub/*.c runner/*.c)
MAINS := runner/init.c runner/recount.c
LIB_OBJECTS := $(patsubst %.c,$(B)/%.o,$(filter-out $(MAINS),$(SOURCES)))
UNIT_TESTS := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
C_FILES := $(wildcard results/*.[ch] initramfs/*.[ch] grub/*.[ch] runner/*.[ch] tests/unit/*.[ch] \
	tests/fuzz/*.[ch])

SANFLAGS := $(if $(SAN),-fsanitize=address$(comma)undefined -fno-sanitize-recover=all)
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
DEFINES := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DLIBEXECDIR='"$(LIBEXECDIR)"' \
	-DRECOUNT_VERSION='"$(VERSION)"'
COMPILE = $(CC) -std=gnu11 $(WARNINGS) $(CFLAGS) -ffunction-sections -fdata-sections $(SANFLAGS) \
	$(DEFINES) $(CPPFLAGS) -I. -isystem $(STATIC)/include
LINK = $(COMPILE) $(LDFLAGS) -Wl,--gc-sections

# recount-init is linked statically with exactly these.
INIT_LIBS := $(STATIC)/libkmod.a $(STATIC)/libcjson.a -lblkid -lmd -llzma -lzstd -lz -lm -pthread
LIBS := $(STATIC)/libcjson.a -lgsl -lgslcblas -larchive -lblkid -lmd -lm
TEST_LIBS := $(STATIC)/libkmod.a $(LIBS) -llzma -lzstd -lz -lcmocka

.PHONY: all deps check check-run check-unit check-all demo torture fuzz lint lint-format \
	lint-cppcheck lint-shell layers update-golden install uninstall clean
all: $(B)/recount $(B)/recount-init

# --- set-up -----------------------------------------------------------------------------------
BUILD_PACKAGES := gcc libc6-dev make dpkg-dev patch xz-utils zstd perl libblkid-dev liblzma-dev \
	libzstd-dev zlib1g-dev libmd-dev libgsl-dev libarchive-dev
TEST_PACKAGES := libcmocka-dev python3 python3-pytest python3-pytest-xdist qemu-system-x86 qemu-utils \
	seabios mmdebstrap debian-archive-keyring grub-common grub2-common grub-pc-bin e2fsprogs fdisk kmod file \
	groff-base ovmf dosfstools mtools xfsprogs btrfs-progs
HEADERS := blkid/blkid.h lzma.h zstd.h zlib.h sha2.h gsl/gsl_statistics.h archive.h

deps:
	@sh tests/deps.sh $(BUILD_PACKAGES) $(TEST_PACKAGES)
	@sh initramfs/static-libs.sh $(STATIC)

# What is missing is named here, once, rather than by the compiler.
$(STATIC)/libkmod.a $(STATIC)/libcjson.a:
	@echo "recount: $@ is missing: run 'make deps' (as root on Debian); it installs what is" >&2
	@echo "needed and builds libkmod and cJSON from the distribution's source packages." >&2
	@false

build/.headers: | $(STATIC)/libkmod.a $(STATIC)/libcjson.a
	@command -v $(CC) >/dev/null || { echo "recount: no compiler ($(CC)): run 'make deps'" >&2; exit 1; }
	@missing=; for h in $(HEADERS); do \
		printf '#include <sys/types.h>\n#include <%s>\n' "$$h" | $(CC) -E -x c - >/dev/null 2>&1 || \
			missing="$$missing $$h"; \
	done; \
	[ -z "$$missing" ] || { echo "recount: headers missing:$$missing: run 'make deps'" >&2; exit 1; }
	@mkdir -p $(@D) && touch $@

# --- programs ---------------------------------------------------------------------------------
$(B)/%.o: %.c | build/.headers
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(COMPILE) -MMD -MP -c -o $@ $<

$(B)/librecount.a: $(LIB_OBJECTS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcsD $@ $^

$(B)/recount: $(B)/runner/recount.o $(B)/librecount.a $(STATIC)/libcjson.a
	$(call say,LINK,$@)
	$(Q)$(LINK) -o $@ $(B)/runner/recount.o $(B)/librecount.a $(LIBS)

# Sanitizers and -static exclude each other; with SAN=1 the parts of recount-init are tested.
$(B)/recount-init: $(B)/runner/init.o $(B)/librecount.a $(STATIC)/libkmod.a $(STATIC)/libcjson.a
	$(call say,LINK,$@)
	$(Q)$(LINK) $(if $(SAN),,-static -s) -o $@ $(B)/runner/init.o $(B)/librecount.a $(INIT_LIBS)

install: all
	install -D -m 755 build/recount $(DESTDIR)$(SBINDIR)/recount
	install -D -m 755 build/recount-init $(DESTDIR)$(LIBEXECDIR)/recount-init
	install -D -m 644 runner/recount.8 $(DESTDIR)$(MANDIR)/man8/recount.8
	install -D -m 644 results/recount-results.5 $(DESTDIR)$(MANDIR)/man5/recount-results.5

# Removes the programs; `recount uninstall` removes what campaigns have set up on the machine.
uninstall:
	rm -f $(DESTDIR)$(SBINDIR)/recount $(DESTDIR)$(MANDIR)/man8/recount.8 \
		$(DESTDIR)$(MANDIR)/man5/recount-results.5
	rm -rf $(DESTDIR)$(LIBEXECDIR)

clean:
	rm -rf build

# --- tests ------------------------------------------------------------------------------------
# These stop the store, or a whole campaign, at the n-th of these calls.
$(B)/tests/test_store $(B)/tests/test_cycle: LDFLAGS += -Wl,--wrap=write,--wrap=fsync,--wrap=renameat2,--wrap=mkdirat,--wrap=unlinkat
$(B)/tests/test_cycle: LDFLAGS += -Wl,--wrap=pwrite64
# A disk that does not answer, and the end of the wait for it.
$(B)/tests/test_devices: LDFLAGS += -Wl,--wrap=blkid_do_safeprobe,--wrap=poll
# A BMC that is made up, and no wait for it.
$(B)/tests/test_bmc: LDFLAGS += -Wl,--wrap=ioctl,--wrap=poll,--wrap=nanosleep,--wrap=spawn_now_ns
$(B)/tests/test_settle: LDFLAGS += -Wl,--wrap=bmc_may_be_armed
$(B)/tests/test_bmc_home: LDFLAGS += -Wl,--wrap=bmc_arm,--wrap=bmc_stop,--wrap=bmc_wait,--wrap=service_tell_until,--wrap=service_told_s,--wrap=service_untell,--wrap=clock_gettime,--wrap=nanosleep
# test_checkpoint freezes no real file system.
$(B)/tests/test_checkpoint: LDFLAGS += -Wl,--wrap=ioctl
$(B)/tests/%: tests/unit/%.c $(B)/librecount.a
	@mkdir -p $(@D)
	$(call say,TEST,$@)
	$(Q)$(LINK) -MMD -MP -o $@ $< $(B)/librecount.a $(TEST_LIBS)

PROVE ?= prove -j$$(nproc)
check-unit: $(UNIT_TESTS)
	CMOCKA_MESSAGE_OUTPUT=TAP $(PROVE) --exec '' $(UNIT_TESTS)

# The tests that CI runs; does its own set-up.
check: deps
	@$(MAKE) --no-print-directory check-run

# Two virtual machines at a time, each with one CPU.
check-run: all layers check-unit
	$(PYTHON) -m pytest -q -p no:cacheprovider tests/cli
	$(PYTHON) -m pytest -v -p no:cacheprovider -n 2 --dist loadgroup \
		-m 'not long' tests/vm

# The long tests, too, but for those of hours; what became of each is in build/check-all-DATE.txt.
check-all: deps
	@$(MAKE) --no-print-directory all layers
	$(PYTHON) tests/check_all.py

# The whole main job in a virtual machine; does its own set-up.
demo: deps
	@$(MAKE) --no-print-directory all
	$(PYTHON) tests/vm/demo.py $(if $(WORKLOAD),--workload $(WORKLOAD))

# Power cuts in the middle of campaigns; does its own set-up.
CUTS ?= 100
SEED ?= 1
FROM ?= 1
torture: deps
	@$(MAKE) --no-print-directory all
	$(PYTHON) tests/vm/torture.py --cuts $(CUTS) --seed $(SEED) --from $(FROM)

# Each target for T seconds, then the share of its parser's lines that its corpus reaches; does its
# own set-up.
FUZZ_PACKAGES := clang llvm libclang-rt-dev python3
FUZZ_TARGETS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))
FUZZ_FLAGS := -O1 -g -fno-omit-frame-pointer
FUZZ_FLAGS_san := $(FUZZ_FLAGS) -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_FLAGS_cov := $(FUZZ_FLAGS) -fprofile-instr-generate -fcoverage-mapping
FUZZ_COMPILE = clang -std=gnu11 $(WARNINGS) $(DEFINES) $(CPPFLAGS) -I. -isystem $(STATIC)/include
F := build/fuzz
T ?= 60

fuzz:
	@sh tests/deps.sh $(BUILD_PACKAGES) $(FUZZ_PACKAGES)
	@sh initramfs/static-libs.sh $(STATIC)
	@$(MAKE) --no-print-directory $(addprefix $(F)/,$(FUZZ_TARGETS)) \
		$(addprefix $(F)/cov/,$(FUZZ_TARGETS))
	$(PYTHON) tests/fuzz/run.py $(F) $(T) $(ONLY)

$(F)/san/%.o: %.c | build/.headers
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)
	$(Q)$(FUZZ_COMPILE) $(FUZZ_FLAGS_san) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(F)/cov/%.o: %.c | build/.headers
	@mkdir -p $(@D)
	$(call say,COV,$<)
	$(Q)$(FUZZ_COMPILE) $(FUZZ_FLAGS_cov) -MMD -MP -c -o $@ $<

$(F)/%/librecount.a:
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcsD $@ $^
$(F)/san/librecount.a: $(patsubst $(B)/%,$(F)/san/%,$(LIB_OBJECTS))
$(F)/cov/librecount.a: $(patsubst $(B)/%,$(F)/cov/%,$(LIB_OBJECTS))

$(addprefix $(F)/,$(FUZZ_TARGETS)): $(F)/%: $(F)/san/tests/fuzz/%.o $(F)/san/librecount.a
	$(call say,LINK,$@)
	$(Q)clang $(FUZZ_FLAGS_san) -fsanitize=fuzzer -o $@ $^ $(STATIC)/libkmod.a $(LIBS) -llzma -lzstd -lz

$(addprefix $(F)/cov/,$(FUZZ_TARGETS)): $(F)/cov/%: $(F)/cov/tests/fuzz/%.o $(F)/cov/librecount.a
	$(call say,LINK,$@)
	$(Q)clang $(FUZZ_FLAGS_cov) -fsanitize=fuzzer -o $@ $^ $(STATIC)/libkmod.a $(LIBS) -llzma -lzstd -lz

update-golden: $(UNIT_TESTS)
	UPDATE_GOLDEN=1 $(MAKE) check-unit

# results <- initramfs, grub <- runner
layers:
	@! grep -nE '^#include "(initramfs|grub|runner)/' results/*.[ch] && \
	! grep -nE '^#include "(grub|runner)/' initramfs/*.[ch] && \
	! grep -nE '^#include "(initramfs|runner)/' grub/*.[ch] && echo 'layers: no include points up'

# Nearly all of its time is clang-tidy's static analyzer (3 s of CPU a file), so a file is looked at
# again only when it or a header has changed. Does its own set-up.
LINT_PACKAGES := clang-format clang-tidy cppcheck shellcheck
L := build/lint
HEADERS_ALL := $(wildcard results/*.h initramfs/*.h grub/*.h runner/*.h)

lint:
	@sh tests/deps.sh $(BUILD_PACKAGES) $(LINT_PACKAGES)
	@sh initramfs/static-libs.sh $(STATIC)
	@$(MAKE) --no-print-directory -k -j "$$(nproc)" lint-format lint-cppcheck lint-shell \
		$(SOURCES:%.c=$(L)/%.tidy)

lint-format:
	$(Q)clang-format --dry-run -Werror $(C_FILES)

lint-cppcheck: | build/.headers
	@mkdir -p $(L)/cppcheck
	$(Q)cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr --suppress=missingIncludeSystem --suppress=memleak \
		--enable=warning,performance,portability --cppcheck-build-dir=$(L)/cppcheck \
		-I. -I$(STATIC)/include $(DEFINES) $(SOURCES)

lint-shell:
	shellcheck tests/*.sh initramfs/*.sh .ci/run

# clang-tidy sees one file a run: given several it forgets, from the second on, what va_start does.
# -fno-caret-diagnostics stops its count of warnings in system headers, which it does not show.
$(L)/%.tidy: %.c .clang-tidy $(HEADERS_ALL) | build/.headers
	@mkdir -p $(@D)
	$(call say,TIDY,$<)
	$(Q)clang-tidy --quiet $< -- -std=gnu11 $(DEFINES) -fno-caret-diagnostics -I. \
		-isystem $(STATIC)/include
	@touch $@

-include $(LIB_OBJECTS:.o=.d) $(patsubst %.c,$(B)/%.d,$(MAINS)) $(UNIT_TESTS:=.d) \
	$(wildcard $(F)/san/*/*.d $(F)/cov/*/*.d $(F)/*/tests/fuzz/*.d)
