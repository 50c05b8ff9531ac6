// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Where PCI devices are, how fast the links to them are, and which of two is
 * the nearer one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "p2p/near.h"
#include "p2p/sysfs.h"

/* ---- attributes -------------------------------------------------------- */

bool fxi_device_line(const struct p2p_env *env, const char *name,
		     const char *file, char *text, size_t n)
{
	char path[SYSFS_PATH];

	*text = '\0';
	return !fxi_sysfs_path(path, env->root, "/sys/bus/pci/devices/%s/%s",
			       name, file) &&
	       fxi_sysfs_line(path, text, n);
}

/* "32.0 GT/s PCIe": 32000. */
uint32_t fxi_device_speed(const struct p2p_env *env, const char *name,
			  const char *which)
{
	unsigned int whole, tenth = 0;
	char text[64], file[32];

	snprintf(file, sizeof(file), "%s_link_speed", which);
	if (!fxi_device_line(env, name, file, text, sizeof(text)) ||
	    sscanf(text, "%4u.%1u", &whole, &tenth) < 1)
		return 0;
	return whole * 1000 + tenth * 100;
}

uint32_t fxi_device_width(const struct p2p_env *env, const char *name,
			  const char *which)
{
	unsigned int lanes;
	char text[64], file[32];

	snprintf(file, sizeof(file), "%s_link_width", which);
	return fxi_device_line(env, name, file, text, sizeof(text)) &&
	       sscanf(text, "%4u", &lanes) == 1 && lanes <= 32 ? lanes : 0;
}

int fxi_device_numa(const struct p2p_env *env, const char *name)
{
	char text[64];
	int node;

	return fxi_device_line(env, name, "numa_node", text, sizeof(text)) &&
	       sscanf(text, "%6d", &node) == 1 && node >= 0 ? node : -1;
}

/* ---- places ------------------------------------------------------------ */

void fxi_place_find(const struct p2p_env *env, const struct pci_addr *addr,
		    struct place *place)
{
	char name[PCI_NAME_LEN];

	memset(place, 0, sizeof(*place));
	place->numa_node = -1;
	if (!addr)
		return;
	place->known = !fxi_pci_chain(env->root, addr, &place->chain);
	if (!place->known)
		fxi_pci_chain_free(&place->chain);
	fxi_pci_name(addr, name);
	place->numa_node = fxi_device_numa(env, name);
}

void fxi_place_leave(struct place *place)
{
	if (place->known)
		fxi_pci_chain_free(&place->chain);
	place->known = false;
}

int fxi_place_named(const struct p2p_env *env, const char *name,
		    struct place *place)
{
	struct pci_addr addr;
	int ret;

	fxi_place_find(env, NULL, place);
	if (!name)
		return 0;
	ret = fxi_p2p_find(env, name, &addr);
	if (ret)
		return ret;
	fxi_place_find(env, &addr, place);
	if (place->known)
		return 0;
	return fxi_error(EINVAL, "%.64s: sysfs shows no such PCI device on this machine; see lspci -D",
			 name);
}

/*
 * After 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s; from 64 GT/s on the
 * rate of flits, as the kernel's PCIE_SPEED2MBS_ENC counts.
 */
static uint32_t link_rate(uint32_t speed, uint32_t width)
{
	uint64_t lane = speed <= 5000 ? (uint64_t)speed * 8 / 10 :
			speed <= 32000 ? (uint64_t)speed * 128 / 130 : speed;

	return (uint32_t)(lane * width);
}

uint32_t fxi_place_rate(const struct p2p_env *env, const struct place *place)
{
	uint32_t least = 0, rate;
	unsigned int i;

	for (i = 0; place->known && i < place->chain.n; i++) {
		const char *name = place->chain.dev[i]->name;

		rate = link_rate(fxi_device_speed(env, name, "current"),
				 fxi_device_width(env, name, "current"));
		if (rate && (!least || rate < least))
			least = rate;
	}
	return least;
}

/* ---- how near ---------------------------------------------------------- */

struct nearness fxi_near(const struct p2p_env *env, const struct place *a,
			 const struct place *b)
{
	struct nearness near = { .path = FABREX_P2P_PATH_NONE };
	struct p2p_way way;

	if (!a->known || !b->known)
		return near;
	memset(&way, 0, sizeof(way));
	way.a = a->chain;
	way.b = b->chain;
	fxi_way_find(env, &way);
	near.distance = way.distance;
	near.path = !way.distance ? FABREX_P2P_PATH_SAME :
		    way.common ? FABREX_P2P_PATH_SWITCH :
				 FABREX_P2P_PATH_ROOT;
	near.other_node = a->numa_node != b->numa_node;
	near.other_host = strcmp(a->chain.host, b->chain.host);
	return near;
}

/* A common switch is nearer than any way through the processor. */
int fxi_near_compare(const struct nearness *a, const struct nearness *b)
{
	bool none = a->path == FABREX_P2P_PATH_NONE;
	bool root = a->path == FABREX_P2P_PATH_ROOT;

	if (none != (b->path == FABREX_P2P_PATH_NONE))
		return none ? 1 : -1;
	if (root != (b->path == FABREX_P2P_PATH_ROOT))
		return root ? 1 : -1;
	if (root && a->other_node != b->other_node)
		return a->other_node ? 1 : -1;
	if (root && a->other_host != b->other_host)
		return a->other_host ? 1 : -1;
	return a->distance < b->distance ? -1 : a->distance > b->distance;
}
