# SPDX-License-Identifier: LGPL-2.1-or-later
# plan: the topology planner, a static library for fabrexctl, and its tests.
# Included by the Makefile at the top. Targets: plan, check-plan, bench-plan.

BUILD ?= build
CFLAGS ?= -O2 -g

PLAN_O := $(BUILD)/plan
PLAN_A := $(BUILD)/lib/libplan.a
PLAN_SRC := $(filter-out lib/plan/tests/%, \
	$(wildcard lib/plan/*.c lib/plan/*/*.c))
PLAN_OBJ := $(PLAN_SRC:lib/plan/%.c=$(PLAN_O)/%.o)
PLAN_CPPFLAGS := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Ilib
PLAN_CFLAGS = -std=gnu11 -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla \
	-Wno-format-truncation $(CFLAGS)
# What a program needs besides libplan.a and libtopology.a.
PLAN_LIBS := -lconfig -lexpat -lm

.PHONY: plan check-plan bench-plan install-plan
plan: $(PLAN_A)

$(PLAN_O)/%.o: lib/plan/%.c
	@mkdir -p $(@D)
	$(CC) $(PLAN_CPPFLAGS) $(CPPFLAGS) $(PLAN_CFLAGS) -MMD -MP -c -o $@ $<

$(PLAN_A): $(PLAN_OBJ)
	@mkdir -p $(@D)
	rm -f $@
	$(AR) rcs $@ $(PLAN_OBJ)

install-plan:

-include $(PLAN_OBJ:.o=.d)
-include lib/plan/tests/module.mk
