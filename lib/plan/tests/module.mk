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
PLAN_TOPO_SRC := $(wildcard lib/topology/*.c)
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
		$(PLAN_O)/fast/$(PLAN_T)/%.o $(PLAN_FAST_A) $(PLAN_A) \
		$(BUILD)/lib/libtopology.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(PLAN_LIBS)

# Plans executed by libfabrex.
$(PLAN_O)/fast/$(PLAN_T)/large_execute.o: \
	PLAN_TEST_CPPFLAGS += -Iinclude -Iinclude/uapi
$(PLAN_O)/tests/large_execute: $(BUILD)/lib/libfabrex.a

check-plan: $(PLAN_TESTS) $(PLAN_LARGE)
	@status=0; for t in $^; do \
		echo "# $${t##*/}"; $$t || status=1; \
	done; exit $$status

bench-plan: $(PLAN_BENCH)
	@for t in $^; do $$t || exit 1; done

-include $(wildcard $(PLAN_O)/san/*/*/*.d $(PLAN_O)/san/*/*/*/*.d \
	$(PLAN_O)/fast/*/*/*/*.d)
include $(PLAN_T)/fuzz/build.mk
