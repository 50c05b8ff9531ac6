# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests of the planner: each test_*.c a program, with sanitizers; large_*.c and
# bench_*.c without. Helpers that several share are all other *.c here.
# Included by lib/plan/module.mk.

PLAN_T := lib/plan/tests
PLAN_TEST_SRC := $(wildcard $(PLAN_T)/test_*.c)
PLAN_LARGE_SRC := $(wildcard $(PLAN_T)/large_*.c)
PLAN_BENCH_SRC := $(wildcard $(PLAN_T)/bench_*.c)
PLAN_SHARED_SRC := $(filter-out $(PLAN_TEST_SRC) $(PLAN_LARGE_SRC) \
	$(PLAN_BENCH_SRC),$(wildcard $(PLAN_T)/*.c))
PLAN_SAN := -fsanitize=address,undefined -fno-sanitize-recover=all
PLAN_TEST_CPPFLAGS := $(PLAN_CPPFLAGS) -I$(PLAN_T)

# Everything of the planner once more, with sanitizers.
PLAN_SAN_OBJ := $(patsubst %.c,$(PLAN_O)/san/%.o,$(PLAN_SRC) \
	$(PLAN_SHARED_SRC) $(PLAN_TOPO_SRC))
PLAN_FAST_OBJ := $(patsubst %.c,$(PLAN_O)/fast/%.o,$(PLAN_SHARED_SRC))

$(PLAN_O)/san/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(PLAN_TEST_CPPFLAGS) $(CPPFLAGS) $(PLAN_CFLAGS) $(PLAN_SAN) \
		-MMD -MP -c -o $@ $<

$(PLAN_O)/fast/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(PLAN_TEST_CPPFLAGS) $(CPPFLAGS) $(PLAN_CFLAGS) -MMD -MP -c \
		-o $@ $<

PLAN_TESTS := $(patsubst $(PLAN_T)/%.c,$(PLAN_O)/tests/%,$(PLAN_TEST_SRC))
PLAN_LARGE := $(patsubst $(PLAN_T)/%.c,$(PLAN_O)/tests/%,$(PLAN_LARGE_SRC))
PLAN_BENCH := $(patsubst $(PLAN_T)/%.c,$(PLAN_O)/tests/%,$(PLAN_BENCH_SRC))

PLAN_SAN_A := $(PLAN_O)/san/libplan.a
PLAN_FAST_A := $(PLAN_O)/fast/libshared.a

$(PLAN_SAN_A): $(PLAN_SAN_OBJ)
$(PLAN_FAST_A): $(PLAN_FAST_OBJ)
$(PLAN_SAN_A) $(PLAN_FAST_A):
	rm -f $@
	$(AR) rcs $@ $^

$(PLAN_TESTS): $(PLAN_O)/tests/%: $(PLAN_O)/san/$(PLAN_T)/%.o $(PLAN_SAN_A)
	@mkdir -p $(@D)
	$(CC) $(PLAN_SAN) $(LDFLAGS) -o $@ $^ $(PLAN_LIBS)

$(PLAN_LARGE) $(PLAN_BENCH): $(PLAN_O)/tests/%: \
		$(PLAN_O)/fast/$(PLAN_T)/%.o $(PLAN_FAST_A) $(PLAN_TEST_A)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(PLAN_LIBS)

# Plans executed by libfabrex.
$(PLAN_O)/fast/$(PLAN_T)/large_execute.o: \
	PLAN_TEST_CPPFLAGS += -Iinclude -Iinclude/uapi
$(PLAN_O)/tests/large_execute: $(BUILD)/lib/libfabrex.a

# The program under EXAMPLES in each page, linked with the shared library: what
# it uses is public. It runs in a directory with the files that it reads.
PLAN_PAGES := $(wildcard lib/plan/man/*.[37])
PLAN_EXAMPLES := $(patsubst lib/plan/man/%,$(PLAN_O)/man/%.example,$(PLAN_PAGES))
.PRECIOUS: $(PLAN_O)/man/%.c
$(PLAN_O)/man/%.c: lib/plan/man/% lib/tests/extract.awk
	@mkdir -p $(@D)
	awk -f lib/tests/extract.awk $< > $@.tmp
	mv $@.tmp $@
$(PLAN_O)/man/%.example: $(PLAN_O)/man/%.c $(PLAN_SO)
	$(CC) -std=c11 -Wall -Wextra -Werror $(CFLAGS) -Iinclude $(LDFLAGS) \
		-o $@ $< -L$(BUILD)/lib -lfabrex-plan

check-plan: $(PLAN_TESTS) $(PLAN_LARGE) $(PLAN_EXAMPLES) plan
	@status=0; for t in $(PLAN_TESTS) $(PLAN_LARGE); do \
		echo "# $${t##*/}"; $$t || status=1; \
	done; exit $$status
	lib/tests/check-symbols $(PLAN_SO) $(PLAN_MAP) include/fabrex/plan.h
	CC="$(CC)" CXX="$(CXX)" lib/tests/check-header plan.h
	lib/tests/check-man --map $(PLAN_MAP) $(PLAN_PAGES)
	lib/plan/tests/check-examples $(BUILD)/lib topologies $(PLAN_EXAMPLES)

bench-plan: $(PLAN_BENCH)
	@for t in $^; do $$t || exit 1; done

-include $(wildcard $(PLAN_O)/san/*/*/*.d $(PLAN_O)/san/*/*/*/*.d \
	$(PLAN_O)/fast/*/*/*/*.d)
include $(PLAN_T)/fuzz/build.mk
