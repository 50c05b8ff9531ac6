// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The object and its versions, and what both sides of a test need. Used by all tests
 * here.
 */
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin.h"

/* ---- log --------------------------------------------------------------- */

static char said[1 << 14];

__attribute__((format(printf, 5, 6)))
static void logger(int level, unsigned long flags, const char *file, int line,
		   const char *format, ...)
{
	size_t used = strlen(said);
	va_list args;

	(void)flags;
	CHECK(level == NCCL_LOG_WARN || level == NCCL_LOG_INFO);
	CHECK(file && line >= 0);
	va_start(args, format);
	vsnprintf(said + used, sizeof(said) - used, format, args);
	va_end(args);
}

bool plugin_said(const char *text)
{
	bool found = strstr(said, text);

	if (!found)
		test_note("the log has no \"%s\": %s", text, said);
	said[0] = '\0';
	return found;
}

/* ---- the object -------------------------------------------------------- */

static void *object;
static const struct nccl_net_v6 *v6;
static const struct nccl_net_v8 *v8;
static const struct nccl_net_v9 *v9;
static const struct nccl_net_v10 *v10;
static const struct nccl_net_v11 *v11;
static const struct nccl_net_v12 *v12;

void plugin_load(void)
{
	const char *path = getenv("FABREX_NCCL_PLUGIN");
	const char *port = getenv("FABREX_TEST_PORT");
	char name[64];

	snprintf(name, sizeof(name), "loopback:nccl-%d", (int)getpid());
	/* The other side is a child, and has this one. */
	setenv("FABREX_PORT", port ? port : name, !!port);
	CHECK(path);
	object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!object)
		test_note("%s", dlerror());
	CHECK(object);
	v6 = dlsym(object, "ncclNetPlugin_v6");
	v8 = dlsym(object, "ncclNetPlugin_v8");
	v9 = dlsym(object, "ncclNetPlugin_v9");
	v10 = dlsym(object, "ncclNetPlugin_v10");
	v11 = dlsym(object, "ncclNetPlugin_v11");
	v12 = dlsym(object, "ncclNetPlugin_v12");
	CHECK(v6 && v8 && v9 && v10 && v11 && v12);
	CHECK(!dlsym(object, "ncclCollNetPlugin_v8"));
}

void plugin_unload(void)
{
	CHECK_EQ(dlclose(object), 0);
}

/* ---- versions ---------------------------------------------------------- */

static void narrow(int *to, const size_t *from, int n)
{
	int i;

	for (i = 0; i < n && i < NCCL_RECEIVES_MAX; i++)
		to[i] = (int)from[i];
}

#define COMMON(v) \
	static const char *name_##v(void) { return v->name; } \
	static enum nccl_result devices_##v(int *n) { return v->devices(n); } \
	static enum nccl_result dereg_##v(void *comm, void *mhandle) \
	{ \
		return v->dereg(comm, mhandle); \
	} \
	static enum nccl_result flush_##v(void *comm, int n, void **data, \
					  int *sizes, void **mhandles, \
					  void **request) \
	{ \
		return v->flush(comm, n, data, sizes, mhandles, request); \
	} \
	static enum nccl_result test_##v(void *request, int *done, int *sizes) \
	{ \
		return v->test(request, done, sizes); \
	} \
	static enum nccl_result close_send_##v(void *comm) \
	{ \
		return v->close_send(comm); \
	} \
	static enum nccl_result close_recv_##v(void *comm) \
	{ \
		return v->close_recv(comm); \
	} \
	static enum nccl_result close_listen_##v(void *listener) \
	{ \
		return v->close_listen(listener); \
	}

/* Without a context. */
#define OLD(v) \
	static enum nccl_result finalize_##v(void *ctx) \
	{ \
		(void)ctx; \
		return NCCL_SUCCESS; \
	} \
	static enum nccl_result listen_##v(void *ctx, int dev, void *handle, \
					   void **listener) \
	{ \
		(void)ctx; \
		return v->listen(dev, handle, listener); \
	}
