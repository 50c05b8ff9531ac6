# SPDX-License-Identifier: GPL-2.0-only
# Tests of the driver's pure parts, in user space, and of its layers by what files
# include; the lab has the calls compared after it has built the modules. Included by the top Makefile;
# by itself: make -f driver/tests/module.mk check-tests
.DEFAULT_GOAL := tests

DT := driver/tests
DT_OUT := $(or $(BUILD),build)/tests/driver
DT_CFLAGS := -std=gnu11 -O1 -g -Wall -Wextra -Werror -fsanitize=address,undefined \
	-fno-sanitize-recover=all -MMD -MP -I $(DT)/shim -I include \
	-I include/uapi -I driver/core
DT_BIN := $(patsubst $(DT)/%_test.c,$(DT_OUT)/%_test,$(wildcard $(DT)/*_test.c))

.PHONY: tests check-tests install-tests
tests: $(DT_BIN)

# What each test needs of the driver.
$(DT_OUT)/draco_decode_test: $(DT_OUT)/obj/draco/decode.o
$(DT_OUT)/core_layout_test: $(DT_OUT)/obj/core/layout.o
$(DT_OUT)/core_ops_test: $(DT_OUT)/obj/core/ops.o

$(DT_OUT)/obj/%.o: driver/%.c
	@mkdir -p $(@D)
	$(CC) $(DT_CFLAGS) $(CFLAGS) -c -o $@ $<

.SECONDARY: $(DT_OUT)/obj/tests/tap.o \
	$(patsubst $(DT_OUT)/%,$(DT_OUT)/obj/tests/%.o,$(DT_BIN))
$(DT_OUT)/%_test: $(DT_OUT)/obj/tests/%_test.o $(DT_OUT)/obj/tests/tap.o
	$(CC) $(DT_CFLAGS) $(CFLAGS) -o $@ $^

check-tests: $(DT_BIN)
	tools/check/circles --strata driver/core/strata driver - core
	tools/check/circles --strata driver/draco/strata driver - draco
	@for t in $^; do echo "# $$t"; timeout 1200 $$t || exit 1; done

install-tests:

-include $(wildcard $(DT_OUT)/obj/*/*.d)
