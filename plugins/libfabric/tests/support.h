/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the tests of the provider have in common: a fabric of their own, the log
 * of libfabric, and objects that are opened in one line. Each test runs in a
 * process of its own (lib/tests/main.c).
 */
#ifndef FABREX_FI_SUPPORT_H
#define FABREX_FI_SUPPORT_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "harness.h"

#define VERSION	FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

/* FABREX_PORT: a loopback fabric of this process, or what FABREX_TEST_PORT says; its
 * name.
 */
const char *own_fabric(void);

/* What is logged from now on, at INFO; before the first call of libfabric. */
void log_catch(void);
/* A line of it has both texts. What was logged is forgotten. */
bool log_says(const char *first, const char *second);

/* Hints that any program could have. */
struct fi_info *hints_new(void);
/* fi_getinfo() of this provider alone; the test fails if it is not 0. */
struct fi_info *info_new(const struct fi_info *hints);

struct opened {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};
/* All of own_fabric(). caps 0: FI_MSG and FI_RMA. */
void open_domain(struct opened *opened, uint64_t caps, int mr_mode);
void close_domain(struct opened *opened);

unsigned int open_descriptors(void);

#endif
