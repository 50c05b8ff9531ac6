/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What NCCL and RCCL look up in a net plugin: ncclNetPlugin_v6, and v8 to v12. Names
 * are ours; numbers, orders and sizes are the libraries' own, which
 * tests/layout.c holds against them. In a version, what is not said here is
 * as in the one before.
 */
#ifndef FABREX_NCCL_NET_ABI_H
#define FABREX_NCCL_NET_ABI_H

#include <stddef.h>
#include <stdint.h>

enum nccl_result {
	NCCL_SUCCESS,
	NCCL_UNHANDLED_CUDA_ERROR,
	NCCL_SYSTEM_ERROR,
	NCCL_INTERNAL_ERROR,
	NCCL_INVALID_ARGUMENT,
	NCCL_INVALID_USAGE,
	NCCL_REMOTE_ERROR,
};

enum nccl_log_level {
	NCCL_LOG_WARN = 2,
	NCCL_LOG_INFO = 3,
};

#define NCCL_LOG_INIT	0x1ul
#define NCCL_LOG_NET	0x10ul

typedef void nccl_logger(int level, unsigned long flags, const char *file,
			 int line, const char *format, ...);

#define NCCL_PTR_HOST	1
#define NCCL_PTR_CUDA	2	/* any GPU */
#define NCCL_PTR_DMABUF	4

#define NCCL_HANDLE_MAX		128	/* bytes of a listen handle */
#define NCCL_REQUESTS_MAX	32	/* of a communicator, in flight */
#define NCCL_RECEIVES_MAX	8	/* in a group */
#define NCCL_DEVICE_HOST	0	/* no offload */
#define NCCL_DEVICE_INVALID	0	/* so there is no version of it */
#define NCCL_ID_UNDEFINED	(-1)
/* In *request, when irecv() is called: nobody waits for its end. */
#define NCCL_OPTIONAL_COMPLETION	1

/* Several devices as one: v11 has room for 4, v12 for 8. */
struct nccl_vdevice_v9 {
	int ndevs;
	int devs[4];
};

struct nccl_vdevice_v12 {
	int ndevs;
	int devs[8];
};

struct nccl_properties_v6 {
	char *name;
	char *pci_path;		/* in sysfs; may be NULL */
	uint64_t guid;
	int ptr_support;	/* NCCL_PTR_* */
	int speed;		/* Mbit/s */
	int port;
	float latency;		/* us */
	int max_comms;
	int max_recvs;
};

struct nccl_properties_v8 {
	char *name;
	char *pci_path;
	uint64_t guid;
	int ptr_support;
	int reg_is_global;	/* a registration serves all communicators */
	int speed;
	int port;
	float latency;
	int max_comms;
	int max_recvs;
	int device_type;
	int device_version;
};

struct nccl_properties_v9 {	/* and v10 */
	char *name;
	char *pci_path;
	uint64_t guid;
	int ptr_support;
	int reg_is_global;
	int force_flush;	/* data may arrive after its completion */
	int speed;
	int port;
	float latency;
	int max_comms;
	int max_recvs;
	int device_type;
	int device_version;
	struct nccl_vdevice_v9 vdevice;
	size_t max_p2p_bytes;
	size_t max_coll_bytes;
};

struct nccl_properties_v11 {
	struct nccl_properties_v9 v9;
	int max_multi_request_size;
};

struct nccl_properties_v12 {
	char *name;
	char *pci_path;
	uint64_t guid;
	int ptr_support;
	int reg_is_global;
	int force_flush;
	int speed;
	int port;
	float latency;
	int max_comms;
	int max_recvs;
	int device_type;
	int device_version;
	struct nccl_vdevice_v12 vdevice;
	size_t max_p2p_bytes;
	size_t max_coll_bytes;
	int max_multi_request_size;
	int16_t rail;
	int16_t plane;
};

