// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sockets between the processes of a loopback fabric: addresses, credentials of
 * the other side, messages with descriptors. Called by join.c, service.c,
 * port.c and, for wake-ups, by send.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "state.h"

#define BACKLOG	1024

/* ---- addresses --------------------------------------------------------- */

/* Abstract socket addresses: names without files. */
static socklen_t address_of(struct transport *t, struct sockaddr_un *a,
			    const char *kind, const char *last)
{
	int n;

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
		     "fabrex/%u/%s/%s%s", t->state->uid, t->fabric, kind,
		     last);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)n);
}

static socklen_t address_of_number(struct transport *t, struct sockaddr_un *a,
				   uint32_t number)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	return address_of(t, a, "", text);
}

static int new_socket(struct transport *t, int *fd)
{
	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		     0);
	if (*fd >= 0)
		return 0;
	return fxi_error(errno, "loopback:%s: cannot create a socket: %s; see ulimit -n",
			 t->fabric, fxi_errno_str(errno));
}

/* -EADDRINUSE without a message: it is taken. */
static int bind_to(struct transport *t, const struct sockaddr_un *a,
		   socklen_t length, int *fd)
{
	int ret = new_socket(t, fd), err;

	if (ret)
		return ret;
	if (!bind(*fd, (const struct sockaddr *)a, length))
		return 0;
	err = errno;
	close(*fd);
	*fd = -1;
	if (err == EADDRINUSE)
		return -EADDRINUSE;
	return fxi_error(err, "loopback:%s: no address in the system's name space: %s; is AF_UNIX allowed here?",
			 t->fabric, fxi_errno_str(err));
}

int fxi_loop_listen(struct transport *t, uint32_t number, int *fd)
{
	struct sockaddr_un a;
	int ret = bind_to(t, &a, address_of_number(t, &a, number), fd);

	if (ret)
		return ret;
	if (!listen(*fd, BACKLOG))
		return 0;
	ret = fxi_error(errno, "loopback:%s: port %u cannot listen: %s",
			t->fabric, number, fxi_errno_str(errno));
	close(*fd);
	*fd = -1;
	return ret;
}

int fxi_loop_hold_name(struct transport *t, int *fd)
{
	struct sockaddr_un a;
	int ret = bind_to(t, &a, address_of(t, &a, "name/", t->name), fd);

	if (ret != -EADDRINUSE)
		return ret;
	return fxi_error(EADDRINUSE, "loopback:%s: there is a port \"%s\" already; choose another name, or none",
			 t->fabric, t->name);
}

/* ---- who is there ------------------------------------------------------ */

static bool same_user(int fd)
{
	struct ucred cred;
	socklen_t length = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) &&
	       cred.uid == geteuid();
}

/* All ids are mapped: no other user can look like one of them. */
static bool all_users_mapped(void)
{
	unsigned long inside, outside, count;
	FILE *file = fopen("/proc/self/uid_map", "re");
	bool all;

	if (!file)
		return false;
	all = fscanf(file, "%lu %lu %lu", &inside, &outside, &count) == 3 &&
	      !inside && count == UINT32_MAX;
	fclose(file);
	return all;
}

static unsigned long overflow_uid(void)
{
	FILE *file = fopen("/proc/sys/kernel/overflowuid", "re");
	unsigned long uid;

	if (!file)
		return 65534;
	if (fscanf(file, "%lu", &uid) != 1)
		uid = 65534;
	fclose(file);
	return uid;
}

/*
 * In a user namespace all users without an id there have this one, so the
 * kernel's credentials of the other side prove nothing.
 */
int fxi_loop_check_user(const struct transport *t)
{
	uint32_t uid = t->state->uid;

	if (uid != overflow_uid() || all_users_mapped())
		return 0;
	return fxi_error(EPERM, "loopback:%s: in this user namespace, user %u stands for all users without an id, so others could not be told from you; run as a user that has an id (uid_map)",
			 t->fabric, uid);
}

/* 0: not visible from here. */
pid_t fxi_loop_pid_of(int sock)
{
	struct ucred cred;
	socklen_t length = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &length))
		return 0;
	return cred.pid;
}

