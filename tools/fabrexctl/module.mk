# SPDX-License-Identifier: GPL-2.0-only
# fabrexctl: included by the Makefile at the top.
# Targets: fabrexctl, check-fabrexctl, install-fabrexctl.

BUILD ?= build
PREFIX ?= /usr/local
SBINDIR ?= $(PREFIX)/sbin
MANDIR ?= $(PREFIX)/share/man
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
UDEVDIR ?= $(PREFIX)/lib/udev
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
DESTDIR ?=
CFLAGS ?= -O2 -g

CTL_D := tools/fabrexctl
CTL_O := $(BUILD)/fabrexctl
CTL_BIN := $(BUILD)/bin/fabrexctl
CTL_PKGS := libnl-3.0 libnl-genl-3.0 libudev json-c libconfig
CTL_CPPFLAGS = -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
	-DFABREXCTL_VERSION='"$(LIB_VERSION)"' -I$(CTL_D) \
	-Iinclude -Iinclude/uapi -Ilib \
	$(shell pkg-config --cflags $(CTL_PKGS))
CTL_CFLAGS = -std=gnu11 -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wpointer-arith -Wwrite-strings \
	-Wno-format-truncation $(CFLAGS) -pthread
CTL_LIBS = $(shell pkg-config --libs $(CTL_PKGS)) $(PLAN_LIBS) -lm

# The peer-to-peer engine; static, so that the tool needs no library installed.
CTL_LIB := $(BUILD)/lib/libfabrex.a
# The planner, and the parser of topology files.
CTL_LIB += $(BUILD)/lib/libfabrex-plan.a $(BUILD)/lib/libtopology.a

CTL_SRC := $(filter-out $(CTL_D)/main.c,$(wildcard $(CTL_D)/*.c))
CTL_OBJ := $(CTL_SRC:$(CTL_D)/%.c=$(CTL_O)/%.o)
CTL_MAN := $(wildcard $(CTL_D)/man/*.8)

.PHONY: fabrexctl check-fabrexctl install-fabrexctl
fabrexctl: $(CTL_BIN)

$(CTL_O)/%.o: $(CTL_D)/%.c
	@mkdir -p $(@D)
	$(CC) $(CTL_CPPFLAGS) $(CPPFLAGS) $(CTL_CFLAGS) -MMD -MP -c -o $@ $<

$(CTL_BIN): $(CTL_O)/main.o $(CTL_OBJ) $(CTL_LIB)
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(LDFLAGS) -o $@ $^ $(CTL_LIBS)

# systemd's programs look below /usr/local/lib too. The group has to exist
# before the rule can use it: systemd-sysusers, then udevadm control --reload.
install-fabrexctl: fabrexctl
	install -D -m 755 $(CTL_BIN) $(DESTDIR)$(SBINDIR)/fabrexctl
	install -d $(DESTDIR)$(MANDIR)/man8 $(DESTDIR)$(UNITDIR)
	install -m 644 $(CTL_MAN) $(DESTDIR)$(MANDIR)/man8/
	install -d $(DESTDIR)$(COMPLETIONDIR)
	$(CTL_BIN) completion bash > $(DESTDIR)$(COMPLETIONDIR)/fabrexctl
	install -D -m 644 dist/70-fabrex.rules \
		$(DESTDIR)$(UDEVDIR)/rules.d/70-fabrex.rules
	install -D -m 644 dist/fabrex.conf $(DESTDIR)$(SYSUSERSDIR)/fabrex.conf
	sed -e 's|@sbindir@|$(SBINDIR)|' dist/fabrex-agent.service.in \
		> $(DESTDIR)$(UNITDIR)/fabrex-agent.service

CTL_T := $(CTL_O)/tests
CTL_TEST_LIB := $(CTL_T)/fake.o $(CTL_T)/fabric.o $(CTL_T)/run_line.o \
	$(CTL_T)/machine.o $(CTL_T)/look.o $(CTL_T)/executor.o
CTL_TEST_SRC := $(wildcard $(CTL_D)/tests/test_*.c)
CTL_TESTS := $(CTL_TEST_SRC:$(CTL_D)/tests/%.c=$(CTL_T)/%)

# The machine made of files that libfabrex is tested with.
$(CTL_T)/machine.o: lib/tests/machine.c
	@mkdir -p $(@D)
	$(CC) $(CTL_CPPFLAGS) $(CPPFLAGS) $(CTL_CFLAGS) -MMD -MP -c -o $@ $<

$(CTL_T)/test_%: $(CTL_T)/test_%.o $(CTL_TEST_LIB) $(CTL_OBJ) $(CTL_LIB)
	$(CC) $(CTL_CFLAGS) $(LDFLAGS) -o $@ $^ $(CTL_LIBS)

$(CTL_T)/fabrexctl-fake: $(CTL_T)/fake_main.o $(CTL_TEST_LIB) $(CTL_OBJ) \
		$(CTL_LIB)
	$(CC) $(CTL_CFLAGS) $(LDFLAGS) -o $@ $^ $(CTL_LIBS)

# The planner's public header is enough: the tool is linked with the shared
# library as well, which has no other symbols.
$(CTL_T)/fabrexctl-shared: $(CTL_O)/main.o $(CTL_OBJ) $(CTL_LIB) $(PLAN_SO)
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(LDFLAGS) -o $@ $(CTL_O)/main.o $(CTL_OBJ) \
		$(BUILD)/lib/libfabrex.a $(BUILD)/lib/libtopology.a \
		-L$(BUILD)/lib -lfabrex-plan $(CTL_LIBS)

check-fabrexctl: $(CTL_TESTS) $(CTL_T)/fabrexctl-fake $(CTL_T)/fabrexctl-shared
	@! grep -rn '#include "plan/' $(CTL_D) || \
		{ echo "use <fabrex/plan.h> instead" >&2; exit 1; }
	@sh $(CTL_D)/tests/run.sh $(CTL_T)

-include $(wildcard $(CTL_O)/*.d $(CTL_T)/*.d)
