// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What NCCL and RCCL find: a table for each version of their interface, around the
 * one implementation. They take the newest that they know. Sizes are int up to
 * v8; contexts, profilers and traffic classes of later versions are taken, and
 * change nothing: ports are opened and closed with communicators.
 */
#include <stdlib.h>
#include <string.h>

#include "net.h"

#define EXPORT	__attribute__((visibility("default")))

/* ---- all --------------------------------------------------------------- */

static enum nccl_result init(nccl_logger *log)
{
	int n;

	net_log_to(log);
	n = net_ports();
	INFO("libfabrex %s: %d port%s", fabrex_version(), n < 0 ? 0 : n,
	     n == 1 ? "" : "s");
	return n < 0 ? NCCL_SYSTEM_ERROR : NCCL_SUCCESS;
}

static enum nccl_result devices(int *n)
{
	int found = net_ports();

	if (!n)
		return NCCL_INVALID_ARGUMENT;
	*n = found < 0 ? 0 : found;
	return NCCL_SUCCESS;
}

static enum nccl_result connect_to(int dev, void *handle, void **comm,
				   void **device)
{
	if (device)
		*device = NULL;
	return net_connect(dev, handle, comm);
}

static enum nccl_result accept_from(void *listener, void **comm, void **device)
{
	if (device)
		*device = NULL;
	return net_accept(listener, comm);
}

/* ---- v6, v8 ------------------------------------------------------------ */

static enum nccl_result properties_v6(int dev, struct nccl_properties_v6 *out)
{
	struct nccl_properties_v12 p;
	enum nccl_result result = net_properties(dev, &p);

	if (!result)
		*out = (struct nccl_properties_v6){
			.name = p.name, .pci_path = p.pci_path,
			.guid = p.guid, .ptr_support = p.ptr_support,
			.speed = p.speed, .port = p.port,
			.latency = p.latency, .max_comms = p.max_comms,
			.max_recvs = p.max_recvs,
		};
	return result;
}

static enum nccl_result properties_v8(int dev, struct nccl_properties_v8 *out)
{
	struct nccl_properties_v12 p;
	enum nccl_result result = net_properties(dev, &p);

	if (!result)
		*out = (struct nccl_properties_v8){
			.name = p.name, .pci_path = p.pci_path,
			.guid = p.guid, .ptr_support = p.ptr_support,
			.reg_is_global = p.reg_is_global,
			.speed = p.speed, .port = p.port,
			.latency = p.latency, .max_comms = p.max_comms,
			.max_recvs = p.max_recvs,
			.device_type = p.device_type,
			.device_version = p.device_version,
		};
	return result;
}

static enum nccl_result accept_v6(void *listener, void **comm)
{
	return net_accept(listener, comm);
}

static enum nccl_result reg_int(void *comm, void *data, int size, int type,
				void **mhandle)
{
	if (size < 0)
		return NCCL_INVALID_ARGUMENT;
	return net_reg(comm, data, (size_t)size, type, mhandle);
}

static enum nccl_result isend_int(void *comm, void *data, int size, int tag,
				  void *mhandle, void **request)
{
	if (size < 0)
		return NCCL_INVALID_ARGUMENT;
	return net_isend(comm, data, (size_t)size, tag, mhandle, request);
}

static enum nccl_result irecv_int(void *comm, int n, void **data, int *sizes,
				  int *tags, void **mhandles, void **request)
{
	size_t wide[NCCL_RECEIVES_MAX];
	int i;

	for (i = 0; i < n && i < NCCL_RECEIVES_MAX; i++) {
		if (sizes[i] < 0)
			return NCCL_INVALID_ARGUMENT;
		wide[i] = (size_t)sizes[i];
	}
	return net_irecv(comm, n, data, wide, tags, mhandles, request);
}

EXPORT const struct nccl_net_v6 ncclNetPlugin_v6 = {
	.name = NET_NAME,
	.init = init,
	.devices = devices,
	.properties = properties_v6,
	.listen = net_listen,
	.connect = net_connect,
	.accept = accept_v6,
	.reg = reg_int,
	.reg_dmabuf = net_reg_dmabuf,
	.dereg = net_dereg,
	.isend = isend_int,
	.irecv = irecv_int,
	.flush = net_flush,
	.test = net_test,
	.close_send = net_close,
	.close_recv = net_close,
	.close_listen = net_close_listen,
};

EXPORT const struct nccl_net_v8 ncclNetPlugin_v8 = {
	.name = NET_NAME,
	.init = init,
	.devices = devices,
	.properties = properties_v8,
	.listen = net_listen,
	.connect = connect_to,
	.accept = accept_from,
	.reg = net_reg,
	.reg_dmabuf = net_reg_dmabuf,
	.dereg = net_dereg,
	.isend = isend_int,
	.irecv = irecv_int,
	.flush = net_flush,
	.test = net_test,
	.close_send = net_close,
	.close_recv = net_close,
	.close_listen = net_close_listen,
};

/* ---- v9, v10 ----------------------------------------------------------- */

static void narrow(const struct nccl_properties_v12 *p,
		   struct nccl_properties_v9 *out)
{
	*out = (struct nccl_properties_v9){
		.name = p->name, .pci_path = p->pci_path, .guid = p->guid,
		.ptr_support = p->ptr_support,
		.reg_is_global = p->reg_is_global,
		.force_flush = p->force_flush, .speed = p->speed,
		.port = p->port, .latency = p->latency,
		.max_comms = p->max_comms, .max_recvs = p->max_recvs,
		.device_type = p->device_type,
		.device_version = p->device_version,
		.vdevice = { .ndevs = 1, .devs = { p->vdevice.devs[0] } },
		.max_p2p_bytes = p->max_p2p_bytes,
		.max_coll_bytes = p->max_coll_bytes,
	};
}