#define OLD_INIT(v) \
	static enum nccl_result init_##v(void **ctx) \
	{ \
		*ctx = NULL; \
		return v->init(logger); \
	}
/* With one. */
#define NEW(v) \
	static enum nccl_result init_##v(void **ctx) \
	{ \
		struct nccl_config config = { .traffic_class = 3 }; \
		return v->init(ctx, 77, &config, logger, NULL); \
	} \
	static enum nccl_result finalize_##v(void *ctx) \
	{ \
		return v->finalize(ctx); \
	} \
	static enum nccl_result listen_##v(void *ctx, int dev, void *handle, \
					   void **listener) \
	{ \
		return v->listen(ctx, dev, handle, listener); \
	} \
	static enum nccl_result connect_##v(void *ctx, int dev, void *handle, \
					    void **comm) \
	{ \
		void *device = NULL; \
		return v->connect(ctx, dev, handle, comm, &device); \
	}
/* accept() and reg() since v8. */
#define SINCE_V8(v) \
	static enum nccl_result accept_##v(void *listener, void **comm) \
	{ \
		void *device = NULL; \
		return v->accept(listener, comm, &device); \
	} \
	static enum nccl_result reg_##v(void *comm, void *data, size_t size, \
					int type, void **mhandle) \
	{ \
		return v->reg(comm, data, size, type, mhandle); \
	}
#define CONNECT(v) \
	static enum nccl_result connect_##v(void *ctx, int dev, void *handle, \
					    void **comm) \
	{ \
		void *device = NULL; \
		(void)ctx; \
		return v->connect(dev, handle, comm, &device); \
	}
#define INT_SIZES(v) \
	static enum nccl_result isend_##v(void *comm, void *data, size_t size, \
					  int tag, void *mhandle, \
					  void **request) \
	{ \
		return v->isend(comm, data, (int)size, tag, mhandle, request); \
	} \
	static enum nccl_result irecv_##v(void *comm, int n, void **data, \
					  size_t *sizes, int *tags, \
					  void **mhandles, void **request) \
	{ \
		int ints[NCCL_RECEIVES_MAX]; \
		narrow(ints, sizes, n); \
		return v->irecv(comm, n, data, ints, tags, mhandles, request); \
	}
#define PROFILED(v) \
	static enum nccl_result isend_##v(void *comm, void *data, size_t size, \
					  int tag, void *mhandle, \
					  void **request) \
	{ \
		return v->isend(comm, data, size, tag, mhandle, NULL, request); \
	} \
	static enum nccl_result irecv_##v(void *comm, int n, void **data, \
					  size_t *sizes, int *tags, \
					  void **mhandles, void **request) \
	{ \
		return v->irecv(comm, n, data, sizes, tags, mhandles, NULL, \
				request); \
	}
#define ONE(v, is_wide) \
	{ \
		.version = #v, .wide = is_wide, .name = name_##v, \
		.init = init_##v, .finalize = finalize_##v, \
		.devices = devices_##v, .properties = properties_##v, \
		.listen = listen_##v, .connect = connect_##v, \
		.accept = accept_##v, .reg = reg_##v, .dereg = dereg_##v, \
		.isend = isend_##v, .irecv = irecv_##v, .flush = flush_##v, \
		.test = test_##v, .close_send = close_send_##v, \
		.close_recv = close_recv_##v, \
		.close_listen = close_listen_##v, \
	}

COMMON(v6)
OLD(v6)
OLD_INIT(v6)
INT_SIZES(v6)

static enum nccl_result connect_v6(void *ctx, int dev, void *handle, void **comm)
{
	(void)ctx;
	return v6->connect(dev, handle, comm);
}

static enum nccl_result accept_v6(void *listener, void **comm)
{
	return v6->accept(listener, comm);
}

static enum nccl_result reg_v6(void *comm, void *data, size_t size, int type,
			       void **mhandle)
{
	return v6->reg(comm, data, (int)size, type, mhandle);
}

