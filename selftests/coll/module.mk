# SPDX-License-Identifier: GPL-2.0-only
# A rank for the hosts of the lab: it needs no harness. Included by
# ../module.mk.

COLL_BINS := $(ST_OUT)/coll-rank

selftests: $(COLL_BINS)

$(ST_OUT)/coll-rank: selftests/coll/rank.c | lib
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Iinclude -Iinclude/uapi -MMD \
		-MP -MF $@.d -o $@ $< -Lbuild/lib -lfabrex