static enum nccl_result properties_v9(int dev, struct nccl_properties_v9 *out)
{
	struct nccl_properties_v12 p;
	enum nccl_result result = net_properties(dev, &p);

	if (!result)
		narrow(&p, out);
	return result;
}

static enum nccl_result irecv_v9(void *comm, int n, void **data, size_t *sizes,
				 int *tags, void **mhandles, void **request)
{
	return net_irecv(comm, n, data, sizes, tags, mhandles, request);
}

EXPORT const struct nccl_net_v9 ncclNetPlugin_v9 = {
	.name = NET_NAME,
	.init = init,
	.devices = devices,
	.properties = properties_v9,
	.listen = net_listen,
	.connect = connect_to,
	.accept = accept_from,
	.reg = net_reg,
	.reg_dmabuf = net_reg_dmabuf,
	.dereg = net_dereg,
	.isend = net_isend,
	.irecv = irecv_v9,
	.flush = net_flush,
	.test = net_test,
	.close_send = net_close,
	.close_recv = net_close,
	.close_listen = net_close_listen,
};

static enum nccl_result init_v10(nccl_logger *log, void *profile)
{
	(void)profile;
	return init(log);
}

static enum nccl_result connect_v10(int dev, struct nccl_config *config,
				    void *handle, void **comm, void **device)
{
	(void)config;
	return connect_to(dev, handle, comm, device);
}

static enum nccl_result isend_v10(void *comm, void *data, size_t size, int tag,
				  void *mhandle, void *profiler,
				  void **request)
{
	(void)profiler;
	return net_isend(comm, data, size, tag, mhandle, request);
}

static enum nccl_result irecv_v10(void *comm, int n, void **data,
				  size_t *sizes, int *tags, void **mhandles,
				  void **profilers, void **request)
{
	(void)profilers;
	return net_irecv(comm, n, data, sizes, tags, mhandles, request);
}

EXPORT const struct nccl_net_v10 ncclNetPlugin_v10 = {
	.name = NET_NAME,
	.init = init_v10,
	.devices = devices,
	.properties = properties_v9,
	.listen = net_listen,
	.connect = connect_v10,
	.accept = accept_from,
	.reg = net_reg,
	.reg_dmabuf = net_reg_dmabuf,
	.dereg = net_dereg,
	.isend = isend_v10,
	.irecv = irecv_v10,
	.flush = net_flush,
	.test = net_test,
	.close_send = net_close,
	.close_recv = net_close,
	.close_listen = net_close_listen,
};

/* ---- v11, v12 ---------------------------------------------------------- */

/* NCCL passes it back; something that is not NULL. */
static char context;

static enum nccl_result init_v11(void **ctx, uint64_t comm,
				 struct nccl_config *config, nccl_logger *log,
				 void *profile)
{
	(void)comm;
	(void)config;
	(void)profile;
	if (ctx)
		*ctx = &context;
	return init(log);
}

static enum nccl_result finalize(void *ctx)
{
	return ctx == &context ? NCCL_SUCCESS : NCCL_INVALID_ARGUMENT;
}

static enum nccl_result listen_in(void *ctx, int dev, void *handle,
				  void **listener)
{
	(void)ctx;
	return net_listen(dev, handle, listener);
}

static enum nccl_result connect_in(void *ctx, int dev, void *handle,
				   void **comm, void **device)
{
	(void)ctx;
	return connect_to(dev, handle, comm, device);
}

static enum nccl_result attributes(void *ctx, void *what)
{
	(void)ctx;
	(void)what;
	return NCCL_SUCCESS;
}

static enum nccl_result properties_v11(int dev, struct nccl_properties_v11 *out)
{
	struct nccl_properties_v12 p;
	enum nccl_result result = net_properties(dev, &p);

	if (!result) {
		narrow(&p, &out->v9);
		out->max_multi_request_size = p.max_multi_request_size;
	}
	return result;
}

EXPORT const struct nccl_net_v11 ncclNetPlugin_v11 = {
	.name = NET_NAME,
	.init = init_v11,
	.devices = devices,
	.properties = properties_v11,
	.listen = listen_in,
	.connect = connect_in,
	.accept = accept_from,
	.reg = net_reg,
	.reg_dmabuf = net_reg_dmabuf,
	.dereg = net_dereg,
	.isend = isend_v10,
	.irecv = irecv_v10,
	.flush = net_flush,
	.test = net_test,
	.close_send = net_close,
	.close_recv = net_close,
	.close_listen = net_close_listen,
	.finalize = finalize,
	.attributes = attributes,
};

EXPORT const struct nccl_net_v12 ncclNetPlugin_v12 = {
	.name = NET_NAME,
	.init = init_v11,
	.devices = devices,
	.properties = net_properties,
	.listen = listen_in,
	.connect = connect_in,
	.accept = accept_from,
	.reg = net_reg,
	.reg_dmabuf = net_reg_dmabuf,
	.dereg = net_dereg,
	.isend = isend_v10,
	.irecv = irecv_v10,
	.flush = net_flush,
	.test = net_test,
	.close_send = net_close,
	.close_recv = net_close,
	.close_listen = net_close_listen,
	.finalize = finalize,
	.attributes = attributes,
};
