// SPDX-License-Identifier: GPL-2.0-only
/* Fabrics for tests: a small one with all kinds of elements, a large one. */
#include <stdio.h>
#include <string.h>

#include "fake.h"

static uint32_t add(struct fake *f, uint32_t type, uint32_t kind,
		    uint32_t state, const char *name)
{
	struct object o = { .type = type, .kind = kind, .state = state };

	snprintf(o.name, sizeof(o.name), "%s", name);
	return fake_add(f, &o);
}

static uint32_t add_port(struct fake *f, uint32_t sw, unsigned int number,
			 uint32_t kind, uint32_t link, const char *name)
{
	struct object o = {
		.type = T_PORT, .kind = kind, .parent = sw, .link = link,
		.state = kind ? FABREX_LINK_STATE_UP : FABREX_LINK_STATE_DOWN,
		.number = number, .peer = 0xffff, .max_speed = 16000,
		.max_width = 16, .speed = kind ? 16000 : 0,
		.width = kind ? 16 : 0,
	};

	if (kind == FABREX_PORT_KIND_HOST) {
		o.peer = f->m->n;
		o.generation = 1;
	}
	snprintf(o.name, sizeof(o.name), "%s", name);
	return fake_add(f, &o);
}

static void add_endpoint(struct fake *f, uint32_t appliance, uint32_t uplink,
			 uint32_t kind, unsigned int number, const char *name)
{
	struct object o = {
		.type = T_ENDPOINT, .kind = kind, .parent = appliance,
		.link = uplink, .number = number, .width = 16,
		.pci_vendor = 0x1234, .pci_device = 0xda0f + kind,
		.size = 64 << 20,
	};

	snprintf(o.name, sizeof(o.name), "%s", name);
	fake_add(f, &o);
}

struct fake *fabric_small(void)
{
	struct fake *f = fake_new();
	uint32_t s1, s2, a, b, c, c1, c2, up[4], isl;
	char name[32];
	int i;

	s1 = add(f, T_SWITCH, 0, 0, "draco1");
	s2 = add(f, T_SWITCH, 0, 0, "draco2");
	a = add(f, T_HOST, 0, FABREX_HOST_STATE_UP, "a");
	b = add(f, T_HOST, 0, FABREX_HOST_STATE_UP, "b");
	c = add(f, T_HOST, 0, FABREX_HOST_STATE_DOWN, "c");
	c1 = add(f, T_APPLIANCE, APPLIANCE_CASCADE, 0, "columba1");
	c2 = add(f, T_APPLIANCE, APPLIANCE_CASCADE, 0, "columba2");
	add_port(f, s1, 1, FABREX_PORT_KIND_HOST, a, "a.0");
	add_port(f, s1, 2, FABREX_PORT_KIND_HOST, b, "b.0");
	add_port(f, s2, 1, FABREX_PORT_KIND_HOST, c, "c.0");
	add_port(f, s1, 3, FABREX_PORT_KIND_HOST, c, "c.1");
	up[0] = add_port(f, s1, 4, FABREX_PORT_KIND_UPLINK, c1, "draco1:4");
	up[1] = add_port(f, s1, 5, FABREX_PORT_KIND_UPLINK, c1, "draco1:5");
	up[2] = add_port(f, s2, 4, FABREX_PORT_KIND_UPLINK, c2, "draco2:4");
	up[3] = add_port(f, s2, 5, FABREX_PORT_KIND_UPLINK, c2, "draco2:5");
	isl = add_port(f, s1, 6, FABREX_PORT_KIND_ISL, 0, "draco1:6");
	model_get(f->m, isl)->link =
		add_port(f, s2, 6, FABREX_PORT_KIND_ISL, isl, "draco2:6");
	add_port(f, s2, 2, FABREX_PORT_KIND_UNUSED, 0, "draco2:2");
	for (i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "columba1.gpu%d", i);
		add_endpoint(f, c1, up[i / 4], FABREX_ENDPOINT_KIND_GPU, i,
			     name);
	}
	for (i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "columba2.%s%d",
			 i < 4 ? "gpu" : "nvme", i < 4 ? i : i - 4);
		add_endpoint(f, c2, up[2 + i / 3],
			     i < 4 ? FABREX_ENDPOINT_KIND_GPU
				   : FABREX_ENDPOINT_KIND_NVME, i, name);
	}
	fake_local(f, "a.0");
	return f;
}

/* One switch of the large fabric: 4 hosts, 8 appliances with 8 GPUs each. */
static void add_part(struct fake *f, int n, uint32_t *last_isl)
{
	char name[32];
	uint32_t sw, host, apl, up[2], isl;
	int i, j;

	snprintf(name, sizeof(name), "draco%d", n);
	sw = add(f, T_SWITCH, 0, 0, name);
	for (i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "h%d", n * 4 + i);
		host = add(f, T_HOST, 0, FABREX_HOST_STATE_UP, name);
		snprintf(name, sizeof(name), "h%d.0", n * 4 + i);
		add_port(f, sw, 1 + i, FABREX_PORT_KIND_HOST, host, name);
	}
	for (i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "box%d", n * 8 + i);
		apl = add(f, T_APPLIANCE, APPLIANCE_CASCADE, 0,
			  name);
		for (j = 0; j < 2; j++) {
			snprintf(name, sizeof(name), "draco%d:%d", n,
				 10 + 2 * i + j);
			up[j] = add_port(f, sw, 10 + 2 * i + j,
					 FABREX_PORT_KIND_UPLINK, apl, name);
		}
		for (j = 0; j < 8; j++) {
			snprintf(name, sizeof(name), "box%d.gpu%d", n * 8 + i,
				 j);
			add_endpoint(f, apl, up[j / 4],
				     FABREX_ENDPOINT_KIND_GPU, j, name);
		}
	}
	snprintf(name, sizeof(name), "draco%d:50", n);
	isl = add_port(f, sw, 50, FABREX_PORT_KIND_ISL, *last_isl, name);
	if (*last_isl)
		model_get(f->m, *last_isl)->link = isl;
	snprintf(name, sizeof(name), "draco%d:51", n);
	*last_isl = add_port(f, sw, 51, FABREX_PORT_KIND_ISL, 0, name);
}

struct fake *fabric_large(void)
{
	struct fake *f = fake_new();
	uint32_t isl = 0;
	int i;

	for (i = 0; i < 16; i++)
		add_part(f, i, &isl);
	fake_local(f, "h0.0");
	return f;
}
