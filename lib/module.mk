# SPDX-License-Identifier: LGPL-2.1-or-later
# libfabrex: included by the Makefile at the top, or make -f lib/module.mk.
# Targets: lib, check-lib, bench-lib, install-lib.

ifndef LIB_MODULE
LIB_MODULE := 1

BUILD ?= build
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
DESTDIR ?=
CFLAGS ?= -O2 -g
CXX ?= g++

LIB_VERSION := $(shell cat VERSION)
LIB_O := $(BUILD)/lib
LIB_SO := $(LIB_O)/libfabrex.so.$(LIB_VERSION)
LIB_A := $(LIB_O)/libfabrex.a

LIB_CPPFLAGS := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
	-Iinclude -Iinclude/uapi -Ilib
LIB_WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wcast-qual -Wwrite-strings -Wvla
LIB_CFLAGS = -std=gnu11 $(LIB_WARN) $(CFLAGS) -fvisibility=hidden -fPIC \
	-fno-semantic-interposition -pthread

LIB_SRC := $(wildcard lib/base/*.c lib/core/*.c \
	lib/transport/*.c lib/transport/ring/*.c \
	lib/transport/loopback/*.c \
	lib/memory/*.c lib/p2p/*.c lib/schedule/*.c lib/coll/*.c \
	lib/coll/*/*.c)
LIB_HEADERS := $(filter-out %/plan.h,$(wildcard include/fabrex/*.h))
LIB_OBJ := $(LIB_SRC:lib/%.c=$(LIB_O)/%.o)
LIB_MAN3 := $(wildcard lib/man/*.3)
LIB_MAN7 := $(wildcard lib/man/*.7)

.PHONY: lib check-lib bench-lib install-lib
lib: $(LIB_SO) $(LIB_A) $(LIB_O)/fabrex.pc

$(LIB_O)/%.o: lib/%.c
	@mkdir -p $(@D)
	$(CC) $(LIB_CPPFLAGS) $(CPPFLAGS) $(LIB_CFLAGS) -MMD -MP -c -o $@ $<

# The same bits from all instructions: products and sums are not fused.
$(LIB_O)/coll/reduce/%.o: LIB_CFLAGS += -ffp-contract=off

$(LIB_SO): $(LIB_OBJ) lib/libfabrex.map
	$(CC) $(LIB_CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libfabrex.so.1 \
		-Wl,--version-script=lib/libfabrex.map -Wl,-z,defs \
		-Wl,-z,relro,-z,now -o $@ $(LIB_OBJ)
	ln -sf libfabrex.so.$(LIB_VERSION) $(LIB_O)/libfabrex.so.1
	ln -sf libfabrex.so.1 $(LIB_O)/libfabrex.so

$(LIB_A): $(LIB_OBJ)
	rm -f $@
	$(AR) rcs $@ $(LIB_OBJ)

# Always made anew: PREFIX may differ from last time's.
.PHONY: $(LIB_O)/fabrex.pc
$(LIB_O)/fabrex.pc: lib/fabrex.pc.in
	@mkdir -p $(@D)
	sed -e 's|@prefix@|$(PREFIX)|' -e 's|@libdir@|$(LIBDIR)|' \
		-e 's|@includedir@|$(INCLUDEDIR)|' \
		-e 's|@version@|$(LIB_VERSION)|' $< > $@

# A page for each other function that one of these pages names.
man-links = for f in $(1); do \
		for n in $$(sed -n '/^\.SH NAME/{n;s/ \\-.*//;s/,//g;p;}' $$f); do \
			[ $$n.3 = $${f\#\#*/} ] || echo ".so man3/$${f\#\#*/}" \
				> $(DESTDIR)$(MANDIR)/man3/$$n.3; \
		done; \
	done

install-lib: lib
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR)/fabrex \
		$(DESTDIR)$(INCLUDEDIR)/linux \
		$(DESTDIR)$(MANDIR)/man3 $(DESTDIR)$(MANDIR)/man7
	install -m 755 $(LIB_SO) $(DESTDIR)$(LIBDIR)/
	ln -sf libfabrex.so.$(LIB_VERSION) $(DESTDIR)$(LIBDIR)/libfabrex.so.1
	ln -sf libfabrex.so.1 $(DESTDIR)$(LIBDIR)/libfabrex.so
	install -m 644 $(LIB_A) $(DESTDIR)$(LIBDIR)/
	install -m 644 $(LIB_O)/fabrex.pc $(DESTDIR)$(LIBDIR)/pkgconfig/
	install -m 644 $(LIB_HEADERS) $(DESTDIR)$(INCLUDEDIR)/fabrex/
	install -m 644 include/uapi/linux/fabrex_ring.h \
		$(DESTDIR)$(INCLUDEDIR)/linux/
	install -m 644 $(LIB_MAN3) $(DESTDIR)$(MANDIR)/man3/
	install -m 644 $(LIB_MAN7) $(DESTDIR)$(MANDIR)/man7/
	$(call man-links,$(LIB_MAN3))

-include $(LIB_OBJ:.o=.d)
-include lib/tests/module.mk

endif
