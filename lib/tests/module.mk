# SPDX-License-Identifier: LGPL-2.1-or-later
# Host-side tests of libfabrex; no module and no hardware. Included by
# lib/module.mk. check-lib runs them all.

include selftests/runtime/build.mk
include lib/tests/fuzz/build.mk

LIB_TEST_O := $(BUILD)/lib/tests
LIB_FAKE_SRC := lib/tests/fake.c lib/tests/fakedev.c
LIB_TEST_SRC := $(filter-out lib/tests/bench%.c lib/tests/example.c \
	lib/tests/default.c, \
	$(wildcard lib/tests/*.c))
LIB_TEST_OBJ := $(LIB_TEST_SRC:lib/%.c=$(BUILD)/lib/%.o)
LIB_FAKE_OBJ := $(LIB_FAKE_SRC:lib/%.c=$(BUILD)/lib/%.o)
LIB_TEST_CPPFLAGS := $(LIB_CPPFLAGS) -Ilib/tests -Iselftests/runtime
# Found as the real ones are, which they hide.
LIB_TEST_ENV := FABREX_TEST_RUNTIME=$(RT_OUT) \
	LD_LIBRARY_PATH=$(RT_OUT)$(if $(LD_LIBRARY_PATH),:$(LD_LIBRARY_PATH))
LIB_PAGES := $(wildcard lib/man/*.[37])
# Those with a GPU are built where its run time is: HIP from its package, CUDA
# from a toolkit (CUDA_INCLUDE) or with the header of the test run time.
LIB_HIP := $(wildcard /usr/include/hip/hip_runtime_api.h)
LIB_PROGRAMS := $(filter-out $(if $(LIB_HIP),,%/hip_write), \
	$(patsubst %.c,$(BUILD)/%,$(wildcard examples/*.c)))
LIB_EXAMPLES := $(patsubst lib/man/%,$(LIB_TEST_O)/man-%,$(LIB_PAGES))

$(BUILD)/lib/tests/%.o: lib/tests/%.c
	@mkdir -p $(@D)
	$(CC) $(LIB_TEST_CPPFLAGS) $(CPPFLAGS) $(LIB_CFLAGS) -MMD -MP -c -o $@ $<

$(LIB_TEST_O)/unit: $(LIB_TEST_OBJ) $(LIB_A)
	$(CC) $(LIB_CFLAGS) $(LDFLAGS) -o $@ $(LIB_TEST_OBJ) $(LIB_A)

# Collectives between real processes, over loopback.
LIB_COLL_OBJ := $(patsubst lib/%.c,$(BUILD)/lib/%.o, \
	$(wildcard lib/tests/collectives/*.c))
$(LIB_TEST_O)/collectives/all: $(LIB_COLL_OBJ) $(LIB_TEST_O)/main.o $(LIB_A)
	$(CC) $(LIB_CFLAGS) $(LDFLAGS) -o $@ $^

$(LIB_TEST_O)/default: %: %.o $(LIB_A)
	$(CC) $(LIB_CFLAGS) $(LDFLAGS) -o $@ $^

$(LIB_TEST_O)/bench $(LIB_TEST_O)/bench_memory $(LIB_TEST_O)/bench_reduce: \
		%: %.o $(LIB_FAKE_OBJ) $(LIB_A)
	$(CC) $(LIB_CFLAGS) $(LDFLAGS) -o $@ $^

# The program under EXAMPLES in a page, with main() renamed.
$(LIB_TEST_O)/man-%.c: lib/man/% lib/tests/extract.awk
	@mkdir -p $(@D)
	awk -f lib/tests/extract.awk $< > $@.tmp
	mv $@.tmp $@

$(LIB_TEST_O)/man-%: $(LIB_TEST_O)/man-%.c $(BUILD)/lib/tests/example.o \
		$(LIB_FAKE_OBJ) $(LIB_A)
	$(CC) $(LIB_CPPFLAGS) -std=gnu11 $(LIB_WARN) -Wno-missing-prototypes \
		-Werror $(CFLAGS) -Dmain=example_main -c -o $@.o $<
	$(CC) $(LIB_CFLAGS) $(LDFLAGS) -o $@ $@.o \
		$(BUILD)/lib/tests/example.o $(LIB_FAKE_OBJ) $(LIB_A)

# What we declare of vendors' run times, against their headers where they are.
LIB_VENDORS := $(if $(wildcard /usr/include/hsa/hsa_ext_amd.h),hsa) \
	$(if $(wildcard /usr/include/hip/hip_runtime_api.h),hip hip_device) \
	$(if $(CUDA_INCLUDE),cuda cuda_device)
$(LIB_TEST_O)/vendor/%.o: lib/tests/vendor/%.c $(wildcard lib/memory/*.h \
		lib/coll/device/*.h)
	@mkdir -p $(@D)
	$(CC) $(LIB_CPPFLAGS) $(if $(CUDA_INCLUDE),-isystem $(CUDA_INCLUDE)) \
		-idirafter selftests/runtime \
		-std=gnu11 -Wall -Wextra -Werror $(CFLAGS) -c -o $@ $<

# And with the run times that are here, without any test run time.
$(LIB_TEST_O)/real: lib/tests/vendor/real.c $(LIB_FAKE_OBJ) $(LIB_A)
	$(CC) $(LIB_CPPFLAGS) $(LIB_CFLAGS) $(LDFLAGS) -o $@ $^

# And with their run-time compilers. CUDA_LIB: where NVRTC is, if the dynamic
# linker does not know.
CUDA_LIB ?= $(firstword $(wildcard $(addprefix /usr/local/cuda/,lib64 lib)))
$(LIB_TEST_O)/compile: lib/tests/vendor/compile.c $(LIB_A)
	$(CC) $(LIB_CPPFLAGS) $(LIB_CFLAGS) $(LDFLAGS) -o $@ $^

# With the NVIDIA GPU of this machine.
$(LIB_TEST_O)/busy: lib/tests/vendor/busy.c $(LIB_A)
	$(CC) $(LIB_CPPFLAGS) -Iselftests/runtime $(LIB_CFLAGS) $(LDFLAGS) -o $@ $^

.PHONY: check-cuda
check-cuda: $(LIB_TEST_O)/unit $(LIB_TEST_O)/collectives/all \
		$(LIB_TEST_O)/busy $(BUILD)/examples/cuda_write perf
	CUDA_LIB=$(CUDA_LIB) lib/tests/check-cuda $(BUILD)

.PHONY: check-lib bench-lib
.PRECIOUS: $(LIB_TEST_O)/man-%.c
check-lib: lib $(LIB_TEST_O)/unit $(LIB_TEST_O)/bench $(LIB_TEST_O)/collectives/all $(LIB_EXAMPLES) $(LIB_PROGRAMS) $(RT_LIBS) \
		$(LIB_TEST_O)/default $(LIB_TEST_O)/real $(LIB_TEST_O)/compile \
		$(LIB_VENDORS:%=$(LIB_TEST_O)/vendor/%.o)
	$(LIB_TEST_ENV) $(LIB_TEST_O)/unit
	out=$$($(LIB_TEST_O)/default) || { echo "$$out" >&2; exit 1; }; \
		echo "$$out" | sed 's/^/#   /'
	$(LIB_TEST_ENV) $(LIB_TEST_O)/collectives/all
	lib/tests/run-ranks 3 $(BUILD)/examples/all_reduce 100001
	FABREX_PORT=loopback:first-$$$$ $(BUILD)/examples/first_write
	$(if $(findstring sanitize,$(CFLAGS)),,lib/tests/bench-instructions $(LIB_TEST_O)/bench)
	@echo "# vendors' headers compared:$(LIB_VENDORS:%= %)"
	out=$$($(LIB_TEST_O)/real) || { echo "$$out" >&2; exit 1; }; \
		echo "$$out" | sed 's/^/#   /'
	out=$$(LD_LIBRARY_PATH=$(CUDA_LIB)$(if $(LD_LIBRARY_PATH),:$(LD_LIBRARY_PATH)) \
		$(LIB_TEST_O)/compile) || { echo "$$out" >&2; exit 1; }; \
		echo "$$out" | sed 's/^/#   /'
	lib/tests/check-layers lib $(LIB_O)
	CC="$(CC)" lib/tests/check-layers-test
	lib/tests/check-symbols $(LIB_SO) lib/libfabrex.map $(LIB_HEADERS)
	CC="$(CC)" CXX="$(CXX)" lib/tests/check-header coll.h fabrex.h p2p.h
	lib/tests/check-man $(LIB_PAGES)
	CC="$(CC)" tools/check/circles-test
	tools/check/circles --strata lib/coll/strata lib $(LIB_O) \
		schedule coll
	lib/tests/check-docs
	dist/check-version
	for e in $(LIB_EXAMPLES); do \
		echo "# $${e##*/}"; \
		out=$$(FABREX_RANK=0 FABREX_SIZE=1 FABREX_BOOTSTRAP=fabric:1 \
			timeout 600 $$e 2>&1) || { echo "$$out" >&2; exit 1; }; \
		echo "$$out" | sed 's/^/#   /'; \
	done

# Programs to learn from; built so that they stay whole.
$(BUILD)/examples/%: examples/%.c $(LIB_A)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(LIB_WARN) $(CFLAGS) -Iinclude -Iinclude/uapi \
		$(LDFLAGS) -o $@ $< $(LIB_A) -pthread

$(BUILD)/examples/hip_write: examples/hip_write.c $(LIB_A)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(LIB_WARN) $(CFLAGS) -Iinclude -Iinclude/uapi \
		-D__HIP_PLATFORM_AMD__ $(LDFLAGS) -o $@ $< $(LIB_A) \
		-lamdhip64 -pthread

$(BUILD)/examples/cuda_write: examples/cuda_write.c $(LIB_A) $(RT_LIBS)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(LIB_WARN) $(CFLAGS) -Iinclude -Iinclude/uapi \
		-isystem $(or $(CUDA_INCLUDE),selftests/runtime) $(LDFLAGS) \
		-o $@ $< $(LIB_A) -L$(RT_OUT) -l:libcuda.so.1 \
		-Wl,-rpath-link,$(RT_OUT) -pthread

.PHONY: selftests
selftests: $(LIB_PROGRAMS)

# Times, and instructions if valgrind is there.
bench-lib: $(LIB_TEST_O)/bench $(LIB_TEST_O)/bench_memory \
		$(LIB_TEST_O)/bench_reduce $(RT_LIBS)
	$(LIB_TEST_ENV) lib/tests/bench-instructions $(LIB_TEST_O)/bench \
		$(LIB_TEST_O)/bench_memory
	$(LIB_TEST_O)/bench_reduce best

-include $(LIB_TEST_OBJ:.o=.d) $(LIB_COLL_OBJ:.o=.d) \
	$(wildcard $(LIB_TEST_O)/*.d)
