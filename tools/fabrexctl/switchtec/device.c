// SPDX-License-Identifier: GPL-2.0-only
/* See device.h. Interface: Documentation/driver-api/switchtec.rst. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/switchtec_ioctl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "device.h"
#include "p2p/near.h"
#include "p2p/sysfs.h"
#include "util.h"

#define CLASS	"/sys/class/switchtec"
#define MOST	1024u		/* bytes of a command, and of an answer */

/* ---- what there is ------------------------------------------------------- */

static bool attribute(const struct p2p_env *env, const struct switchtec *d,
		      const char *name, char *text, size_t len)
{
	char path[SYSFS_PATH];

	return !fxi_sysfs_path(path, env->root, CLASS "/switchtec%u/%s",
			       d->index, name) &&
	       fxi_sysfs_line(path, text, len);
}

static int number(const struct p2p_env *env, const struct switchtec *d,
		  const char *name, uint64_t most, uint32_t *out,
		  struct err *e)
{
	char text[32] = "";
	uint64_t v;

	if (!attribute(env, d, name, text, sizeof(text)) ||
	    !parse_u64(text, 0, most, &v))
		return err_set(e, EPROTO, d->node, "%s: its attribute \"%s\" "
			       "in " CLASS "/switchtec%u is \"%s\", which is "
			       "not a valid value", d->node, name, d->index, text);
	*out = (uint32_t)v;
	return 0;
}

static int find_function(const struct p2p_env *env, struct switchtec *d,
			 struct err *e)
{
	char link[SYSFS_PATH], top[SYSFS_PATH], path[SYSFS_PATH];
	const char *word = NULL;
	struct pci_addr addr;

	if (!fxi_sysfs_path(link, env->root, CLASS "/switchtec%u/device",
			    d->index) &&
	    !fxi_sysfs_path(top, env->root, "/sys/devices") &&
	    fxi_sysfs_resolve(link, top, path))
		word = strrchr(path, '/') + 1;
	if (!word || !fxi_pci_parse(word, &addr))
		return err_set(e, EPROTO, d->node, "%s: sysfs does not say of "
			       "which PCI function it is", d->node);
	fxi_pci_name(&addr, d->pci);
	return 0;
}

/*
 * By the part number: PFX and PFX-A of the fourth to sixth generation, PFX of the
 * third (switchtec-user, lib/switchtec.c). Others bind nothing, or functions.
 */
static bool is_pfx(const struct p2p_env *env, const struct switchtec *d)
{
	uint32_t part = fxi_device_hex(env, d->pci, "device", 0xffff);

	switch (part >> 8) {
	case 0x40:
	case 0x43:
	case 0x50:
	case 0x53:
	case 0x60:
	case 0x63:
		return true;
	}
	return part >> 4 == 0x853;
}

static int read_device(const struct p2p_env *env, struct switchtec *d,
		       struct err *e)
{
	char text[64];
	int r = number(env, d, "partition", 47, &d->partition, e);

	if (!r && attribute(env, d, "product_id", text, sizeof(text)))
		d->emulated = strstr(text, "emulated");
	return r;
}

static int by_index(const void *a, const void *b)
{
	const struct switchtec *x = a, *y = b;

	return x->index < y->index ? -1 : x->index > y->index;
}

int device_list(const struct p2p_env *env, struct switchtec v[DEVICE_MOST],
		struct err *e)
{
	static const char prefix[] = "switchtec";
	char path[SYSFS_PATH];
	const char *entry;
	uint64_t index;
	DIR *dir = NULL;
	int n = 0, r = 0;

	if (!fxi_sysfs_path(path, env->root, CLASS))
		dir = opendir(path);
	while (dir && !r && n < DEVICE_MOST && (entry = fxi_sysfs_next(dir))) {
		struct switchtec *d = &v[n];

		if (strncmp(entry, prefix, strlen(prefix)) ||
		    !parse_u64(entry + strlen(prefix), 0, 9999, &index))
			continue;
		*d = (struct switchtec){ .index = (unsigned int)index,
					 .fd = -1 };
		snprintf(d->node, sizeof(d->node), "/dev/switchtec%u",
			 d->index);
		snprintf(d->path, sizeof(d->path), "%s%s", env->root, d->node);
		r = find_function(env, d, e);
		if (r || !is_pfx(env, d))
			continue;
		r = read_device(env, d, e);
		n++;
	}
	if (dir)
		closedir(dir);
	if (r)
		return r;
	qsort(v, (size_t)n, sizeof(*v), by_index);
	return n;
}

