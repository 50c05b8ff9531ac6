/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A small vfio-user client for tests: well-formed requests, and raw ones.
 */
#ifndef EMU_TEST_CLIENT_H
#define EMU_TEST_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client {
	int fd;
	uint16_t id;
	int reply_fd;		/* came with the last reply, or -1 */
};

/* Connect, without a VERSION message. 0 or -errno. */
int client_connect(struct client *c, const char *path);
void client_close(struct client *c);

/* Bytes as they are, with descriptors. */
int client_raw(struct client *c, const void *buf, size_t len, const int *fds,
	       unsigned int nfds);
int client_send(struct client *c, uint16_t command, uint32_t flags,
		const void *payload, size_t len, const int *fds,
		unsigned int nfds);

/*
 * Request and reply: bytes of reply payload, -errno from an error reply, or
 * -EPIPE if the server closed the connection.
 */
int client_call(struct client *c, uint16_t command, const void *payload,
		size_t len, const int *fds, unsigned int nfds, void *reply,
		size_t size);
int client_reply(struct client *c, void *reply, size_t size);

/* True once the server has closed the connection (waits up to 5 s). */
bool client_closed(struct client *c);

int client_version(struct client *c);
int client_map(struct client *c, uint64_t addr, uint64_t len, int fd,
	       uint64_t offset);
int client_unmap(struct client *c, uint64_t addr, uint64_t len);
int client_read(struct client *c, uint32_t region, uint64_t offset, void *buf,
		uint32_t count);
int client_write(struct client *c, uint32_t region, uint64_t offset,
		 const void *buf, uint32_t count);
int client_post(struct client *c, uint32_t region, uint64_t offset,
		const void *buf, uint32_t count);
/* Eventfds for vectors; fds NULL: take away. */
int client_set_irqs(struct client *c, uint32_t start, uint32_t count,
		    const int *fds);

uint32_t client_config(struct client *c, uint64_t offset, uint32_t count);
int client_set_config(struct client *c, uint64_t offset, uint32_t value,
		      uint32_t count);

#endif
