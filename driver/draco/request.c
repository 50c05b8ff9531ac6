// SPDX-License-Identifier: GPL-2.0-only
/*
 * List of the switch's release requests; release.c handles them. Called by that
 * file, controller.c and recovery.c.
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

/* Make room: drop the oldest answered request, or else the oldest one. */
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
 * draco_request_add() - the device has reported a release request
 * @dd:     device
 * @ep:     endpoint
 * @token:  of the request
 * @slot:   slot of the endpoint
 * @forced: the request needs no answer
 *
 * Context: Process.
 * Return: true if it has to be handled; false if it is known and being handled:
 * when the driver queries requests, the device reports it again, and its event
 * may arrive after that
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
 * draco_request_take() - mark a request as answered, before answering it
 * @dd:    device
 * @ep:    endpoint
 * @token: of the request
 *
 * Context: Process.
 * Return: the endpoint's slot; -ENOENT if there is no unanswered request
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
 * draco_requests_close() - mark all as answered: the controller was stopped
 * @dd: device; the switch no longer waits for answers
 *
 * Context: Process; does not allocate memory.
 */
void draco_requests_close(struct draco_dev *dd)
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
 * draco_requests_repeat() - handle unanswered requests again after a restart
 * @dd: device
 *
 * Events arrive as soon as the controller has been restarted, so the core may
 * have been told of a request at a time when it could not answer. Those that
 * the device still reports when it is queried are handled once more.
 *
 * Context: Process.
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
 * draco_request_again() - handle a request again that could not be answered
 * @dd:    device
 * @token: of the request. It is handled when the device reports it the next
 *         time
 *
 * Context: Process.
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
