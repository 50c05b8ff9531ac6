# SPDX-License-Identifier: GPL-2.0-only
# draco-emu: the emulator, its tests and fuzzers. Included by the top Makefile;
# by itself: make -f tools/draco-emu/module.mk draco-emu
.DEFAULT_GOAL := draco-emu

EMU := tools/draco-emu
EMU_OUT := $(or $(BUILD),build)
EMU_OBJ := $(EMU_OUT)/obj/draco-emu
EMU_BIN := $(EMU_OUT)/bin/draco-emu
PREFIX ?= /usr/local

# Tests and draco-emu-asan: the same with sanitizers.
EMU_SAN := -fsanitize=address,undefined -fno-sanitize-recover=all
EMU_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -pthread -MMD -MP \
	-I include -I include/uapi -I $(EMU) -I lib
EMU_LIBS := $(shell pkg-config --libs json-c libconfig) -pthread -lm

EMU_SRC := $(wildcard $(EMU)/*.c)
EMU_LIB := $(filter-out main.c,$(notdir $(EMU_SRC))) base/crc32c.c
EMU_TOPO := $(notdir $(wildcard lib/topology/*.c))
EMU_TESTS := $(patsubst %.c,%,$(notdir $(wildcard $(EMU)/tests/*_test.c)))
EMU_TEST_LIB := $(filter-out %_test.c,$(notdir $(wildcard $(EMU)/tests/*.c)))
EMU_FUZZ := $(patsubst %.c,%,$(notdir $(wildcard $(EMU)/fuzz/*_fuzz.c)))
FUZZ_SECONDS ?= 20

.PHONY: draco-emu draco-emu-asan check-draco-emu install-draco-emu fuzz-draco-emu
draco-emu: $(EMU_BIN)

$(EMU_OBJ)/%.o: $(EMU)/%.c
	@mkdir -p $(@D)
	$(CC) $(EMU_CFLAGS) $(CFLAGS) -c -o $@ $<

# CRC32C and the topology reader, built along with each variant.
$(EMU_OBJ)/base/%.o: lib/base/%.c
	@mkdir -p $(@D)
	$(CC) $(EMU_CFLAGS) $(CFLAGS) -c -o $@ $<

$(EMU_OBJ)/topology/%.o: lib/topology/%.c
	@mkdir -p $(@D)
	$(CC) $(EMU_CFLAGS) $(CFLAGS) -c -o $@ $<

# An archive, so that a test takes only what it calls.
$(EMU_OBJ)/libemu.a: $(EMU_LIB:%.c=$(EMU_OBJ)/%.o) \
		$(EMU_TOPO:%.c=$(EMU_OBJ)/topology/%.o)
	@rm -f $@
	$(AR) rcs $@ $^

$(EMU_BIN): $(EMU_OBJ)/main.o $(EMU_OBJ)/libemu.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(EMU_LIBS)

$(EMU_OBJ)/asan/%.o: $(EMU)/%.c
	@mkdir -p $(@D)
	$(CC) $(EMU_CFLAGS) $(EMU_SAN) -c -o $@ $<

$(EMU_OBJ)/asan/base/%.o: lib/base/%.c
	@mkdir -p $(@D)
	$(CC) $(EMU_CFLAGS) $(EMU_SAN) -c -o $@ $<

$(EMU_OBJ)/asan/topology/%.o: lib/topology/%.c
	@mkdir -p $(@D)
	$(CC) $(EMU_CFLAGS) $(EMU_SAN) -c -o $@ $<

$(EMU_OBJ)/asan/libemu.a: $(EMU_LIB:%.c=$(EMU_OBJ)/asan/%.o) \
		$(EMU_TOPO:%.c=$(EMU_OBJ)/asan/topology/%.o) \
		$(EMU_TEST_LIB:%.c=$(EMU_OBJ)/asan/tests/%.o)
	@rm -f $@
	$(AR) rcs $@ $^

draco-emu-asan: $(EMU_OUT)/tests/draco-emu-asan
$(EMU_OUT)/tests/draco-emu-asan: $(EMU_OBJ)/asan/main.o $(EMU_OBJ)/asan/libemu.a
	@mkdir -p $(@D)
	$(CC) $(EMU_SAN) -o $@ $^ $(EMU_LIBS)

# Model tests have no transport: what stands in for it is linked first.
EMU_RIG := $(patsubst %.c,%.o,$(notdir $(wildcard $(EMU)/tests/rig/*.c)))
$(EMU_OUT)/tests/draco-emu/model_%: $(EMU_OBJ)/asan/tests/model_%.o \
		$(EMU_RIG:%=$(EMU_OBJ)/asan/tests/rig/%) \
		$(EMU_OBJ)/asan/libemu.a
	@mkdir -p $(@D)
	$(CC) $(EMU_SAN) -o $@ $^ $(EMU_LIBS)

$(EMU_OUT)/tests/draco-emu/%: $(EMU_OBJ)/asan/tests/%.o $(EMU_OBJ)/asan/libemu.a
	@mkdir -p $(@D)
	$(CC) $(EMU_SAN) -o $@ $^ $(EMU_LIBS)

check-draco-emu: $(EMU_TESTS:%=$(EMU_OUT)/tests/draco-emu/%)
	@for t in $^; do echo "# $$t"; timeout 1200 $$t 2>$$t.log || \
		{ tail -n 50 $$t.log; exit 1; }; done

# Fuzzers need clang with its run-time libraries.
EMU_FUZZ_FLAGS := -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=all
$(EMU_OBJ)/fuzz/%.o: $(EMU)/%.c
	@mkdir -p $(@D)
	clang $(EMU_CFLAGS) $(EMU_FUZZ_FLAGS) -c -o $@ $<

$(EMU_OBJ)/fuzz/base/%.o: lib/base/%.c
	@mkdir -p $(@D)
	clang $(EMU_CFLAGS) $(EMU_FUZZ_FLAGS) -c -o $@ $<

$(EMU_OBJ)/fuzz/topology/%.o: lib/topology/%.c
	@mkdir -p $(@D)
	clang $(EMU_CFLAGS) $(EMU_FUZZ_FLAGS) -c -o $@ $<

$(EMU_OBJ)/fuzz/libemu.a: $(EMU_LIB:%.c=$(EMU_OBJ)/fuzz/%.o) \
		$(EMU_TOPO:%.c=$(EMU_OBJ)/fuzz/topology/%.o) \
		$(EMU_TEST_LIB:%.c=$(EMU_OBJ)/fuzz/tests/%.o)
	@rm -f $@
	$(AR) rcs $@ $^

$(EMU_OUT)/fuzz/draco-emu/descriptor_fuzz \
$(EMU_OUT)/fuzz/draco-emu/admin_fuzz: $(EMU_OUT)/fuzz/draco-emu/%: \
		$(EMU_OBJ)/fuzz/fuzz/%.o \
		$(EMU_RIG:%=$(EMU_OBJ)/fuzz/tests/rig/%) \
		$(EMU_OBJ)/fuzz/libemu.a
	@mkdir -p $(@D)
	clang -fsanitize=fuzzer,address,undefined -o $@ $^ $(EMU_LIBS)

$(EMU_OUT)/fuzz/draco-emu/%: $(EMU_OBJ)/fuzz/fuzz/%.o $(EMU_OBJ)/fuzz/libemu.a
	@mkdir -p $(@D)
	clang -fsanitize=fuzzer,address,undefined -o $@ $^ $(EMU_LIBS)

fuzz-draco-emu: $(EMU_FUZZ:%=$(EMU_OUT)/fuzz/draco-emu/%)
	@for f in $^; do \
		c=$(EMU_OUT)/fuzz/corpus/$$(basename $$f); mkdir -p $$c; \
		echo "# $$f, $(FUZZ_SECONDS) s"; \
		$$f -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
			-close_fd_mask=2 -artifact_prefix=$$c/../ $$c \
			2>$$c.log || { tail -50 $$c.log; exit 1; }; \
		grep -E 'executed_units|new_units' $$c.log; \
	done

install-draco-emu: $(EMU_BIN)
	install -D -m 755 $(EMU_BIN) $(DESTDIR)$(PREFIX)/bin/draco-emu
	install -D -m 644 $(EMU)/man/draco-emu.8 \
		$(DESTDIR)$(PREFIX)/share/man/man8/draco-emu.8

.SECONDARY:
-include $(wildcard $(foreach d,* */* */*/* */*/*/*,$(EMU_OBJ)/$d.d))
