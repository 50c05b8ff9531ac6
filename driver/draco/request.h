/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Release requests that are remembered (request.c): for release.c, which handles
 * them, and for those who stop and start the controller.
 */
#ifndef DRACO_REQUEST_H
#define DRACO_REQUEST_H

#include <linux/types.h>

struct draco_dev;

/* More than a partition has slots. */
#define DRACO_MAX_REQUESTS	64

/**
 * struct draco_request - a request to let an endpoint go
 * @ep:       endpoint
 * @slot:     where it is
 * @answered: or it was one that needs no answer: only remembered, so that it is
 *            not taken for a new one when the device tells of it again
 * @again:    it is to be handled anew then, even so
 * @token:    names the request, never used again
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
void draco_requests_forget(struct draco_dev *dd);
void draco_requests_repeat(struct draco_dev *dd);

#endif
