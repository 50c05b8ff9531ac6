/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A net plugin, loaded as NCCL does it: by dlopen(), one version of its interface.
 * What versions have in common has one form here, so that each test runs over all.
 * FABREX_NCCL_PLUGIN names the object.
 */
#ifndef FABREX_NCCL_PLUGIN_H
#define FABREX_NCCL_PLUGIN_H

#include <stdbool.h>
#include <sys/types.h>

#include "harness.h"
#include "net_abi.h"

struct plugin {
	const char *version;
	bool wide;		/* lengths are size_t */
	const char *(*name)(void);
	enum nccl_result (*init)(void **ctx);
	enum nccl_result (*finalize)(void *ctx);
	nccl_devices_fn *devices;
	enum nccl_result (*properties)(int dev, struct nccl_properties_v12 *p);
	nccl_listen_in_fn *listen;
	enum nccl_result (*connect)(void *ctx, int dev, void *handle, void **comm);
	enum nccl_result (*accept)(void *listener, void **comm);
	nccl_reg_fn *reg;
	nccl_dereg_fn *dereg;
	enum nccl_result (*isend)(void *comm, void *data, size_t size, int tag,
				  void *mhandle, void **request);
	enum nccl_result (*irecv)(void *comm, int n, void **data, size_t *sizes,
				  int *tags, void **mhandles, void **request);
	nccl_flush_fn *flush;
	nccl_test_fn *test;
	nccl_close_fn *close_send, *close_recv, *close_listen;
};

#define PLUGINS	6
extern const struct plugin plugins[PLUGINS];

/* The object's tables are found; the fabric is this test's own. */
void plugin_load(void);
void plugin_unload(void);
/* A line of its log since the last call has this text. */
bool plugin_said(const char *text);

/* ---- two sides --------------------------------------------------------- */

/* Another process, which plays the other side. */
struct other {
	pid_t pid;
	int fd;
};
/* play(fd) in a child. Before anything is opened here. */
void other_start(struct other *other, void (*play)(int fd, const void *arg),
		 const void *arg);
void other_end(struct other *other);
void other_kill(struct other *other);
void say(int fd, const void *data, size_t n);
void hear(int fd, void *data, size_t n);

/* One end of a connection. */
struct side {
	const struct plugin *p;
	void *ctx, *listener, *comm;
	char handle[NCCL_HANDLE_MAX];
};
/* The receiver passes its handle through fd, and the sender takes it. */
void side_receive(struct side *side, const struct plugin *p, int fd);
void side_send(struct side *side, const struct plugin *p, int fd);
void side_close(struct side *side, bool sends);

/* Until it is done; the result. */
enum nccl_result finish(const struct plugin *p, void *request, int *sizes);
/* Begun as soon as it can be, and finished. */
enum nccl_result send_all(struct side *side, void *data, size_t n, int tag,
			  void *mhandle);
enum nccl_result recv_all(struct side *side, void *data, size_t n, int tag,
			  void *mhandle, int *size);

void pattern(void *to, size_t n, unsigned int seed);
bool is_pattern(const void *at, size_t n, unsigned int seed);

#endif
