// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Connecting: who listens gives out a handle, with which the other side asks for a
 * connection over the fabric (fabrex_connect(3)); there is no other network.
 * Nothing here may block, so whoever connects has a thread that waits for the
 * answer, until NCCL has asked often enough. Used by the versions.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "net.h"

#define ANSWER_MS	100
#define LOOK_NS		UINT64_C(1000000000)
#define GONE_NS		UINT64_C(3000000000)
/* Services of others are small numbers, or libfabric's (plugins/libfabric). */
#define SERVICE_BIT	(UINT64_C(1) << 61)

struct listener {
	struct net_port *port;
	struct fabrex_listener *listener;
	uint64_t cookie;
};

/* ---- handles ----------------------------------------------------------- */

/* Not against forgery, which the cookie is for: for what was damaged. */
static uint64_t check_of(const struct net_handle *handle)
{
	const unsigned char *at = (const unsigned char *)handle;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	size_t i;

	for (i = 0; i < offsetof(struct net_handle, check); i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static bool good_handle(const struct net_handle *handle,
			const struct net_port *port)
{
	if (handle->magic != NET_MAGIC ||
	    handle->check != check_of(handle)) {
		WARN("the handle is not one of fabrex: do all ranks use the same net plugin?");
		return false;
	}
	if (handle->version != NET_VERSION) {
		WARN("the handle is of version %u, this is version %u: install the same fabrex on all hosts",
		     handle->version, NET_VERSION);
		return false;
	}
	if (memcmp(handle->fabric, port->attr.fabric, sizeof(handle->fabric))) {
		WARN("port %.31s is in fabric %.31s, and %s in %s",
		     handle->port, handle->fabric, port->attr.name,
		     port->attr.fabric);
		return false;
	}
	return true;
}

/* ---- listening --------------------------------------------------------- */

static int draw(uint64_t *numbers, size_t n)
{
	return getrandom(numbers, n * sizeof(*numbers), 0) ==
	       (ssize_t)(n * sizeof(*numbers)) ? 0 : -EIO;
}

static void write_handle(const struct listener *l, uint64_t service,
			 struct net_handle *handle)
{
	memset(handle, 0, NCCL_HANDLE_MAX);
	handle->magic = NET_MAGIC;
	handle->version = NET_VERSION;
	handle->generation = l->port->attr.generation;
	handle->service = service;
	handle->cookie = l->cookie;
	memcpy(handle->fabric, l->port->attr.fabric, sizeof(handle->fabric));
	memcpy(handle->port, l->port->attr.name, sizeof(handle->port));
	handle->check = check_of(handle);
}

_Static_assert(sizeof(struct net_handle) <= NCCL_HANDLE_MAX,
	       "a handle is too long for NCCL");

enum nccl_result net_listen(int dev, void *handle, void **listener)
{
	struct net_port *port = net_port(dev);
	struct listener *l;
	uint64_t random[2];
	int ret;

	if (!port || !handle || !listener)
		return NCCL_INVALID_ARGUMENT;
	l = calloc(1, sizeof(*l));
	ret = l ? draw(random, 2) : -ENOMEM;
	if (!ret)
		ret = net_port_get(port);
	if (ret) {
		free(l);
		return net_result(ret);
	}
	l->port = port;
	l->cookie = random[0];
	random[1] = (random[1] & (SERVICE_BIT - 1)) | SERVICE_BIT;
	ret = fabrex_listen(port->port, random[1], &l->listener);
	if (ret) {
		WARN("port %s: listening: %s", port->open_as,
		     fabrex_strerror_last());
		net_port_put(port);
		free(l);
		return net_result(ret);
	}
	write_handle(l, random[1], handle);
	*listener = l;
	return NCCL_SUCCESS;
}

enum nccl_result net_close_listen(void *listener)
{
	struct listener *l = listener;

	if (!l)
		return NCCL_INVALID_ARGUMENT;
	fabrex_listener_close(l->listener);
	net_port_put(l->port);
	free(l);
	return NCCL_SUCCESS;
}

/* ---- accepting --------------------------------------------------------- */

static bool answer(struct listener *l, const struct fabrex_request *request,
		   struct comm *comm)
{
	struct net_hello mine;
	int ret;

	net_comm_hello(comm, l->cookie, &mine);
	ret = fabrex_request_answer(l->listener, request, &mine, sizeof(mine),
				    ANSWER_MS);
	if (ret)
		INFO("answering port %s: %s", comm->name,
		     fabrex_strerror_last());
	return !ret;
}

/* Whoever asks without the cookie has not got the handle: it gets no answer. */
static bool asks_well(const struct listener *l, const struct net_hello *theirs,
		      size_t length, uint32_t peer)
{
	if (length == sizeof(*theirs) && theirs->magic == NET_MAGIC &&
	    theirs->cookie == l->cookie)
		return true;
	WARN("peer %u asked for a connection without a handle of this listener",
	     peer);
	return false;
}

enum nccl_result net_accept(void *listener, void **comm)
{
	struct listener *l = listener;
	struct fabrex_request request;
	struct net_hello theirs;
	struct comm *c = NULL;
	size_t length;
	int ret;

	if (!l || !comm)
		return NCCL_INVALID_ARGUMENT;
	*comm = NULL;
	length = sizeof(theirs);
	ret = fabrex_request_next(l->listener, &request, &theirs, &length, 0);
	if (ret == -ETIMEDOUT || ret == -EMSGSIZE || ret == -EINTR)
		return NCCL_SUCCESS;
	if (ret) {
		WARN("port %s: accepting: %s", l->port->open_as,
		     fabrex_strerror_last());
		return net_result(ret);
	}
	if (!asks_well(l, &theirs, length, request.peer))
		return NCCL_SUCCESS;
	ret = net_comm_open(l->port, false, &c);
	if (ret)
		return net_result(ret);
	/* It may have given up meanwhile, and others wait behind it. */
	if (net_comm_meet(c, request.peer, &theirs) && answer(l, &request, c))
		*comm = c;
	else
		net_comm_close(c);
	return NCCL_SUCCESS;
}

/* ---- connecting -------------------------------------------------------- */

struct attempt {
	struct attempt *next;
	const void *caller;	/* where NCCL has the handle */
	struct net_handle handle;
	struct comm *comm;
	uint32_t peer;
	struct net_hello mine, theirs;
	size_t length;
	pthread_t thread;
	pid_t pid;		/* a child has no such thread */
	uint64_t looked_ns, gone_ns;	/* for the listener; since when it is gone */
	atomic_bool over;
	int error;
	char why[128];
};

static struct attempt *attempts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* those */

static void *wait_for_answer(void *arg)
{
	struct attempt *a = arg;

	do {
		a->length = sizeof(a->theirs);
		a->error = fabrex_connect(a->comm->port->port, a->peer,
					  a->handle.service, &a->mine,
					  sizeof(a->mine), &a->theirs,
					  &a->length, -1);
	} while (a->error == -EINTR);
	if (a->error)
		strncpy(a->why, fabrex_strerror_last(), sizeof(a->why) - 1);
	atomic_store(&a->over, true);
	return NULL;
}

static int find_peer(struct attempt *a)
{
	struct net_port *port = a->comm->port;
	struct fabrex_peer peer = { .peer = port->attr.peer,
				    .generation = port->attr.generation };
	char name[sizeof(a->handle.port) + 1] = "";
	int ret = 0;

	memcpy(name, a->handle.port, sizeof(a->handle.port));
	if (memcmp(a->handle.port, port->attr.name, sizeof(a->handle.port)))
		ret = fabrex_peer_find(port->port, name, &peer);
	if (ret)
		WARN("port %s: %s", name, fabrex_strerror_last());
	if (!ret && peer.generation != a->handle.generation) {
		WARN("port %s has been reset since it gave out the handle",
		     name);
		ret = -ECONNRESET;
	}
	a->peer = peer.peer;
	return ret;
}

static int begin(struct attempt *a)
{
	int ret = find_peer(a);
	sigset_t all, old;

	if (ret)
		return ret;
	net_comm_hello(a->comm, a->handle.cookie, &a->mine);
	a->pid = getpid();
	/* The program's signals are not for this thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&a->thread, NULL, wait_for_answer, a);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		WARN("no thread to connect with: %s", strerror(-ret));
	return ret;
}

static enum nccl_result start(struct net_port *port, const void *handle)
{
	struct attempt *a = calloc(1, sizeof(*a));
	int ret;

	if (!a)
		return NCCL_SYSTEM_ERROR;
	a->caller = handle;
	memcpy(&a->handle, handle, sizeof(a->handle));
	ret = net_comm_open(port, true, &a->comm);
	if (ret) {
		free(a);
		return net_result(ret);
	}
	if (!good_handle(&a->handle, port))
		ret = -EINVAL;
	else
		ret = begin(a);
	if (ret) {
		net_comm_close(a->comm);
		free(a);
		return net_result(ret);
	}
	pthread_mutex_lock(&lock);
	a->next = attempts;
	attempts = a;
	pthread_mutex_unlock(&lock);
	return NCCL_SUCCESS;
}

/* The listener was there, as the handle is: if it is not any more, it is gone. */
static bool is_gone(struct attempt *a)
{
	struct fabrex_port *port = a->comm->port->port;
	uint64_t now = now_ns(), key;
	uint32_t number;

	if (now - a->looked_ns < LOOK_NS)
		return false;
	a->looked_ns = now;
	if (!fabrex_resolve(port, a->peer, a->handle.service, &number, &key)) {
		a->gone_ns = 0;
		return false;
	}
	if (!a->gone_ns)
		a->gone_ns = now;
	return now - a->gone_ns >= GONE_NS;
}

static void discard(struct attempt *a)
{
	pthread_cancel(a->thread);
	pthread_join(a->thread, NULL);
	net_comm_close(a->comm);
	free(a);
}

/* The one that was started with this handle; taken out if it has ended. */
static struct attempt *find(const void *handle, bool *over, bool *gone)
{
	struct attempt **at, *a;

	pthread_mutex_lock(&lock);
	for (at = &attempts; (a = *at); at = &a->next)
		if (a->caller == handle &&
		    !memcmp(&a->handle, handle, sizeof(a->handle)))
			break;
	/* What is seen now counts: the thread goes on. */
	*over = a && atomic_load(&a->over);
	*gone = a && !*over && is_gone(a);
	if (*over || *gone)
		*at = a->next;
	pthread_mutex_unlock(&lock);
	return a;
}

static enum nccl_result finish(struct attempt *a, void **comm)
{
	enum nccl_result result = net_result(a->error);

	pthread_join(a->thread, NULL);
	if (a->error)
		WARN("connecting to port %.31s: %s", a->handle.port, a->why);
	else if (a->length != sizeof(a->theirs) ||
		 a->theirs.cookie != a->handle.cookie ||
		 !net_comm_meet(a->comm, a->peer, &a->theirs))
		result = NCCL_REMOTE_ERROR;
	if (result)
		net_comm_close(a->comm);
	else
		*comm = a->comm;
	free(a);
	return result;
}

enum nccl_result net_connect(int dev, void *handle, void **comm)
{
	struct net_port *port = net_port(dev);
	bool over, gone;
	struct attempt *a;

	if (!port || !handle || !comm)
		return NCCL_INVALID_ARGUMENT;
	*comm = NULL;
	a = find(handle, &over, &gone);
	if (!a)
		return start(port, handle);
	if (over)
		return finish(a, comm);
	if (!gone)
		return NCCL_SUCCESS;
	WARN("connecting to port %.31s: nobody listens there any more",
	     a->handle.port);
	discard(a);
	return NCCL_REMOTE_ERROR;
}

/* Who was given up before there was an answer. */
static __attribute__((destructor)) void give_up(void)
{
	struct attempt *all, *a;

	pthread_mutex_lock(&lock);
	all = attempts;
	attempts = NULL;
	pthread_mutex_unlock(&lock);
	while ((a = all)) {
		all = a->next;
		if (a->pid == getpid())
			discard(a);
	}
}