static enum nccl_result properties_v6(int dev, struct nccl_properties_v12 *p)
{
	struct nccl_properties_v6 is = { 0 };
	enum nccl_result result = v6->properties(dev, &is);

	*p = (struct nccl_properties_v12){
		.name = is.name, .pci_path = is.pci_path, .guid = is.guid,
		.ptr_support = is.ptr_support, .speed = is.speed,
		.port = is.port, .latency = is.latency,
		.max_comms = is.max_comms, .max_recvs = is.max_recvs,
	};
	return result;
}

COMMON(v8)
OLD(v8)
OLD_INIT(v8)
SINCE_V8(v8)
CONNECT(v8)
INT_SIZES(v8)

static enum nccl_result properties_v8(int dev, struct nccl_properties_v12 *p)
{
	struct nccl_properties_v8 is = { 0 };
	enum nccl_result result = v8->properties(dev, &is);

	*p = (struct nccl_properties_v12){
		.name = is.name, .pci_path = is.pci_path, .guid = is.guid,
		.ptr_support = is.ptr_support, .speed = is.speed,
		.port = is.port, .latency = is.latency,
		.max_comms = is.max_comms, .max_recvs = is.max_recvs,
	};
	return result;
}

COMMON(v9)
OLD(v9)
OLD_INIT(v9)
SINCE_V8(v9)
CONNECT(v9)

static void widen(const struct nccl_properties_v9 *is,
		  struct nccl_properties_v12 *p)
{
	*p = (struct nccl_properties_v12){
		.name = is->name, .pci_path = is->pci_path, .guid = is->guid,
		.ptr_support = is->ptr_support, .speed = is->speed,
		.port = is->port, .latency = is->latency,
		.max_comms = is->max_comms, .max_recvs = is->max_recvs,
		.max_p2p_bytes = is->max_p2p_bytes,
	};
}

static enum nccl_result properties_v9(int dev, struct nccl_properties_v12 *p)
{
	struct nccl_properties_v9 is = { 0 };
	enum nccl_result result = v9->properties(dev, &is);

	widen(&is, p);
	return result;
}

static enum nccl_result isend_v9(void *comm, void *data, size_t size, int tag,
				 void *mhandle, void **request)
{
	return v9->isend(comm, data, size, tag, mhandle, request);
}

static enum nccl_result irecv_v9(void *comm, int n, void **data, size_t *sizes,
				 int *tags, void **mhandles, void **request)
{
	return v9->irecv(comm, n, data, sizes, tags, mhandles, request);
}

COMMON(v10)
OLD(v10)
SINCE_V8(v10)
PROFILED(v10)

static enum nccl_result init_v10(void **ctx)
{
	*ctx = NULL;
	return v10->init(logger, NULL);
}

static enum nccl_result connect_v10(void *ctx, int dev, void *handle,
				    void **comm)
{
	struct nccl_config config = { .traffic_class = -1 };
	void *device = NULL;

	(void)ctx;
	return v10->connect(dev, &config, handle, comm, &device);
}

static enum nccl_result properties_v10(int dev, struct nccl_properties_v12 *p)
{
	struct nccl_properties_v9 is = { 0 };
	enum nccl_result result = v10->properties(dev, &is);

	widen(&is, p);
	return result;
}

COMMON(v11)
NEW(v11)
SINCE_V8(v11)
PROFILED(v11)

static enum nccl_result properties_v11(int dev, struct nccl_properties_v12 *p)
{
	struct nccl_properties_v11 is = { 0 };
	enum nccl_result result = v11->properties(dev, &is);

	widen(&is.v9, p);
	return result;
}

COMMON(v12)
NEW(v12)
SINCE_V8(v12)
PROFILED(v12)

static enum nccl_result properties_v12(int dev, struct nccl_properties_v12 *p)
{
	return v12->properties(dev, p);
}

const struct plugin plugins[PLUGINS] = {
	ONE(v6, false), ONE(v8, false), ONE(v9, true), ONE(v10, true),
	ONE(v11, true), ONE(v12, true),
};

/* ---- the other side ---------------------------------------------------- */