/* Why no connection was made. EPERM, EACCES: a security policy forbids it. */
static int connect_failed(struct transport *t, uint32_t number, int err)
{
	switch (err) {
	case ECONNREFUSED:
	case EPERM:
	case EACCES:
		return -ENOENT;
	case EAGAIN:
		return -EAGAIN;
	}
	return fxi_error(err, "loopback:%s: no connection to port %u: %s; end its process, or use another fabric",
			 t->fabric, number, fxi_errno_str(err));
}

int fxi_loop_connect(struct transport *t, uint32_t number, int *fd)
{
	struct sockaddr_un a;
	socklen_t length = address_of_number(t, &a, number);
	int ret = new_socket(t, fd);

	if (ret)
		return ret;
	if (connect(*fd, (const struct sockaddr *)&a, length))
		ret = connect_failed(t, number, errno);
	else if (same_user(*fd))
		return 0;
	else
		ret = -ENOENT;
	close(*fd);
	*fd = -1;
	return ret;
}

bool fxi_loop_is_foreign(struct transport *t, uint32_t number, uint32_t *uid)
{
	struct ucred cred = { .uid = t->state->uid };
	socklen_t length = sizeof(cred);
	struct sockaddr_un a;
	int fd;

	if (new_socket(t, &fd))
		return false;
	if (!connect(fd, (const struct sockaddr *)&a,
		     address_of_number(t, &a, number)))
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length);
	close(fd);
	*uid = cred.uid;
	return cred.uid != t->state->uid;
}

int fxi_loop_accept(int listener, int *fd)
{
	*fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (*fd < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	if (same_user(*fd))
		return 0;
	close(*fd);
	*fd = -1;
	return -EPERM;
}

/* ---- messages ---------------------------------------------------------- */

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(4 * sizeof(int))];
};

int fxi_loop_socket_send(int sock, const struct loop_message *message, int pass)
{
	struct iovec iov = {
		.iov_base = (void *)(uintptr_t)message,
		.iov_len = sizeof(*message),
	};
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control;
	struct cmsghdr *c;
	ssize_t n;

	if (pass >= 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &pass, sizeof(pass));
	}
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

/* The first descriptor is wanted; others must not leak. */
static void take_passed(struct msghdr *msg, int *passed)
{
	struct cmsghdr *c;
	size_t i, n;
	int fd;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int),
			       sizeof(fd));
			if (*passed < 0)
				*passed = fd;
			else
				close(fd);
		}
	}
}

int fxi_loop_socket_receive(int sock, struct loop_message *message, int *passed)
{
	struct iovec iov = {
		.iov_base = message, .iov_len = sizeof(*message),
	};
	union control control;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	*passed = -1;
	do {
		n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	if (n)
		take_passed(&msg, passed);
	if (!n || n == sizeof(*message))
		return n > 0;
	if (*passed >= 0)
		close(*passed);
	*passed = -1;
	return -EPROTO;
}

/* ---- wake-ups ---------------------------------------------------------- */

/* Only the one that cleared armed wakes the owner. */
static void wake_later(struct transport *t, uint32_t peer, uint32_t queue)
{
	pthread_mutex_lock(&t->lock);
	fxi_loop_tell_wake(t, peer, queue);
	pthread_mutex_unlock(&t->lock);
}

/* A queue of this port: the caller has found its number in our segment. */
static void wake_self(struct transport *t, uint32_t queue)
{
	pthread_mutex_lock(&t->lock);
	fxi_loop_signal(t, queue);
	pthread_mutex_unlock(&t->lock);
}

/* If the connection is full, or memory is short, the service thread does it. */
void fxi_loop_wake(struct transport *t, uint32_t peer, uint32_t queue)
{
	struct loop_message m = { .type = LOOP_WAKE, .value = { queue } };
	int err = errno, old = cancel_off();

	if (peer == t->number)
		wake_self(t, queue);
	else if (fxi_loop_socket_send(t->peers[peer].sock, &m, -1))
		wake_later(t, peer, queue);
	cancel_restore(old);
	errno = err;
}