typedef enum nccl_result nccl_devices_fn(int *n);
typedef enum nccl_result nccl_reg_dmabuf_fn(void *comm, void *data, size_t size,
					    int type, uint64_t offset, int fd,
					    void **mhandle);
typedef enum nccl_result nccl_reg_fn(void *comm, void *data, size_t size,
				     int type, void **mhandle);
typedef enum nccl_result nccl_dereg_fn(void *comm, void *mhandle);
typedef enum nccl_result nccl_flush_fn(void *comm, int n, void **data,
				       int *sizes, void **mhandles,
				       void **request);
typedef enum nccl_result nccl_test_fn(void *request, int *done, int *sizes);
typedef enum nccl_result nccl_close_fn(void *comm);
typedef enum nccl_result nccl_accept_fn(void *listener, void **comm,
					void **device);
typedef enum nccl_result nccl_listen_fn(int dev, void *handle, void **listener);

struct nccl_net_v6 {
	const char *name;
	enum nccl_result (*init)(nccl_logger *log);
	nccl_devices_fn *devices;
	enum nccl_result (*properties)(int dev, struct nccl_properties_v6 *p);
	nccl_listen_fn *listen;
	enum nccl_result (*connect)(int dev, void *handle, void **comm);
	enum nccl_result (*accept)(void *listener, void **comm);
	enum nccl_result (*reg)(void *comm, void *data, int size, int type,
				void **mhandle);
	nccl_reg_dmabuf_fn *reg_dmabuf;
	nccl_dereg_fn *dereg;
	enum nccl_result (*isend)(void *comm, void *data, int size, int tag,
				  void *mhandle, void **request);
	enum nccl_result (*irecv)(void *comm, int n, void **data, int *sizes,
				  int *tags, void **mhandles, void **request);
	nccl_flush_fn *flush;
	nccl_test_fn *test;
	nccl_close_fn *close_send, *close_recv, *close_listen;
};

struct nccl_net_v8 {
	const char *name;
	enum nccl_result (*init)(nccl_logger *log);
	nccl_devices_fn *devices;
	enum nccl_result (*properties)(int dev, struct nccl_properties_v8 *p);
	nccl_listen_fn *listen;
	enum nccl_result (*connect)(int dev, void *handle, void **comm,
				    void **device);
	nccl_accept_fn *accept;
	nccl_reg_fn *reg;
	nccl_reg_dmabuf_fn *reg_dmabuf;
	nccl_dereg_fn *dereg;
	enum nccl_result (*isend)(void *comm, void *data, int size, int tag,
				  void *mhandle, void **request);
	enum nccl_result (*irecv)(void *comm, int n, void **data, int *sizes,
				  int *tags, void **mhandles, void **request);
	nccl_flush_fn *flush;
	nccl_test_fn *test;
	nccl_close_fn *close_send, *close_recv, *close_listen;
	void *device_mr, *device_consumed;	/* offload: NULL */
};

struct nccl_net_v9 {
	const char *name;
	enum nccl_result (*init)(nccl_logger *log);
	nccl_devices_fn *devices;
	enum nccl_result (*properties)(int dev, struct nccl_properties_v9 *p);
	nccl_listen_fn *listen;
	enum nccl_result (*connect)(int dev, void *handle, void **comm,
				    void **device);
	nccl_accept_fn *accept;
	nccl_reg_fn *reg;
	nccl_reg_dmabuf_fn *reg_dmabuf;
	nccl_dereg_fn *dereg;
	enum nccl_result (*isend)(void *comm, void *data, size_t size, int tag,
				  void *mhandle, void **request);
	enum nccl_result (*irecv)(void *comm, int n, void **data, size_t *sizes,
				  int *tags, void **mhandles, void **request);
	nccl_flush_fn *flush;
	nccl_test_fn *test;
	nccl_close_fn *close_send, *close_recv, *close_listen;
	void *device_mr, *device_consumed;
	enum nccl_result (*make_vdevice)(int *dev, struct nccl_vdevice_v9 *v);
};

