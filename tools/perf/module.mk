# SPDX-License-Identifier: GPL-2.0-only
# fabrex-perf: benchmarks over libfabrex. Targets: perf, check-perf, bench,
# install-perf. Included by the Makefile at the top.

include lib/module.mk

BINDIR ?= $(PREFIX)/bin
PERF_O := $(BUILD)/perf
PERF_SRC := $(wildcard tools/perf/*.c tools/perf/compare/*.c \
	tools/perf/coll/*.c)
PERF_OBJ := $(PERF_SRC:tools/perf/%.c=$(PERF_O)/%.o)
PERF_CFLAGS = -std=gnu11 $(LIB_WARN) $(CFLAGS) -pthread
# What compare runs under mpirun, where an MPI to build with is installed.
PERF_MPI := $(if $(shell command -v mpicc > /dev/null && \
	mpicc -E -x c -include mpi.h /dev/null 2> /dev/null | head -c 1), \
	$(BUILD)/bin/fabrex-perf-mpi)

.PHONY: perf check-perf install-perf
perf: $(BUILD)/bin/fabrex-perf $(PERF_MPI)

$(PERF_O)/%.o: tools/perf/%.c
	@mkdir -p $(@D)
	$(CC) $(LIB_CPPFLAGS) $(CPPFLAGS) $(PERF_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/bin/fabrex-perf: $(PERF_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(CC) $(PERF_CFLAGS) $(LDFLAGS) -o $@ $(PERF_OBJ) $(LIB_A) -lm

$(BUILD)/bin/fabrex-perf-mpi: tools/perf/peers/mpi.c tools/perf/peers/protocol.h
	@mkdir -p $(@D)
	mpicc -std=gnu11 -Wall -Wextra $(CFLAGS) -o $@ $<

# Server and client in one process on the fake fabric of the library's tests.
$(PERF_O)/tests/run: tools/perf/tests/run.c $(PERF_OBJ) $(LIB_FAKE_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	objcopy --redefine-sym main=perf_main $(PERF_O)/main.o $(PERF_O)/tests/main.o
	$(CC) $(LIB_TEST_CPPFLAGS) $(PERF_CFLAGS) $(LDFLAGS) -o $@ $< \
		$(PERF_O)/tests/main.o $(PERF_PARTS) $(LIB_FAKE_OBJ) $(LIB_A) -lm

PERF_PARTS := $(filter-out $(PERF_O)/main.o,$(PERF_OBJ))
$(PERF_O)/tests/unit: tools/perf/tests/unit.c $(PERF_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	objcopy --redefine-sym main=perf_main $(PERF_O)/main.o $(PERF_O)/tests/main.o
	$(CC) $(LIB_CPPFLAGS) $(PERF_CFLAGS) $(LDFLAGS) \
		-o $@ $< $(PERF_O)/tests/main.o $(PERF_PARTS) $(LIB_A) -lm

# With results that become wrong when a test says so.
PERF_WRAP := -Wl,--wrap=fabrex_all_reduce -Wl,--wrap=fabrex_all_gather
$(PERF_O)/tests/fabrex-perf: tools/perf/tests/fault.c $(PERF_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(CC) -Iinclude -Iinclude/uapi $(PERF_CFLAGS) $(LDFLAGS) $(PERF_WRAP) \
		-o $@ $< $(PERF_OBJ) $(LIB_A) -lm

check-perf: perf $(PERF_O)/tests/run $(PERF_O)/tests/unit \
		$(PERF_O)/tests/fabrex-perf $(RT_LIBS)
	$(LIB_TEST_ENV) $(PERF_O)/tests/run
	$(PERF_O)/tests/unit
	$(LIB_TEST_ENV) python3 tools/perf/tests/commands.py $(BUILD)/bin/fabrex-perf \
		$(PERF_O)/tests/fabrex-perf tools/perf/fabrex-perf.1
	lib/tests/check-man --page tools/perf/fabrex-perf.1

# All of docs/benchmarks.md that one machine can show.
.PHONY: bench
bench: perf $(LIB_TEST_O)/bench $(RT_LIBS)
	$(LIB_TEST_ENV) tools/perf/bench $(BUILD)/bin/fabrex-perf \
		$(BUILD)/bench "$(if $(KEEP),docs/benchmarks.md)" \
		lib/tests/bench-instructions $(LIB_TEST_O)/bench

install-perf: perf
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(MANDIR)/man1
	install -m 755 $(BUILD)/bin/fabrex-perf $(PERF_MPI) $(DESTDIR)$(BINDIR)/
	install -m 644 tools/perf/fabrex-perf.1 $(DESTDIR)$(MANDIR)/man1/

-include $(PERF_OBJ:.o=.d)
