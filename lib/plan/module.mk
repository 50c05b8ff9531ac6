# SPDX-License-Identifier: LGPL-2.1-or-later
# libfabrex-plan, the planner, and its tests. Included by the Makefile at the top,
# after lib/module.mk. Targets: plan, check-plan, bench-plan, install-plan.

BUILD ?= build
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
CFLAGS ?= -O2 -g
OBJCOPY ?= objcopy

PLAN_VERSION := $(LIB_VERSION)
PLAN_O := $(BUILD)/plan
PLAN_A := $(BUILD)/lib/libfabrex-plan.a
# With internal functions, for tests of the planner.
PLAN_TEST_A := $(BUILD)/plan/libplan.a
PLAN_SO := $(BUILD)/lib/libfabrex-plan.so.$(PLAN_VERSION)
PLAN_PC := $(BUILD)/lib/fabrex-plan.pc
PLAN_MAP := lib/plan/libfabrex-plan.map
PLAN_SRC := $(filter-out lib/plan/tests/%, \
	$(wildcard lib/plan/*.c lib/plan/*/*.c))
PLAN_TOPO_SRC := $(wildcard lib/topology/*.c)
PLAN_OBJ := $(PLAN_SRC:lib/plan/%.c=$(PLAN_O)/%.o) \
	$(PLAN_TOPO_SRC:lib/topology/%.c=$(BUILD)/obj/topology/%.o)
PLAN_MAN3 := $(wildcard lib/plan/man/*.3)
PLAN_MAN7 := $(wildcard lib/plan/man/*.7)
PLAN_CPPFLAGS := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude -Ilib
PLAN_CFLAGS = -std=gnu11 -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla \
	-Wno-format-truncation $(CFLAGS) -fvisibility=hidden -fPIC \
	-fno-semantic-interposition
# What a program needs besides libfabrex-plan.a.
PLAN_LIBS := -lconfig -lexpat -lm

.PHONY: plan check-plan bench-plan install-plan
plan: $(PLAN_A) $(PLAN_SO) $(PLAN_PC)

$(PLAN_O)/%.o: lib/plan/%.c
	@mkdir -p $(@D)
	$(CC) $(PLAN_CPPFLAGS) $(CPPFLAGS) $(PLAN_CFLAGS) -MMD -MP -c -o $@ $<

# One object, so that programs see no other names than the public ones.
$(PLAN_O)/libfabrex-plan.o: $(PLAN_OBJ)
	$(CC) $(PLAN_CFLAGS) -r -nostdlib -o $@ $(PLAN_OBJ)
	$(OBJCOPY) --localize-hidden $@

$(PLAN_A): $(PLAN_O)/libfabrex-plan.o
$(PLAN_TEST_A): $(PLAN_OBJ)
$(PLAN_A) $(PLAN_TEST_A):
	@mkdir -p $(@D)
	rm -f $@
	$(AR) rcs $@ $^

$(PLAN_SO): $(PLAN_OBJ) $(PLAN_MAP)
	@mkdir -p $(@D)
	$(CC) $(PLAN_CFLAGS) $(LDFLAGS) -shared \
		-Wl,-soname,libfabrex-plan.so.1 \
		-Wl,--version-script=$(PLAN_MAP) -Wl,-z,defs \
		-Wl,-z,relro,-z,now -o $@ $(PLAN_OBJ) $(PLAN_LIBS)
	ln -sf libfabrex-plan.so.$(PLAN_VERSION) $(@D)/libfabrex-plan.so.1
	ln -sf libfabrex-plan.so.1 $(@D)/libfabrex-plan.so

# Always made anew: PREFIX may differ from last time's.
.PHONY: $(PLAN_PC)
$(PLAN_PC): lib/plan/fabrex-plan.pc.in
	@mkdir -p $(@D)
	sed -e 's|@prefix@|$(PREFIX)|' -e 's|@libdir@|$(LIBDIR)|' \
		-e 's|@includedir@|$(INCLUDEDIR)|' \
		-e 's|@version@|$(PLAN_VERSION)|' $< > $@

install-plan: plan
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR)/fabrex \
		$(DESTDIR)$(MANDIR)/man3 $(DESTDIR)$(MANDIR)/man7
	install -m 755 $(PLAN_SO) $(DESTDIR)$(LIBDIR)/
	ln -sf libfabrex-plan.so.$(PLAN_VERSION) \
		$(DESTDIR)$(LIBDIR)/libfabrex-plan.so.1
	ln -sf libfabrex-plan.so.1 $(DESTDIR)$(LIBDIR)/libfabrex-plan.so
	install -m 644 $(PLAN_A) $(DESTDIR)$(LIBDIR)/
	install -m 644 $(PLAN_PC) $(DESTDIR)$(LIBDIR)/pkgconfig/
	install -m 644 include/fabrex/plan.h $(DESTDIR)$(INCLUDEDIR)/fabrex/
	install -m 644 $(PLAN_MAN7) $(DESTDIR)$(MANDIR)/man7/
	install -m 644 $(PLAN_MAN3) $(DESTDIR)$(MANDIR)/man3/
	$(call man-links,$(PLAN_MAN3))

-include $(PLAN_OBJ:.o=.d)
-include lib/plan/tests/module.mk
