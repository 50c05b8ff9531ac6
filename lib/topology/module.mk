# SPDX-License-Identifier: LGPL-2.1-or-later
# topology: the parser of topology files, its test and man page. Included by the
# Makefile at the top.
TOPO := lib/topology
TOPO_OUT := $(or $(BUILD),build)
TOPO_OBJ := $(TOPO_OUT)/obj/topology
TOPO_SRC := $(notdir $(wildcard $(TOPO)/*.c))
TOPO_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -MMD -MP -fPIC
TOPO_CFLAGS += -fvisibility=hidden -D_GNU_SOURCE -Ilib
TOPO_SAN := -fsanitize=address,undefined -fno-sanitize-recover=all
TOPO_LIB := $(TOPO_OUT)/lib/libtopology.a

.PHONY: topology check-topology install-topology
topology: $(TOPO_LIB)

$(TOPO_OBJ)/%.o: $(TOPO)/%.c
	@mkdir -p $(@D)
	$(CC) $(TOPO_CFLAGS) $(CFLAGS) -c -o $@ $<

$(TOPO_LIB): $(TOPO_SRC:%.c=$(TOPO_OBJ)/%.o)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

$(TOPO_OBJ)/asan/%.o: $(TOPO)/%.c
	@mkdir -p $(@D)
	$(CC) $(TOPO_CFLAGS) $(TOPO_SAN) -c -o $@ $<

$(TOPO_OUT)/tests/topology/topology_test: \
		$(TOPO_OBJ)/asan/tests/topology_test.o \
		$(TOPO_SRC:%.c=$(TOPO_OBJ)/asan/%.o)
	@mkdir -p $(@D)
	$(CC) $(TOPO_SAN) -o $@ $^ -lconfig

# The generator's output has to be a good file, too.
check-topology: $(TOPO_OUT)/tests/topology/topology_test
	$(TOPO)/gen-scale > $(<D)/scale.topo
	$< $(wildcard topologies/*.topo) $(<D)/scale.topo

install-topology:
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/fabrex/topologies \
		$(wildcard topologies/*.topo)
	install -D -m 644 $(TOPO)/man/fabrex-topology.5 \
		$(DESTDIR)$(PREFIX)/share/man/man5/fabrex-topology.5

-include $(wildcard $(TOPO_OBJ)/*.d $(TOPO_OBJ)/*/*.d $(TOPO_OBJ)/*/*/*.d)
