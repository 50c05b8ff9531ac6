# SPDX-License-Identifier: GPL-2.0-only
# Selftests: programs that run inside guests, 64 and 32 bit. Included by the
# top Makefile; builds in a root that has linux-source and gcc-multilib.

ST_HARNESS ?= $(firstword $(wildcard \
	/usr/src/linux-source-7.2/tools/testing/selftests \
	/usr/src/linux-source-*/tools/testing/selftests))
ST_OUT := build/selftests
ST_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Wno-unused-parameter \
	-Wno-sign-compare -Wno-missing-field-initializers \
	-Iinclude/uapi -Iinclude -Iselftests/common -I$(ST_HARNESS) -MMD -MP
# The harness prints pointers as intmax_t, which is wider here.
ST_CFLAGS32 := $(ST_CFLAGS) -Wno-pointer-to-int-cast

ST_COMMON := raw rings bench
ST_TESTS := uapi/layout uapi/ioctls uapi/values uapi/files uapi/mmap \
	uapi/quota dma/ops dma/errors dma/queues dma/order dma/atomics \
	dma/datagram dma/window fuzz/ioctl fail_nth/sweep
ST_TESTS += uapi/watch gpu/udmabuf dma/guess
ST_TOOLS := dma/puppet dma/killed dma/survivor dma/stream faults/stale \
	faults/flood unplug/restart unplug/exec soak/hoard dma/hog
ST_GPU := gpu/exporter gpu/import gpu/register gpu/hostile gpu/fuzz
ST_GPU += p2p/transfer
ST_GPU += gpu/churn
ST_NETLINK := netlink/dump netlink/change netlink/garbage fuzz/netlink
ST_NETLINK += netlink/permission netlink/ticket netlink/storm
ST_NETLINK += backend/partial
ST_TESTS32 := uapi/layout uapi/ioctls uapi/values uapi/files uapi/mmap \
	dma/ops dma/errors
ST_TESTS32 += uapi/watch gpu/udmabuf

# build/selftests/DIR-NAME from selftests/DIR/NAME.c
st-bin = $(addprefix $(ST_OUT)/,$(subst /,-,$(1)))
ST_BINS := $(call st-bin,$(ST_TESTS) $(ST_TOOLS) $(ST_NETLINK) $(ST_GPU) \
	dma/nosyscall) \
	$(call st-bin,gpu/vfio_tool gpu/puppet) $(addsuffix -32,$(call st-bin,$(ST_TESTS32)))
ST_OBJ := $(ST_COMMON:%=$(ST_OUT)/obj/%.o)
ST_OBJ32 := $(ST_COMMON:%=$(ST_OUT)/obj32/%.o)

.PHONY: selftests check-selftests install-selftests
selftests: $(ST_BINS)
check-selftests install-selftests:

$(ST_OUT)/obj/%.o: selftests/common/%.c
	@mkdir -p $(@D)
	$(CC) $(ST_CFLAGS) -c -o $@ $<

$(ST_OUT)/obj/%.o: selftests/gpu/%.c
	@mkdir -p $(@D)
	$(CC) $(ST_CFLAGS) -c -o $@ $<

$(ST_OUT)/obj32/%.o: selftests/common/%.c
	@mkdir -p $(@D)
	$(CC) -m32 $(ST_CFLAGS32) -c -o $@ $<

define ST_RULE
$(call st-bin,$(1)): selftests/$(1).c $(2)
	@mkdir -p $$(@D)
	$$(CC) $$(ST_CFLAGS) -MF $$@.d -o $$@ $$< $(2) -pthread
endef
$(foreach t,$(ST_TESTS) $(ST_TOOLS),$(eval $(call ST_RULE,$(t),$(ST_OBJ))))
$(foreach t,$(ST_NETLINK),$(eval $(call \
	ST_RULE,$(t),$(ST_OBJ) $(ST_OUT)/obj/nl.o)))

$(foreach t,$(ST_GPU),$(eval $(call \
	ST_RULE,$(t),$(ST_OBJ) $(ST_OUT)/obj/gpu/gpu.o)))
$(ST_OUT)/obj/gpu/%.o: selftests/gpu/%.c
	@mkdir -p $(@D)
	$(CC) $(ST_CFLAGS) -c -o $@ $<

# A puppet that has GPUs, too.
ST_PUPPET := $(ST_OUT)/obj/dma/puppet.o \
	$(addprefix $(ST_OUT)/obj/gpu/,gpu.o storm.o)
$(eval $(call ST_RULE,gpu/puppet,$(ST_OBJ) $(ST_PUPPET)))
$(ST_OUT)/obj/dma/%.o: selftests/dma/%.c
	@mkdir -p $(@D)
	$(CC) $(ST_CFLAGS) -c -o $@ $<

# 32-bit programs are static: guests have no 32-bit C library.
define ST_RULE32
$(call st-bin,$(1))-32: selftests/$(1).c $(ST_OBJ32)
	@mkdir -p $$(@D)
	$$(CC) -m32 -static $$(ST_CFLAGS32) -MF $$@.d -o $$@ $$< $(ST_OBJ32) \
		-pthread
endef
$(foreach t,$(ST_TESTS32),$(eval $(call ST_RULE32,$(t))))

# vfio-pci as an exporter.
ST_VFIO := $(ST_OUT)/obj/vfio_export.o
$(eval $(call ST_RULE,gpu/vfio_tool,$(ST_VFIO)))
$(eval $(call \
	ST_RULE,gpu/vfio,$(ST_OBJ) $(ST_OUT)/obj/gpu/gpu.o $(ST_VFIO)))
selftests: $(call st-bin,gpu/vfio)

# The one program that is about the library.
$(call st-bin,dma/nosyscall): selftests/dma/nosyscall.c | lib
	@mkdir -p $(@D)
	$(CC) $(ST_CFLAGS) -MF $@.d -o $@ $< -Lbuild/lib -lfabrex

include selftests/bench/module.mk
include selftests/coll/module.mk

-include $(wildcard $(ST_OUT)/*.d $(ST_OUT)/obj/*.d $(ST_OUT)/obj32/*.d \
	$(ST_OUT)/obj/gpu/*.d $(ST_OUT)/obj/dma/*.d)

# On the host: nothing of the interface to user space has changed by mistake.
.PHONY: check-selftests
check-selftests:
	@echo TAP version 13; echo 1..1; \
	if selftests/uapi/frozen.py; then echo ok 1 uapi_is_as_stored; \
	else echo not ok 1 uapi_is_as_stored; exit 1; fi
