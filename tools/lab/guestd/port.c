// SPDX-License-Identifier: GPL-2.0-only
/*
 * The virtio-serial port to the lab: finding it, whole frames in and out.
 * Called by main.c and job.c.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "guestd.h"

static int port_named(const char *dev)
{
	char path[288], name[64] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", dev);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (read(fd, name, sizeof(name) - 1) < 0)
		name[0] = '\0';
	close(fd);
	name[strcspn(name, "\n")] = '\0';
	return !strcmp(name, PORT_NAME);
}

/* The port's file descriptor, or -1 when the guest has no such port. */
int port_open(void)
{
	DIR *dir = opendir("/sys/class/virtio-ports");
	struct dirent *entry;
	char path[288];
	int fd = -1;

	while (dir && fd < 0 && (entry = readdir(dir))) {
		if (!port_named(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	if (dir)
		closedir(dir);
	return fd;
}

static int read_all(int fd, void *buf, size_t len)
{
	char *at = buf;

	while (len) {
		ssize_t n = read(fd, at, len);

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return -1;
		at += n;
		len -= n;
	}
	return 0;
}

/* Read one frame; payload has room for FRAME_MAX bytes. */
int port_read_frame(int port, struct frame *head, char *payload)
{
	if (read_all(port, head, sizeof(*head)))
		return -1;
	if (head->magic != FRAME_MAGIC || head->len > FRAME_MAX)
		return -1;
	return read_all(port, payload, head->len);
}

/* Send one frame in one write, so that a reset of the guest rarely cuts it. */
void port_send(int port, enum frame_type type, uint32_t id,
	       const void *data, uint32_t len)
{
	static char buf[sizeof(struct frame) + FRAME_MAX];
	struct frame head = {
		.magic = FRAME_MAGIC, .type = type, .id = id, .len = len,
	};
	size_t at = 0, total = sizeof(head) + len;

	memcpy(buf, &head, sizeof(head));
	if (len)
		memcpy(buf + sizeof(head), data, len);
	while (at < total) {
		ssize_t n = write(port, buf + at, total - at);

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return;
		if (n > 0)
			at += n;
	}
}
