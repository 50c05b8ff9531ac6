/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * List of release requests (request.c). For release.c, which handles them, and
 * for controller.c and recovery.c, which stop and restart the controller.
 */
#ifndef DRACO_REQUEST_H
#define DRACO_REQUEST_H

#include <linux/types.h>

struct draco_dev;

/* More than a partition has slots. */
#define DRACO_MAX_REQUESTS	64

/**
 * struct draco_request - release request
 * @ep:       endpoint
 * @slot:     its slot
 * @answered: it was answered or needs no answer. It is remembered only so that
 *            it is recognised when the device reports it once more
 * @again:    in that case, handle it anew all the same
 * @token:    identifies the request; never used again
 */
struct draco_request {
	u32 ep;
	u16 slot;
	bool answered;
	bool again;
	u64 token;
};

bool draco_request_add(struct draco_dev *dd, u32 ep, u64 token, u16 slot,
		       bool forced);
int draco_request_take(struct draco_dev *dd, u32 ep, u64 token);
void draco_request_again(struct draco_dev *dd, u64 token);
void draco_requests_close(struct draco_dev *dd);
void draco_requests_repeat(struct draco_dev *dd);

#endif