/* Since v10: handles for a profiler, and a traffic class. */
struct nccl_config {
	int traffic_class;
};

typedef enum nccl_result nccl_isend_fn(void *comm, void *data, size_t size,
				       int tag, void *mhandle, void *profiler,
				       void **request);
typedef enum nccl_result nccl_irecv_fn(void *comm, int n, void **data,
				       size_t *sizes, int *tags,
				       void **mhandles, void **profilers,
				       void **request);

struct nccl_net_v10 {
	const char *name;
	enum nccl_result (*init)(nccl_logger *log, void *profile);
	nccl_devices_fn *devices;
	enum nccl_result (*properties)(int dev, struct nccl_properties_v9 *p);
	nccl_listen_fn *listen;
	enum nccl_result (*connect)(int dev, struct nccl_config *config,
				    void *handle, void **comm, void **device);
	nccl_accept_fn *accept;
	nccl_reg_fn *reg;
	nccl_reg_dmabuf_fn *reg_dmabuf;
	nccl_dereg_fn *dereg;
	nccl_isend_fn *isend;
	nccl_irecv_fn *irecv;
	nccl_flush_fn *flush;
	nccl_test_fn *test;
	nccl_close_fn *close_send, *close_recv, *close_listen;
	void *device_mr, *device_consumed;
	enum nccl_result (*make_vdevice)(int *dev, struct nccl_vdevice_v9 *v);
};

/* Since v11: a context for each of NCCL's communicators, which ends. */
typedef enum nccl_result nccl_init_fn(void **ctx, uint64_t comm,
				      struct nccl_config *config,
				      nccl_logger *log, void *profile);
typedef enum nccl_result nccl_listen_in_fn(void *ctx, int dev, void *handle,
					   void **listener);
typedef enum nccl_result nccl_connect_in_fn(void *ctx, int dev, void *handle,
					    void **comm, void **device);
typedef enum nccl_result nccl_finalize_fn(void *ctx);
typedef enum nccl_result nccl_attributes_fn(void *ctx, void *attributes);

struct nccl_net_v11 {
	const char *name;
	nccl_init_fn *init;
	nccl_devices_fn *devices;
	enum nccl_result (*properties)(int dev, struct nccl_properties_v11 *p);
	nccl_listen_in_fn *listen;
	nccl_connect_in_fn *connect;
	nccl_accept_fn *accept;
	nccl_reg_fn *reg;
	nccl_reg_dmabuf_fn *reg_dmabuf;
	nccl_dereg_fn *dereg;
	nccl_isend_fn *isend;
	nccl_irecv_fn *irecv;
	nccl_flush_fn *flush;
	nccl_test_fn *test;
	nccl_close_fn *close_send, *close_recv, *close_listen;
	void *device_mr, *device_consumed;
	enum nccl_result (*make_vdevice)(int *dev, struct nccl_vdevice_v9 *v);
	nccl_finalize_fn *finalize;
	nccl_attributes_fn *attributes;
};

struct nccl_net_v12 {
	const char *name;
	nccl_init_fn *init;
	nccl_devices_fn *devices;
	enum nccl_result (*properties)(int dev, struct nccl_properties_v12 *p);
	nccl_listen_in_fn *listen;
	nccl_connect_in_fn *connect;
	nccl_accept_fn *accept;
	nccl_reg_fn *reg;
	nccl_reg_dmabuf_fn *reg_dmabuf;
	nccl_dereg_fn *dereg;
	nccl_isend_fn *isend;
	nccl_irecv_fn *irecv;
	nccl_flush_fn *flush;
	nccl_test_fn *test;
	nccl_close_fn *close_send, *close_recv, *close_listen;
	void *device_mr, *device_consumed;
	enum nccl_result (*make_vdevice)(int *dev, struct nccl_vdevice_v12 *v);
	nccl_finalize_fn *finalize;
	nccl_attributes_fn *attributes;
};

#endif
