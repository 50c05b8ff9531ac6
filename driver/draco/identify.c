// SPDX-License-Identifier: GPL-2.0-only
/*
 * IDENTIFY: identity, limits and capabilities of the port. Called by probe and
 * recovery after they have enabled the controller.
 */
#include "command.h"
#include "decode.h"
#include "draco.h"
#include "exec.h"
#include "identify.h"

/**
 * draco_identify() - read and validate the identity of the port
 * @dd:    device
 * @ident: result
 *
 * Context: Process; sleeps. The caller owns the controller, see recovery.c.
 * Return: 0; -EPROTO if the device violates the specification; another negative
 * errno
 */
int draco_identify(struct draco_dev *dd, struct draco_ident *ident)
{
	struct pci_dev *pdev = dd->pdev;
	struct draco_identify raw;
	struct draco_buf buf;
	struct draco_cmd cmd;
	const char *bad;
	int ret;

	ret = draco_buf_alloc(dd, &buf, sizeof(raw));
	if (ret)
		return ret;
	draco_cmd_init(&cmd, DRACO_ADM_IDENTIFY, 0);
	draco_cmd_data(&cmd, &buf, sizeof(raw));
	cmd.flags = DRACO_CMD_EXCLUSIVE;
	ret = draco_exec(dd, &cmd);
	memcpy(&raw, buf.va, sizeof(raw));
	draco_buf_free(dd, &buf);
	if (ret) {
		dev_err(&pdev->dev, "IDENTIFY failed: %d\n", ret);
		return ret;
	}

	ret = draco_decode_identify(&raw,
				    pci_resource_len(pdev, DRACO_BAR_DOORBELL) >>
				    DRACO_CAP_DB_SHIFT(dd->cap),
				    pci_resource_len(pdev, DRACO_BAR_WINDOW),
				    ident, &bad);
	if (!ret && ident->info.object_id != draco_read(dd, DRACO_REG_PORT_ID)) {
		ret = -EPROTO;
		bad = "port_id";
	}
	if (ret) {
		dev_err(&pdev->dev, "IDENTIFY returned an invalid %s\n",
			bad);
		return ret;
	}
	ident->info.window_base = pci_resource_start(pdev, DRACO_BAR_WINDOW);
	ident->info.doorbell_base = pci_resource_start(pdev, DRACO_BAR_DOORBELL);
	ident->info.doorbell_stride = 1u << DRACO_CAP_DB_SHIFT(dd->cap);
	ident->info.dma_dev = &pdev->dev;
	strscpy(ident->info.driver, KBUILD_MODNAME, sizeof(ident->info.driver));
	if (draco_read(dd, DRACO_REG_STATUS) & DRACO_STATUS_LINK)
		ident->info.flags |= FABREX_PORT_LINK_UP;
	return 0;
}

/**
 * draco_same_port() - check that a port is the one that was registered
 * @a: what was registered
 * @b: what the device reports now
 *
 * Other limits do not matter: the device enforces them.
 *
 * Context: Any.
 * Return: true if so
 */
bool draco_same_port(const struct draco_ident *a, const struct draco_ident *b)
{
	return a->info.object_id == b->info.object_id &&
	       a->info.peer == b->info.peer &&
	       a->info.max_peers == b->info.max_peers &&
	       a->info.window_slot_size == b->info.window_slot_size &&
	       !strcmp(a->info.name, b->info.name) &&
	       !strcmp(a->info.host, b->info.host) &&
	       !strcmp(a->info.fabric, b->info.fabric);
}
