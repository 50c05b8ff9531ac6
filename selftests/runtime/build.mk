# SPDX-License-Identifier: GPL-2.0-only
# Test run times: libhsa-runtime64, libamdhip64 and libcuda over modelled GPUs,
# with the names and symbol versions of the real ones. In old/ without what
# only newer ones have. And libnvrtc and libhiprtc, which compile for the host.
# Included by lib/tests/module.mk and selftests/module.mk.

ifndef RUNTIME_BUILD
RUNTIME_BUILD := 1

BUILD ?= build
RT_OUT := $(BUILD)/selftests/runtime
RT_CFLAGS := -std=gnu11 -Wall -Wextra -O2 -g -fPIC -D_GNU_SOURCE \
	-Iinclude/uapi -Iinclude -Ilib -Iselftests/runtime -pthread
RT_VISIBLE := -fvisibility=hidden
RT_LINK = -shared -Wl,-z,defs -L$(RT_OUT) -Wl,-rpath,'$$ORIGIN' \
	-Wl,-rpath,'$$ORIGIN/..'
RT_HDR := $(wildcard selftests/runtime/*.h selftests/gpu/dgpu.h)
RT_GPU := $(RT_OUT)/libtest-gpu.so
RT_LIBS := $(addprefix $(RT_OUT)/,libhsa-runtime64.so.1 libcuda.so.1 \
	libamdhip64.so.5 six/libamdhip64.so.6 seven/libamdhip64.so.7 \
	old/libhsa-runtime64.so.1 old/libcuda.so.1 old/libamdhip64.so.5 \
	libnvrtc.so.13 libhiprtc.so.7)
RT_HIP_SRC := $(addprefix selftests/runtime/,hip.c hip_virtual.c hip_stream.c)
RT_CUDA_SRC := $(addprefix selftests/runtime/,cuda.c cuda_stream.c cuda_capture.c)

.PHONY: runtime
runtime: $(RT_LIBS)

$(RT_GPU): $(addprefix selftests/runtime/,gpu.c store.c stream.c module.c) \
		$(RT_HDR)
	@mkdir -p $(@D)
	$(CC) $(RT_CFLAGS) -shared -Wl,-soname,libtest-gpu.so -o $@ \
		$(filter %.c,$^)

# $(call RT_RULE,file,sources,flags,version script)
define RT_RULE
$(RT_OUT)/$(1): $(2) $(RT_GPU) $(RT_HDR) $(4)
	@mkdir -p $$(@D)
	$$(CC) $$(RT_CFLAGS) $$(RT_VISIBLE) $(3) $$(RT_LINK) \
		-Wl,-soname,$(notdir $(1)) \
		$(if $(4),-Wl$(RT_COMMA)--version-script=$(4)) -o $$@ \
		$(2) -ltest-gpu
endef
RT_COMMA := ,
$(eval $(call RT_RULE,libhsa-runtime64.so.1,selftests/runtime/hsa.c,,selftests/runtime/hsa.map))
$(eval $(call RT_RULE,old/libhsa-runtime64.so.1,selftests/runtime/hsa.c,-DOLD,selftests/runtime/hsa.map))
$(eval $(call RT_RULE,libcuda.so.1,$(RT_CUDA_SRC),,))
$(eval $(call RT_RULE,old/libcuda.so.1,$(RT_CUDA_SRC),-DOLD,))
$(eval $(call RT_RULE,libamdhip64.so.5,$(RT_HIP_SRC),-DHIP_MAJOR=5,selftests/runtime/hip.map))
$(eval $(call RT_RULE,old/libamdhip64.so.5,$(RT_HIP_SRC),-DHIP_MAJOR=5 -DOLD,selftests/runtime/hip.map))
$(eval $(call RT_RULE,six/libamdhip64.so.6,$(RT_HIP_SRC),-DHIP_MAJOR=6,selftests/runtime/hip.map))
$(eval $(call RT_RULE,seven/libamdhip64.so.7,$(RT_HIP_SRC),-DHIP_MAJOR=7,selftests/runtime/hip.map))
$(eval $(call RT_RULE,libnvrtc.so.13,selftests/runtime/rtc.c,,))
$(eval $(call RT_RULE,libhiprtc.so.7,selftests/runtime/rtc.c,-DHIP,))

# Guest tests: libfabrex with these run times.
RT_MEMORY := $(addprefix selftests/runtime/,memory.c memory_device.c)
$(BUILD)/selftests/runtime-memory: $(RT_MEMORY) $(RT_HDR) $(BUILD)/lib/libfabrex.a
	@mkdir -p $(@D)
	$(CC) $(RT_CFLAGS) -o $@ $(RT_MEMORY) $(BUILD)/lib/libfabrex.a

.PHONY: selftests
selftests: $(RT_LIBS) $(BUILD)/selftests/runtime-memory

endif
