// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a peer waits for: that its message has arrived, or where it is to be
 * stored. It needs a control credit, and waits here, in order, if there is none;
 * so nothing that the program sends is ever before it. Used by what delivers
 * messages and by peer.c.
 */
#include <stdlib.h>

#include "peer.h"

struct answer {
	struct list node;
	struct request *request;	/* else: */
	enum wire_kind kind;
	struct fin fin;
};

static bool send_now(struct peer *peer, enum wire_kind kind,
		     const struct fin *fin)
{
	struct bounce *bounce;

	if (peer->state != PEER_CONNECTED || peer->rewinding)
		return false;
	bounce = bounce_take_reserved(peer->ep);
	if (!bounce)
		return false;
	if (!credit_take_control(peer)) {
		bounce_return(peer->ep, bounce);
		return false;
	}
	datagram_send(peer, kind, bounce, wire_write_fin(bounce->data, fin),
		      NULL);
	return true;
}

static struct answer *queue(struct peer *peer)
{
	struct answer *answer = calloc(1, sizeof(*answer));

	if (!answer) {
		peer->broken = true;
		peer_stir(peer);
		return NULL;
	}
	list_add(&peer->answers, &answer->node);
	peer->nanswers++;
	peer_stir(peer);
	return answer;
}

void answer_send(struct peer *peer, enum wire_kind kind, uint64_t token,
		 enum fin_status status)
{
	const struct fin fin = { .token = token, .status = status };
	struct answer *answer;

	if (peer->state == PEER_DEAD ||
	    (list_empty(&peer->answers) && send_now(peer, kind, &fin)))
		return;
	answer = queue(peer);
	if (!answer)
		return;
	answer->kind = kind;
	answer->fin = fin;
}

static void fail(struct request *request, int cause)
{
	request_fail(request, cause);
	request->completed(request, NULL);
}

void answer_request(struct peer *peer, struct request *request)
{
	struct answer *answer = NULL;

	if (peer->state != PEER_DEAD)
		answer = queue(peer);
	if (answer)
		answer->request = request;
	else
		fail(request, peer->state == PEER_DEAD ? peer->cause :
		     -ENOMEM);
}

static struct answer *first(const struct peer *peer)
{
	return list_empty(&peer->answers) ? NULL :
	       container(peer->answers.next, struct answer, node);
}

static void forget(struct peer *peer, struct answer *answer)
{
	list_remove(&answer->node);
	peer->nanswers--;
	free(answer);
}

void answers_flush(struct peer *peer)
{
	struct answer *answer;
	struct request *request;
	int ret;

	while ((answer = first(peer))) {
		request = answer->request;
		if (!request) {
			if (!send_now(peer, answer->kind, &answer->fin))
				break;
			forget(peer, answer);
			continue;
		}
		ret = request->resume(request);
		if (ret == -FI_EAGAIN)
			break;
		forget(peer, answer);
		if (ret)
			fail(request, ret);
	}
	credit_release(peer);
}

void answers_free(struct peer *peer)
{
	struct answer *answer;

	while ((answer = first(peer)))
		forget(peer, answer);
}

void answers_drop(struct peer *peer)
{
	struct answer *answer;
	struct request *request;

	while ((answer = first(peer))) {
		request = answer->request;
		forget(peer, answer);
		if (request)
			fail(request, peer->cause);
	}
}
