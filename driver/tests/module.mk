# SPDX-License-Identifier: GPL-2.0-only
# Tests of the driver's pure parts, in user space. Included by the top Makefile;
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
$(DT_OUT)/draco_decode_test: driver/draco/decode.c
$(DT_OUT)/core_layout_test: driver/core/layout.c
$(DT_OUT)/core_ops_test: driver/core/ops.c

$(DT_OUT)/%_test: $(DT)/%_test.c $(DT)/tap.c
	@mkdir -p $(@D)
	$(CC) $(DT_CFLAGS) $(CFLAGS) -o $@ $(filter %.c,$^)

check-tests: $(DT_BIN)
	@for t in $^; do echo "# $$t"; timeout 1200 $$t || exit 1; done

install-tests:

-include $(wildcard $(DT_OUT)/*.d)
