/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * guestd: process 1 of a lab guest. Mounts the root, then runs commands for
 * the lab. Shared by its own files only.
 */
#ifndef GUESTD_H
#define GUESTD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto.h"

/* boot.c */
void boot_mount_root(void);
void boot_start_services(void);
const char *boot_option(const char *name);
void warn(const char *what, const char *object);

/* port.c */
int port_open(void);
int port_read_frame(int port, struct frame *head, char *payload);
void port_send(int port, enum frame_type type, uint32_t id,
	       const void *data, uint32_t len);

/* job.c */
struct job;

struct job *job_start(uint32_t id, char *argv, uint32_t len, int tty);
struct job *job_find(uint32_t id);
void job_signal(struct job *job, int sig);
void job_winsize(struct job *job, uint16_t rows, uint16_t cols);
void job_stdin(struct job *job, const char *data, uint32_t len);
int job_poll_add(void *pollfds, int max);
void job_poll_run(int port, const void *pollfds, int n);
void job_reaped(pid_t pid, int status);
void job_finish(int port);

#endif
