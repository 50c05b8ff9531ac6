# SPDX-License-Identifier: GPL-2.0-only
# What make bench-lab runs inside guests beside the tools of others. Needs no
# harness, so that the demo root can build it. Included by ../module.mk.

BENCH_BINS := $(ST_OUT)/bench-pingpong $(ST_OUT)/bench-mpi
BENCH_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Iinclude -Iinclude/uapi \
	-MMD -MP

.PHONY: bench-programs
bench-programs: $(BENCH_BINS)
selftests: $(BENCH_BINS)

$(ST_OUT)/bench-pingpong: selftests/bench/pingpong.c | lib
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -MF $@.d -o $@ $< build/lib/libfabrex.a -pthread

$(ST_OUT)/bench-mpi: selftests/bench/mpi.c
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -MF $@.d -o $@ $<
