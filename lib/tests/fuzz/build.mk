# SPDX-License-Identifier: LGPL-2.1-or-later
# Fuzzers of what libfabrex reads; clang with its run-time libraries. Included
# by lib/tests/module.mk. Target: fuzz-lib.

LIB_FUZZ_O := $(BUILD)/lib/fuzz
LIB_FUZZ := $(patsubst %.c,%,$(notdir $(wildcard lib/tests/fuzz/*_fuzz.c)))
LIB_FUZZ_SRC := lib/base/error.c lib/tests/interpret.c \
	$(wildcard lib/schedule/*.c)
LIB_FUZZ_OBJ := $(LIB_FUZZ_SRC:lib/%.c=$(LIB_FUZZ_O)/%.o)
LIB_FUZZ_FLAGS := -std=gnu11 -g -O1 -Wall -Wextra -MMD -MP \
	-fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_SECONDS ?= 20

$(LIB_FUZZ_O)/%.o: lib/%.c
	@mkdir -p $(@D)
	clang $(LIB_CPPFLAGS) -Ilib/tests $(LIB_FUZZ_FLAGS) \
		-fsanitize=fuzzer-no-link -c -o $@ $<

$(LIB_FUZZ_O)/%_fuzz: $(LIB_FUZZ_O)/tests/fuzz/%_fuzz.o $(LIB_FUZZ_OBJ)
	clang -fsanitize=fuzzer,address,undefined -o $@ $^ -pthread

.PHONY: fuzz-lib
.PRECIOUS: $(LIB_FUZZ_O)/tests/fuzz/%.o
fuzz-lib: $(LIB_FUZZ:%=$(LIB_FUZZ_O)/%)
	@for f in $^; do \
		c=$(BUILD)/fuzz/corpus/$${f##*/}; mkdir -p $$c; \
		echo "# $$f, $(FUZZ_SECONDS) s"; \
		$$f -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
			-max_len=4096 -artifact_prefix=$$c/../ $$c \
			lib/tests/data/schedules topologies/schedules \
			2>$$c.log || { tail -50 $$c.log; exit 1; }; \
		grep -E 'executed_units|new_units' $$c.log; \
	done

-include $(LIB_FUZZ_OBJ:.o=.d)
