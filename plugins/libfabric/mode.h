/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory registration modes: which of ours a program has to know. Used by
 * offer.c, hints.c and domain.c. Also what newer headers of libfabric have under
 * names that warn.
 */
#ifndef FABREX_MODE_H
#define FABREX_MODE_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

/* FI_MR_BASIC, FI_MR_SCALABLE: before 1.5, and still understood. */
#define MR_BASIC	1
#define MR_SCALABLE	2
/* FI_REG_MR of fi_domain_bind(). */
#define BIND_REG_MR	(UINT64_C(1) << 59)

/* Without these nobody can give a key to a peer. */
#define MR_NEEDED	(FI_MR_PROV_KEY | FI_MR_ALLOCATED)

/* Peers read or write memory here. */
static inline bool is_target(uint64_t caps)
{
	const uint64_t directions = FI_READ | FI_WRITE | FI_REMOTE_READ |
				    FI_REMOTE_WRITE;

	if (!(caps & (FI_RMA | FI_ATOMIC)))
		return false;
	return !(caps & directions) ||
	       caps & (FI_REMOTE_READ | FI_REMOTE_WRITE);
}

/* A program that registers memory in these modes gets along with our keys. */
static inline bool mr_mode_suits(uint32_t version, int mode)
{
	if (mode == MR_BASIC)
		return true;
	if (version < FI_VERSION(1, 5))
		return !mode;
	return (mode & MR_NEEDED) == MR_NEEDED &&
	       !(mode & (MR_BASIC | MR_SCALABLE));
}

/*
 * What is returned to a program that takes *mode (NULL: it has not said). Offsets
 * into regions cost less than virtual addresses, which only basic mode insists
 * on. Who can, passes descriptors with device memory, so that nobody has to look
 * what each address is.
 */
static inline int mr_mode_given(uint32_t version, const int *mode,
				uint64_t caps)
{
	int given = 0;

	if (mode && *mode & MR_SCALABLE)
		return *mode;
	if (version < FI_VERSION(1, 5))
		return MR_BASIC;
	/* Basic mode by the names of its parts, which newer programs look for:
	 * MPICH takes one without them for a mode with keys of its own.
	 */
	if (mode && *mode & MR_BASIC)
		return MR_NEEDED | FI_MR_VIRT_ADDR;
	if (is_target(caps))
		given = MR_NEEDED;
	if (caps & FI_HMEM && (!mode || *mode & FI_MR_HMEM))
		given |= FI_MR_HMEM;
	return given;
}

#endif
