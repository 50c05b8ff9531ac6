// SPDX-License-Identifier: GPL-2.0-only
/*
 * Release requests of the switch that this driver remembers. A list only: they
 * are handled in release.c. Called by that, by controller.c and reset.c.
 */
#include <linux/string.h>

#include "draco.h"
#include "request.h"

static struct draco_request *draco_request_find(struct draco_dev *dd, u64 token)
{
	u32 i;

	lockdep_assert_held(&dd->request_lock);
	for (i = 0; i < dd->nrequests; i++)
		if (dd->requests[i].token == token)
			return &dd->requests[i];
	return NULL;
}

/* Make room: for the oldest that was answered, else for the oldest. */
static void draco_request_drop(struct draco_dev *dd)
{
	struct draco_request *list = dd->requests;
	u32 i;

	lockdep_assert_held(&dd->request_lock);
	for (i = 0; i < dd->nrequests && !list[i].answered; i++)
		;
	if (i == dd->nrequests)
		i = 0;
	dd->nrequests--;
	memmove(list + i, list + i + 1, (dd->nrequests - i) * sizeof(*list));
}

/**
 * draco_request_add() - the device tells of a request
 * @dd:     device
 * @ep:     endpoint
 * @token:  of the request
 * @slot:   where the endpoint is
 * @forced: it needs no answer
 *
 * Return: false if it is known, and in good hands: the device tells of requests
 * again when it is asked, and the event may still come
 */
bool draco_request_add(struct draco_dev *dd, u32 ep, u64 token, u16 slot,
		       bool forced)
{
	struct draco_request *known;
	bool again = false;

	spin_lock(&dd->request_lock);
	known = draco_request_find(dd, token);
	if (known) {
		again = known->again;
		known->again = false;
		known->answered = known->answered && !again;
	} else {
		if (dd->nrequests == DRACO_MAX_REQUESTS)
			draco_request_drop(dd);
		dd->requests[dd->nrequests++] = (struct draco_request){
			.ep = ep, .token = token, .slot = slot,
			.answered = forced,
		};
	}
	spin_unlock(&dd->request_lock);
	return !known || again;
}

/**
 * draco_request_take() - a request is about to be answered
 * @dd:    device
 * @ep:    endpoint
 * @token: of the request; it counts as answered from here on
 *
 * Return: the slot that it is about; -ENOENT if there is no such request
 */
int draco_request_take(struct draco_dev *dd, u32 ep, u64 token)
{
	struct draco_request *request;
	int ret = -ENOENT;

	spin_lock(&dd->request_lock);
	request = draco_request_find(dd, token);
	if (request && request->ep == ep && !request->answered) {
		request->answered = true;
		ret = request->slot;
	}
	spin_unlock(&dd->request_lock);
	return ret;
}

/**
 * draco_requests_forget() - the controller was stopped: no request is pending
 * @dd: device
 */
void draco_requests_forget(struct draco_dev *dd)
{
	u32 i;

	spin_lock(&dd->request_lock);
	for (i = 0; i < dd->nrequests; i++) {
		dd->requests[i].answered = true;
		dd->requests[i].again = false;
	}
	spin_unlock(&dd->request_lock);
}

/**
 * draco_requests_repeat() - the core works again and has heard of no request
 * @dd: device
 *
 * Events are taken since the controller was started: the core may have been told
 * of a request when it could not answer. Those that the device still tells of
 * when it is asked are handled once more.
 */
void draco_requests_repeat(struct draco_dev *dd)
{
	u32 i;

	spin_lock(&dd->request_lock);
	for (i = 0; i < dd->nrequests; i++)
		if (!dd->requests[i].answered)
			dd->requests[i].again = true;
	spin_unlock(&dd->request_lock);
}

/**
 * draco_request_again() - a request could not be answered, or nobody knows
 * @dd:    device
 * @token: of the request; it is handled anew when the device tells of it again
 */
void draco_request_again(struct draco_dev *dd, u64 token)
{
	struct draco_request *request;

	spin_lock(&dd->request_lock);
	request = draco_request_find(dd, token);
	if (request)
		request->again = true;
	spin_unlock(&dd->request_lock);
}
