// SPDX-License-Identifier: GPL-2.0-only
/* See device.h. Interface: Documentation/driver-api/switchtec.rst. */
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
			       "in " CLASS "/switchtec%u is \"%s\", which "
			       "makes no sense", d->node, name, d->index, text);
	*out = (uint32_t)v;
	return 0;
}

static int read_device(const struct p2p_env *env, struct switchtec *d,
		       struct err *e)
{
	char link[SYSFS_PATH], top[SYSFS_PATH], path[SYSFS_PATH], text[64];
	const char *word = NULL;
	struct pci_addr addr;
	int r;

	if (!fxi_sysfs_path(link, env->root, CLASS "/switchtec%u/device",
			    d->index) &&
	    !fxi_sysfs_path(top, env->root, "/sys/devices") &&
	    fxi_sysfs_resolve(link, top, path))
		word = strrchr(path, '/') + 1;
	if (!word || !fxi_pci_parse(word, &addr))
		return err_set(e, EPROTO, d->node, "%s: sysfs does not say of "
			       "which PCI function it is", d->node);
	fxi_pci_name(&addr, d->pci);
	r = number(env, d, "partition", 47, &d->partition, e);
	if (!r)
		r = number(env, d, "partition_count", 48, &d->partitions, e);
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
		if (strncmp(entry, prefix, strlen(prefix)) ||
		    !parse_u64(entry + strlen(prefix), 0, 9999, &index))
			continue;
		v[n] = (struct switchtec){ .index = (unsigned int)index,
					   .fd = -1 };
		snprintf(v[n].node, sizeof(v[n].node), "/dev/switchtec%u",
			 v[n].index);
		r = read_device(env, &v[n++], e);
	}
	if (dir)
		closedir(dir);
	if (r)
		return r;
	qsort(v, (size_t)n, sizeof(*v), by_index);
	return n;
}

int device_open(const struct p2p_env *env, struct switchtec *d, struct err *e)
{
	char path[SYSFS_PATH];

	if (fxi_sysfs_path(path, env->root, "%s", d->node))
		return err_set(e, ENAMETOOLONG, d->node, "the path of %s is "
			       "too long", d->node);
	d->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
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

static int silent(const struct switchtec *d, uint32_t command, struct err *e)
{
	return err_set(e, ETIMEDOUT, d->node, "%s: the switch has not answered "
		       "command %#x within %.0f s; its firmware hangs, or "
		       "another program's command is not done yet. Whether "
		       "this one still will be is not known: look with "
		       "\"fabrexctl list\"", d->node, command, DEVICE_SECONDS);
}

static int failed(const struct switchtec *d, uint32_t command, const char *what,
		  int err, struct err *e)
{
	return err_set(e, err, d->node, "%s: could not %s command %#x: %s",
		       d->node, what, command, err == ENODEV ?
		       "the switch's management function is gone" :
		       strerror(err));
}

/* An answer is there to be read, or nothing will come. */
static int await(struct switchtec *d, uint32_t command, struct err *e)
{
	struct pollfd p = { .fd = d->fd, .events = POLLIN };
	double end = now() + DEVICE_SECONDS, left;

	while (!(p.revents & (POLLIN | POLLERR | POLLHUP))) {
		left = end - now();
		if (left <= 0)
			return silent(d, command, e);
		if (poll(&p, 1, (int)(left * 1000) + 1) < 0 && errno != EINTR)
			return failed(d, command, "wait for", errno, e);
	}
	return 0;
}

int device_command(struct switchtec *d, uint32_t command, const void *in,
		   size_t in_len, void *out, size_t out_len, uint32_t *ret,
		   struct err *e)
{
	uint8_t buf[4 + MOST];
	ssize_t n;
	int r;

	memcpy(buf, &command, 4);
	memcpy(buf + 4, in, in_len);
	n = write(d->fd, buf, 4 + in_len);
	if (n != (ssize_t)(4 + in_len))
		return failed(d, command, "send", n < 0 ? errno : EIO, e);
	r = await(d, command, e);
	if (r)
		return r;
	n = read(d->fd, buf, 4 + out_len);
	if (n < 0)
		return failed(d, command, "read the answer to", errno, e);
	if (n != (ssize_t)(4 + out_len))
		return err_set(e, EPROTO, d->node, "%s: the answer to command "
			       "%#x has %zd bytes instead of %zu", d->node,
			       command, n, 4 + out_len);
	memcpy(ret, buf, 4);
	memcpy(out, buf + 4, out_len);
	return 0;
}

/* ---- events -------------------------------------------------------------- */

static int arm(struct switchtec *d, uint32_t event, int32_t index,
	       struct err *e)
{
	struct switchtec_ioctl_event_ctl ctl = {
		.event_id = event, .index = index,
		.flags = SWITCHTEC_IOCTL_EVENT_FLAG_CLEAR |
			 SWITCHTEC_IOCTL_EVENT_FLAG_EN_POLL,
	};

	if (!ioctl(d->fd, SWITCHTEC_IOCTL_EVENT_CTL, &ctl))
		return 0;
	return err_set(e, errno, d->node, "%s: cannot ask for event %u: %s",
		       d->node, event, strerror(errno));
}

int device_watch_again(struct switchtec *d, struct err *e)
{
	struct switchtec_ioctl_event_summary s;
	uint32_t i;
	int r = 0;

	/* Reading the summary is what makes the descriptor quiet. */
	if (ioctl(d->fd, SWITCHTEC_IOCTL_EVENT_SUMMARY, &s))
		return err_set(e, errno, d->node, "%s: cannot read events: %s",
			       d->node, strerror(errno));
	for (i = 0; i < d->partitions && !r; i++)
		r = arm(d, SWITCHTEC_IOCTL_EVENT_DYN_PART_BIND_COMP,
			(int32_t)i, e);
	return r;
}

int device_watch(struct switchtec *d, struct err *e)
{
	/* The driver itself has link events raised. */
	return device_watch_again(d, e);
}
