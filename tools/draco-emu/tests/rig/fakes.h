/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stand-ins for function.c and slot.c: memory-backed functions with a real DMA
 * map, slots that fill and empty by call. For rig.c.
 */
#ifndef EMU_FAKES_H
#define EMU_FAKES_H

#include <stdint.h>

struct function;
struct slots;
struct port;

struct function *fake_function_create(void *mem, uint64_t size);
void fake_function_destroy(struct function *f);
/* Where its host has put a BAR; before it is used. */
void fake_function_bar(struct function *f, unsigned int bar, uint64_t addr,
		       uint64_t size);
uint64_t fake_function_raised(struct function *f, unsigned int vector);

struct slots *fake_slots_create(struct port *p, unsigned int first,
				unsigned int count);
void fake_slots_destroy(struct slots *s);

#endif
