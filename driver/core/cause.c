// SPDX-License-Identifier: GPL-2.0-only
/*
 * Logs why memory of exporters cannot be used, once for each exporter and
 * cause. Called by dmabuf.c.
 */
#include <linux/dma-buf.h>
#include <linux/spinlock.h>

#include "dmabuf.h"

/* Causes that have been logged. The table is small, because exporters and
 * errors are few; when it is full, everything is logged, at a limited rate.
 */
struct fabrex_cause {
	char exporter[24];
	const char *what;
	int error;
};

static struct fabrex_cause fabrex_causes[64];
static unsigned int fabrex_ncauses;
static DEFINE_SPINLOCK(fabrex_causes_lock);

static bool fabrex_cause_known(const char *exporter, const char *what,
			       int error)
{
	struct fabrex_cause *cause = fabrex_causes;
	unsigned int i;

	for (i = 0; i < fabrex_ncauses; i++, cause++)
		if (cause->error == error && cause->what == what &&
		    !strncmp(cause->exporter, exporter,
			     sizeof(cause->exporter) - 1))
			return true;
	return false;
}

/* Is this the first time? */
static bool fabrex_cause_new(const char *exporter, const char *what, int error)
{
	struct fabrex_cause *cause;
	bool known;

	spin_lock(&fabrex_causes_lock);
	known = fabrex_cause_known(exporter, what, error);
	if (!known && fabrex_ncauses < ARRAY_SIZE(fabrex_causes)) {
		cause = &fabrex_causes[fabrex_ncauses++];
		strscpy(cause->exporter, exporter, sizeof(cause->exporter));
		cause->what = what;
		cause->error = error;
	}
	spin_unlock(&fabrex_causes_lock);
	return !known;
}

static const char *fabrex_cause_remedy(int error)
{
	switch (error) {
	case -EOPNOTSUPP:
	case -EREMOTEIO:
	case -EXDEV:
		return "the device cannot access it directly; see \"fabrexctl p2p\"";
	case -ENODEV:
		return "it has been revoked, or its device is gone or being reset";
	case -EBUSY:
		return "it cannot be moved to memory that the device can access";
	case -ENOMEM:
	case -ENOSPC:
		return "no memory left in the exporter, or no address space for DMA";
	case -ETIMEDOUT:
		return "an operation on it has not finished in time";
	}
	return "the cause is known to the exporter only";
}

/**
 * fabrex_dmabuf_explain() - log why a dma-buf cannot be used
 * @buf:    not revoked yet
 * @what:   what has failed: "be mapped" and the like; a constant
 * @error:  errno
 *
 * Once for each exporter and cause, because users may try as often as they
 * like.
 *
 * Context: Process.
 */
void fabrex_dmabuf_explain(const struct fabrex_dmabuf *buf, const char *what,
			   int error)
{
	const char *exporter = buf->dmabuf->exp_name;
	const struct fabrex_port *port = buf->port;

	if (error == -EINTR || error == -ERESTARTSYS ||
	    !READ_ONCE(port->ops) ||
	    !fabrex_cause_new(exporter, what, error))
		return;
	dev_warn_ratelimited(&port->dev,
			     "dma-buf of %s: cannot %s for %s: %pe (%s). Further cases are not logged\n",
			     exporter, what, dev_name(buf->dev),
			     ERR_PTR(error), fabrex_cause_remedy(error));
}