int device_open(struct switchtec *d, struct err *e)
{
	d->fd = open(d->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	d->spent = false;
	if (d->fd >= 0)
		return 0;
	if (errno == EACCES || errno == EPERM)
		return err_set(e, errno, d->node, "cannot open %s: %s; whoever "
			       "may open it may bind and reset ports of all "
			       "hosts, so run fabrexctl as root", d->node,
			       strerror(errno));
	return err_set(e, errno, d->node, "cannot open %s: %s", d->node,
		       strerror(errno));
}

void device_close(struct switchtec *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

/* ---- commands ------------------------------------------------------------ */

static int silent(struct switchtec *d, uint32_t command, struct err *e)
{
	d->spent = true;
	return err_set(e, ETIMEDOUT, d->node, "%s: the switch has not answered "
		       "command %#x within %.0f s; its firmware hangs, or "
		       "another program's command is not done yet. This "
		       "command may still be executed: see \"fabrexctl "
		       "list\"", d->node, command, DEVICE_SECONDS);
}

static int failed(struct switchtec *d, uint32_t command, const char *what,
		  int err, struct err *e)
{
	d->spent = true;
	return err_set(e, err, d->node, "%s: could not %s command %#x: %s",
		       d->node, what, command, err == ENODEV ?
		       "the switch's management function is gone" :
		       strerror(err));
}

/* The driver takes one command of each open file, until its answer is read. */
static int renew(struct switchtec *d, struct err *e)
{
	if (!d->spent)
		return 0;
	device_close(d);
	return device_open(d, e);
}

/* 0 when @buf has the answer. A signal or a lock that is held is no reason. */
static int take_answer(struct switchtec *d, uint32_t command, uint8_t *buf,
		       size_t len, struct err *e)
{
	struct pollfd p = { .fd = d->fd, .events = POLLIN };
	double end = now() + DEVICE_SECONDS, left;
	ssize_t n;

	while ((left = end - now()) > 0) {
		if (poll(&p, 1, (int)(left * 1000) + 1) < 0 && errno != EINTR)
			return failed(d, command, "wait for", errno, e);
		n = read(d->fd, buf, len);
		if (n == (ssize_t)len)
			return 0;
		if (n >= 0)
			return failed(d, command, "read the answer to", EPROTO,
				      e);
		if (errno != EAGAIN && errno != EINTR)
			return failed(d, command, "read the answer to", errno,
				      e);
	}
	return silent(d, command, e);
}

int device_command(struct switchtec *d, uint32_t command, const void *in,
		   size_t in_len, void *out, size_t out_len, uint32_t *ret,
		   struct err *e)
{
	const uint32_t le_command = htole32(command);
	uint8_t buf[4 + MOST];
	uint32_t le_ret;
	ssize_t n;
	int r = renew(d, e);

	if (r)
		return r;
	memcpy(buf, &le_command, 4);
	memcpy(buf + 4, in, in_len);
	n = write(d->fd, buf, 4 + in_len);
	if (n != (ssize_t)(4 + in_len))
		return failed(d, command, "send", n < 0 ? errno : EIO, e);
	r = take_answer(d, command, buf, 4 + out_len, e);
	if (r)
		return r;
	memcpy(&le_ret, buf, 4);
	*ret = le32toh(le_ret);
	memcpy(out, buf + 4, out_len);
	return 0;
}

/* ---- events -------------------------------------------------------------- */

int device_watch(struct switchtec *d, struct err *e)
{
	struct switchtec_ioctl_event_ctl ctl = {
		.event_id = SWITCHTEC_IOCTL_EVENT_DYN_PART_BIND_COMP,
		.index = SWITCHTEC_IOCTL_EVENT_LOCAL_PART_IDX,
		.flags = SWITCHTEC_IOCTL_EVENT_FLAG_CLEAR |
			 SWITCHTEC_IOCTL_EVENT_FLAG_EN_POLL,
	};
	struct switchtec_ioctl_event_summary s;

	/* Reading the summary is what makes the descriptor quiet. */
	if (ioctl(d->fd, SWITCHTEC_IOCTL_EVENT_SUMMARY, &s))
		return err_set(e, errno, d->node, "%s: cannot read events: %s",
			       d->node, strerror(errno));
	/* Without that event, bindings are looked at now and then. */
	if (!ioctl(d->fd, SWITCHTEC_IOCTL_EVENT_CTL, &ctl) ||
	    errno == EOPNOTSUPP)
		return 0;
	return err_set(e, errno, d->node, "%s: cannot ask for the event that "
		       "tells of bindings: %s", d->node, strerror(errno));
}
