/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A QEMU as the hot-plug code sees it: a QMP server in a thread, which attaches
 * to the port's socket and to those that device_add names.
 */
#ifndef EMU_TEST_FAKE_QEMU_H
#define EMU_TEST_FAKE_QEMU_H

#include <stdbool.h>
#include <stdint.h>

#define FAKE_DEVICES	8

struct fake_qemu;

/* Attaches to @port, maps @mem_fd (@mem_size bytes at 0), then offers QMP. */
struct fake_qemu *fake_qemu_start(const char *qmp_path, const char *port,
				  int mem_fd, uint64_t mem_size);
/* Power fails: sockets close. */
void fake_qemu_kill(struct fake_qemu *q);

/* The guest powers off the slot on @bus: all functions go. False: empty. */
bool fake_qemu_power_off(struct fake_qemu *q, const char *bus);
/*
 * From here on @bus is that of function 0, or "slot2:1" for another one.
 * The guest programs a 64-bit BAR of the device and enables memory.
 */
bool fake_qemu_set_bar(struct fake_qemu *q, const char *bus, unsigned int bar,
		       uint64_t addr);
/* A byte of config space, the command register, a register of BAR 0. */
bool fake_qemu_config(struct fake_qemu *q, const char *bus, uint64_t offset,
		      uint8_t v);
bool fake_qemu_command(struct fake_qemu *q, const char *bus, uint8_t v);
bool fake_qemu_write(struct fake_qemu *q, const char *bus, uint64_t offset,
		     uint32_t v);
/* Vendor id as the guest reads it now; 0: QEMU has no such device. */
uint32_t fake_qemu_vendor(struct fake_qemu *q, const char *bus);
/* The @nth device_add from now on fails. */
void fake_qemu_refuse(struct fake_qemu *q, unsigned int nth);
unsigned int fake_qemu_device_dels(struct fake_qemu *q);

#endif