void other_start(struct other *other, void (*play)(int fd, const void *arg),
		 const void *arg)
{
	int fds[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	other->pid = fork();
	CHECK(other->pid >= 0);
	if (!other->pid) {
		close(fds[0]);
		play(fds[1], arg);
		exit(0);
	}
	close(fds[1]);
	other->fd = fds[0];
}

void other_end(struct other *other)
{
	int status;

	CHECK_EQ(waitpid(other->pid, &status, 0), other->pid);
	CHECK_EQ(status, 0);
	close(other->fd);
}

void other_kill(struct other *other)
{
	kill(other->pid, SIGKILL);
	waitpid(other->pid, NULL, 0);
	close(other->fd);
}

void say(int fd, const void *data, size_t n)
{
	CHECK_EQ(write(fd, data, n), (ssize_t)n);
}

void hear(int fd, void *data, size_t n)
{
	CHECK_EQ(recv(fd, data, n, MSG_WAITALL), (ssize_t)n);
}

/* ---- connections ------------------------------------------------------- */

void side_receive(struct side *side, const struct plugin *p, int fd)
{
	memset(side, 0, sizeof(*side));
	side->p = p;
	CHECK_EQ(p->init(&side->ctx), NCCL_SUCCESS);
	CHECK_EQ(p->listen(side->ctx, 0, side->handle, &side->listener),
		 NCCL_SUCCESS);
	say(fd, side->handle, sizeof(side->handle));
	while (!side->comm) {
		CHECK_EQ(p->accept(side->listener, &side->comm), NCCL_SUCCESS);
		sched_yield();
	}
}

void side_send(struct side *side, const struct plugin *p, int fd)
{
	memset(side, 0, sizeof(*side));
	side->p = p;
	CHECK_EQ(p->init(&side->ctx), NCCL_SUCCESS);
	hear(fd, side->handle, sizeof(side->handle));
	while (!side->comm) {
		CHECK_EQ(p->connect(side->ctx, 0, side->handle, &side->comm),
			 NCCL_SUCCESS);
		sched_yield();
	}
}

void side_close(struct side *side, bool sends)
{
	const struct plugin *p = side->p;

	CHECK_EQ(sends ? p->close_send(side->comm) : p->close_recv(side->comm),
		 NCCL_SUCCESS);
	if (side->listener)
		CHECK_EQ(p->close_listen(side->listener), NCCL_SUCCESS);
	CHECK_EQ(p->finalize(side->ctx), NCCL_SUCCESS);
}

enum nccl_result finish(const struct plugin *p, void *request, int *sizes)
{
	enum nccl_result result;
	int done = 0;

	do {
		result = p->test(request, &done, sizes);
		sched_yield();
	} while (!result && !done);
	return result;
}

enum nccl_result send_all(struct side *side, void *data, size_t n, int tag,
			  void *mhandle)
{
	enum nccl_result result;
	void *request = NULL;
	int size = -1;

	do {
		result = side->p->isend(side->comm, data, n, tag, mhandle,
					&request);
		sched_yield();
	} while (!result && !request);
	if (!result)
		result = finish(side->p, request, &size);
	CHECK(result || size == (int)n);
	return result;
}

enum nccl_result recv_all(struct side *side, void *data, size_t n, int tag,
			  void *mhandle, int *size)
{
	enum nccl_result result;
	void *request = NULL;

	do {
		result = side->p->irecv(side->comm, 1, &data, &n, &tag,
					&mhandle, &request);
	} while (!result && !request);
	return result ? result : finish(side->p, request, size);
}

/* ---- data -------------------------------------------------------------- */

void pattern(void *to, size_t n, unsigned int seed)
{
	unsigned char *byte = to;
	size_t i;

	for (i = 0; i < n; i++)
		byte[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

bool is_pattern(const void *at, size_t n, unsigned int seed)
{
	const unsigned char *byte = at;
	size_t i;

	for (i = 0; i < n; i++)
		if (byte[i] != (unsigned char)(i * 7 + i / 251 + seed))
			return false;
	return true;
}
