# SPDX-License-Identifier: GPL-2.0-only
# make           library, planner and tools for this machine: build/bin
# make install   them and their man pages (PREFIX, DESTDIR); modules: dkms.conf
# make demo      the story: three hosts, a fabric, GPUs that move (tools/lab)
# make demo-ntb  two hosts on a Switchtec: a GPU, and 64 MiB over its bridge
# make lab       the same hosts, left up with a shell on each
# make modules   the kernel modules for the lab's kernel
# make check     host tests, then guest tests
# make check-debug  guest tests on a kernel with KASAN, lockdep, kmemleak, UBSAN;
#                PART=name does one part of those in tools/lab/parts
# make check-kcsan  those with concurrent threads, on a kernel with KCSAN
# make check-libfabric  programs that know nothing of fabrex, over its provider of
#                libfabric: fabtests, Open MPI, hpcc, NetPIPE, mpi4py, over loopback
#                and between hosts; ARGS=words of names
# make check-nccl  the plugin of NCCL and RCCL, and Debian's RCCL that loads it
# make soak      everything at once for HOURS=n (1; 0.1 is six minutes), SEED=n,
#                KERNEL=debug
# make check-cuda libfabrex with the NVIDIA GPU of this machine, if it has one
# make bench     fabrex beside OpenMPI, MPICH, UCC, gloo, UCX, libfabric, TCP, memcpy;
#                NATIVE=1 takes those of this machine, KEEP=1 updates docs/benchmarks.md
# make bench-ranks   how collectives grow from 2 to 256 ranks, beside OpenMPI, and what a
#                communicator costs each of 2 to 512; takes long; KEEP=1; ARGS=
#                options of fabrex-perf compare, such as "--ranks 2,3,5"
# make bench-lab fabrex beside RoCEv2 and TCP between two hosts, emulated
# make bench-ntb fabrex_ntb beside Linux's ntb_transport with TCP between two hosts on
#                a Switchtec, emulated; KEEP=1
# make bench-libfabric  fi_pingpong, fi_rma_bw and MPI over our provider of libfabric,
#                beside others, libfabrex and Open MPI's own transport; KEEP=1
# make check-matrix  all collectives, types and operations in GPU memory, by every
#                algorithm, for 1 to 8 ranks; check has a part of them that is drawn
# make check-ratios  planned schedules on 16 emulated GPUs with links at their rates,
#                scaled down, in five wirings and between two hosts: are ratios
#                to rings, and the order of wirings, as predicted? Needs an idle
#                machine; not every run reaches the ratio between two hosts
# make bench-lib, bench-plan   times of the library and of the planner
#
# Programs are described in meson.build, modules in Kbuild. Everything but make,
# install, check-cuda and NATIVE=1 runs in a Debian 13 root that the lab makes on
# first use. Options of a native build: meson configure build/native.

LAB := tools/lab/lab
OUT := build/native

LOCAL_GOALS := all programs install check-cuda $(if $(NATIVE),bench)
LAB_GOALS := demo demo-ntb lab modules check check-host check-guest check-debug \
	check-kcsan check-ratios kbuild-check dkms-check debug-kernel \
	kcsan-kernel fuzz soak bench-lab bench-ntb bench-libfabric bench-lib bench-plan bench-ranks \
	check-matrix check-libfabric check-nccl $(if $(NATIVE),,bench)
.PHONY: help clean $(LOCAL_GOALS) $(LAB_GOALS)

all: programs

# What is missing is named in one line; nothing is installed.
GOALS := $(or $(MAKECMDGOALS),all)
ifneq ($(filter $(LOCAL_GOALS),$(GOALS)),)
# What is built in there does not start on the machine around it.
ifneq ($(FABREX_IN_ROOT),)
$(error this is one of the lab's roots; outside of it, run tools/lab/lab build)
endif
MISSING := $(shell tools/missing-packages \
	$(if $(filter-out check-cuda,$(GOALS)),all,library))
ifneq ($(MISSING),)
$(error this needs packages that are not installed: apt-get install $(MISSING))
endif
endif
ifneq ($(filter $(LAB_GOALS),$(GOALS)),)
ifeq ($(shell command -v python3 2> /dev/null),)
$(error the lab needs Python: apt-get install python3)
endif
endif

$(OUT)/build.ninja:
	meson setup $(OUT)

PROGRAMS := fabrexctl/fabrexctl perf/fabrex-perf \
	$(addprefix perf/fabrex-perf-,openmpi mpich ucc gloo) \
	draco-emu/draco-emu
programs: $(OUT)/build.ninja
	$(if $(PREFIX),meson configure $(OUT) -Dprefix=$(PREFIX))
	ninja -C $(OUT) programs
	@mkdir -p build/bin; for f in $(PROGRAMS); do \
		[ ! -e $(OUT)/tools/$$f ] || ln -sf ../native/tools/$$f build/bin/; \
	done

install: programs
	meson install -C $(OUT) --no-rebuild $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

# CUDA_INCLUDE: the directory of cuda.h, to compare our declarations with.
check-cuda:
	[ -e build/cuda/build.ninja ] || meson setup build/cuda \
		-Dplanner=false -Dfabrexctl=false -Demulator=false \
		$(if $(CUDA_INCLUDE),-Dheaders_cuda=$(CUDA_INCLUDE))
	CUDA_LIB=$(CUDA_LIB) ninja -C build/cuda check-cuda

export FABREX_KEEP := $(if $(KEEP),$(CURDIR)/docs/benchmarks.md)
ifneq ($(NATIVE),)
bench: programs
	ninja -C $(OUT) bench
else
bench:
	$(LAB) build --kind bench bench
endif

bench-ranks: export FABREX_PERF_ARGS := $(ARGS)
bench-ranks:
	$(LAB) build --kind bench $@

bench-lib check-matrix:
	$(LAB) build --kind full $@

bench-plan:
	$(LAB) build $@

modules:
	$(LAB) modules 7.2

# Verbs of the lab; they build what they need.
demo demo-ntb lab check check-host check-guest check-kcsan check-libfabric check-nccl check-ratios \
kbuild-check dkms-check fuzz bench-lab:
	$(LAB) make-$@ $(ARGS)

check-debug:
	$(LAB) make-$@ $(if $(PART),--part $(PART)) $(ARGS)

bench-ntb bench-libfabric:
	$(LAB) make-$@ $(if $(KEEP),--output docs/benchmarks.md) $(ARGS)

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
