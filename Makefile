# SPDX-License-Identifier: GPL-2.0-only
# make           programs, library and kernel modules into build/
# make demo      the story: three hosts, a fabric, GPUs that move (tools/lab)
# make lab       the same hosts, left up with a shell on each
# make check     host tests, then guest tests
# make check-debug  guest tests on a kernel with KASAN, lockdep, kmemleak, UBSAN;
#                PART=name does one part of those in tools/lab/parts
# make check-kcsan  those where threads meet, on a kernel with KCSAN
# make soak      everything at once for HOURS=n (1; 0.1 is six minutes), SEED=n,
#                KERNEL=debug
# make check-cuda libfabrex with the NVIDIA GPU of this machine, if it has one
# make bench     fabrex beside OpenMPI, UCX, libfabric, TCP, memcpy on this machine
# make bench-lab fabrex beside RoCEv2 and TCP between two hosts, emulated
# make bench-plan how planning time grows, up to 1,024 GPUs
# make install   programs and library (PREFIX, DESTDIR); modules: dkms.conf
#
# Compilers are those of a Debian 13 root that the lab makes on first use.
# NATIVE=1 takes this machine's instead, as make install always does.

BUILD := build$(if $(NATIVE),/native)
PREFIX ?= /usr/local
LAB := tools/lab/lab
ROOT ?= demo

GUEST_GOALS := demo lab check check-host check-guest check-debug check-kcsan \
	kbuild-check dkms-check modules debug-kernel kcsan-kernel fuzz bench-lab \
	soak
# A minimal machine may lack even this; the lab installs the rest itself.
ifeq ($(shell command -v python3),)
$(info installing python3 on this machine)
$(shell S=$$([ $$(id -u) = 0 ] || echo sudo); \
	{ $$S apt-get update -q && $$S apt-get install -qy python3; } >&2)
endif

LOCAL_GOALS := help clean install bench check-cuda $(GUEST_GOALS)

all: programs modules
.PHONY: all programs install check-cuda help clean $(GUEST_GOALS)

modules:
	$(LAB) modules 7.2

# Verbs of the lab; they build what they need.
demo lab check check-host check-guest check-kcsan kbuild-check dkms-check fuzz \
bench-lab:
	$(LAB) make-$@ $(ARGS)

check-debug:
	$(LAB) make-$@ $(if $(PART),--part $(PART)) $(ARGS)

HOURS ?= 1
soak:
	$(LAB) make-$@ --hours $(HOURS) $(if $(SEED),--seed $(SEED)) \
		$(if $(KERNEL),--kernel $(KERNEL)) $(ARGS)

debug-kernel kcsan-kernel:
	$(LAB) kernel $(@:-kernel=)

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile

clean:
	rm -rf build

ifneq ($(FABREX_IN_ROOT)$(NATIVE),)
FRAGMENTS := $(wildcard lib/module.mk lib/topology/module.mk \
	lib/plan/module.mk tools/*/module.mk selftests/module.mk \
	driver/tests/module.mk)
PARTS := $(patsubst %/,%,$(dir $(FRAGMENTS)))
NAMES := $(notdir $(PARTS))
# Each fragment has phony targets <name>, and where it makes sense
# check-<name> and install-<name>, named after its directory.
.PHONY: $(NAMES) $(NAMES:%=check-%) $(NAMES:%=install-%)
programs: $(filter-out selftests tests lab,$(NAMES))
install: $(NAMES:%=install-%)
list-parts:
	@echo $(NAMES)
include $(FRAGMENTS)
else
install check-cuda:
	$(MAKE) NATIVE=1 $@

# In a root with the peers; NATIVE=1 measures those of this machine. KEEP=1
# puts the table into docs/benchmarks.md.
.PHONY: bench
bench:
	+tools/lab/in-root -r bench $(MAKE) --no-print-directory bench KEEP=$(KEEP)

# Not in the root yet: run the same goals there.
INSIDE := $(sort $(filter-out all $(LOCAL_GOALS),$(MAKECMDGOALS)) programs)
.PHONY: $(INSIDE)
$(INSIDE):
	+tools/lab/in-root -r $(ROOT) $(MAKE) --no-print-directory \
		$(if $(findstring j,$(firstword -$(MAKEFLAGS)) \
		$(filter -j%,$(MAKEFLAGS))),,-j$(shell nproc)) \
		$@
endif
