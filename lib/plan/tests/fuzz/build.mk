# SPDX-License-Identifier: LGPL-2.1-or-later
# Fuzzers of the files that the planner reads; clang with its run-time
# libraries. Included by lib/plan/tests/module.mk. Target: fuzz-plan.

PLAN_FUZZ_O := $(PLAN_O)/fuzz
PLAN_FUZZ := $(patsubst %.c,%,$(notdir $(wildcard $(PLAN_T)/fuzz/*_fuzz.c)))
PLAN_FUZZ_OBJ := $(patsubst %.c,$(PLAN_FUZZ_O)/%.o,$(PLAN_SRC) \
	$(PLAN_TOPO_SRC) $(PLAN_T)/same.c)
PLAN_FUZZ_FLAGS := -std=gnu11 -g -O1 -Wall -Wextra -MMD -MP \
	-fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_SECONDS ?= 20
# 0: another one each time
FUZZ_SEED ?= 0

$(PLAN_FUZZ_O)/%.o: %.c
	@mkdir -p $(@D)
	clang $(PLAN_TEST_CPPFLAGS) $(PLAN_FUZZ_FLAGS) \
		-fsanitize=fuzzer-no-link -c -o $@ $<

$(PLAN_FUZZ_O)/%_fuzz: $(PLAN_FUZZ_O)/$(PLAN_T)/fuzz/%_fuzz.o $(PLAN_FUZZ_OBJ)
	clang -fsanitize=fuzzer,address,undefined -o $@ $^ $(PLAN_LIBS)

.PHONY: fuzz-plan
.PRECIOUS: $(PLAN_FUZZ_O)/$(PLAN_T)/fuzz/%.o
fuzz-plan: $(PLAN_FUZZ:%=$(PLAN_FUZZ_O)/%)
	@for f in $^; do \
		c=$(BUILD)/fuzz/corpus/plan_$${f##*/}; mkdir -p $$c; \
		echo "# $$f, $(FUZZ_SECONDS) s"; \
		$$f -seed=$(FUZZ_SEED) \
			-max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
			-max_len=8192 -artifact_prefix=$$c/../ \
			-dict=$(PLAN_T)/fuzz/$${f##*/}.dict $$c \
			topologies topologies/graphs $(PLAN_T)/data \
			2>$$c.log || { tail -50 $$c.log; exit 1; }; \
		grep -E 'executed_units|new_units' $$c.log; \
	done

-include $(PLAN_FUZZ_OBJ:.o=.d)
