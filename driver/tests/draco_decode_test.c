// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decoding of what a device says, and refusal of what it must not say. Run by
 * make check.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>

#include "../draco/decode.h"
#include "tap.h"

#define DB_PAGES	1024u
#define WINDOW_BYTES	(64ull << 20)

static void good_identify(struct draco_identify *raw)
{
	memset(raw, 0, sizeof(*raw));
	raw->port_id = cpu_to_le32(17);
	raw->host_id = cpu_to_le32(3);
	raw->peer = cpu_to_le16(2);
	raw->max_peers = cpu_to_le16(64);
	raw->generation = cpu_to_le32(9);
	raw->flags = cpu_to_le32(DRACO_IDF_MANAGER | DRACO_IDF_EMULATED);
	raw->operations = cpu_to_le64(0x10000007full);
	raw->max_queues = cpu_to_le32(1024);
	raw->max_mrs = cpu_to_le32(16384);
	raw->max_windows = cpu_to_le32(64);
	raw->window_slot_size = cpu_to_le64(1 << 20);
	raw->max_transfer = cpu_to_le64(1ull << 30);
	raw->max_mr_pages = cpu_to_le64(1 << 22);
	raw->max_sq = cpu_to_le32(4096);
	raw->max_cq = cpu_to_le32(8192);
	raw->max_rq = cpu_to_le32(4096);
	raw->max_cell = cpu_to_le32(4096);
	raw->objects[0] = cpu_to_le32(10);
	raw->objects[DRACO_OBJ_PORT] = cpu_to_le32(6);
	raw->objects[DRACO_OBJ_ENDPOINT] = cpu_to_le32(4);
	strcpy(raw->name, "a.0");
	strcpy(raw->host, "a");
	strcpy(raw->fabric, "demo");
	strcpy(raw->firmware, "emulator 1.0");
}

static int decode(const struct draco_identify *raw, struct draco_ident *ident,
		  const char **bad)
{
	return draco_decode_identify(raw, DB_PAGES, WINDOW_BYTES, ident, bad);
}

TEST(identify_is_decoded)
{
	struct draco_identify raw;
	struct draco_ident ident;
	const char *bad;

	good_identify(&raw);
	CHECK_EQ(decode(&raw, &ident, &bad), 0);
	CHECK(!bad);
	CHECK_EQ(ident.info.object_id, 17);
	CHECK_EQ(ident.host_id, 3);
	CHECK_EQ(ident.info.peer, 2);
	CHECK_EQ(ident.info.max_peers, 64);
	CHECK_EQ(ident.info.generation, 9);
	CHECK(ident.info.manager);
	CHECK_EQ(ident.info.flags, FABREX_PORT_EMULATED);
	CHECK_EQ(ident.info.max_queues, 1024);
	CHECK_EQ(ident.info.window_slot_size, 1 << 20);
	CHECK_EQ(ident.objects, 10);
	CHECK(!strcmp(ident.info.name, "a.0"));
	CHECK(!strcmp(ident.firmware, "emulator 1.0"));
	CHECK(!ident.links);
}

/* Flags of later versions are not for us; that for links is. */
TEST(identify_says_whether_links_are_counted)
{
	struct draco_identify raw;
	struct draco_ident ident;
	const char *bad;

	good_identify(&raw);
	raw.flags = cpu_to_le32(0xfffffff0u | DRACO_IDF_LINKS);
	CHECK_EQ(decode(&raw, &ident, &bad), 0);
	CHECK(ident.links && !ident.mesh);
	raw.flags |= cpu_to_le32(DRACO_IDF_MESH);
	CHECK_EQ(decode(&raw, &ident, &bad), 0);
	CHECK(ident.links && ident.mesh);
	CHECK(!ident.info.manager && !ident.info.flags);
}

/* Sets one field to something that cannot be and expects its name back. */
#define REFUSED(field, value) \
	do { \
		struct draco_identify raw_; \
		struct draco_ident ident_; \
		const char *bad_; \
		good_identify(&raw_); \
		raw_.field = value; \
		CHECK_EQ(decode(&raw_, &ident_, &bad_), -EPROTO); \
		CHECK(bad_ && !strcmp(bad_, #field)); \
	} while (0)

TEST(identify_fields_that_cannot_be_are_refused_by_name)
{
	REFUSED(port_id, 0);
	REFUSED(peer, cpu_to_le16(64));
	REFUSED(max_peers, 0);
	REFUSED(max_peers, cpu_to_le16(257));
	REFUSED(operations, 0);
	REFUSED(operations, cpu_to_le64(3));
	REFUSED(max_queues, 0);
	REFUSED(max_queues, cpu_to_le32(DB_PAGES + 1));
	REFUSED(max_mrs, 0);
	REFUSED(max_mrs, cpu_to_le32((1u << 20) + 1));
	REFUSED(max_mr_pages, 0);
	REFUSED(max_transfer, 0);
	REFUSED(max_sq, cpu_to_le32(4095));
	REFUSED(max_sq, cpu_to_le32(4));
	REFUSED(max_cq, 0);
	REFUSED(max_rq, cpu_to_le32(3));
	REFUSED(max_cell, cpu_to_le32(32));
	REFUSED(window_slot_size, cpu_to_le64(2048));
	REFUSED(window_slot_size, cpu_to_le64(3ull << 20));
	REFUSED(window_slot_size, 0);
	REFUSED(max_windows, cpu_to_le32(65));
	REFUSED(max_windows, cpu_to_le32(0xffffffffu));
}

TEST(identify_operations_are_capabilities)
{
	struct draco_identify raw;
	struct draco_ident ident;
	const char *bad;

	good_identify(&raw);
	CHECK_EQ(decode(&raw, &ident, &bad), 0);
	CHECK_EQ(ident.info.caps, FABREX_CAP_CHECK | 0x7f);
	/* What we do not know is not passed on. */
	raw.operations = cpu_to_le64(~0ull);
	CHECK_EQ(decode(&raw, &ident, &bad), 0);
	CHECK_EQ(ident.info.caps, FABREX_CAP_CHECK | 0x7f);
	raw.operations = cpu_to_le64(7);
	CHECK_EQ(decode(&raw, &ident, &bad), 0);
	CHECK_EQ(ident.info.caps, 7);
}

TEST(identify_names_must_end_and_be_printable)
{
	struct draco_identify raw;
	struct draco_ident ident;
	const char *bad;

	good_identify(&raw);
	memset(raw.name, 'x', sizeof(raw.name));
	CHECK_EQ(decode(&raw, &ident, &bad), -EPROTO);
	good_identify(&raw);
	strcpy(raw.host, "a/../b");
	CHECK_EQ(decode(&raw, &ident, &bad), -EPROTO);
	good_identify(&raw);
	raw.fabric[0] = 0;
	CHECK_EQ(decode(&raw, &ident, &bad), -EPROTO);
	/* Firmware is for people only: cut, not refused. */
	good_identify(&raw);
	memset(raw.firmware, 'y', sizeof(raw.firmware));
	raw.firmware[4] = '\n';
	CHECK_EQ(decode(&raw, &ident, &bad), 0);
	CHECK(!strcmp(ident.firmware, "yyyy"));
}

TEST(identify_counts_do_not_overflow)
{
	struct draco_identify raw;
	struct draco_ident ident;
	const char *bad;
	int i;

	good_identify(&raw);
	for (i = 1; i < 8; i++)
		raw.objects[i] = cpu_to_le32(0xffffffffu);
	CHECK_EQ(decode(&raw, &ident, &bad), -EPROTO);
	CHECK(!strcmp(bad, "objects"));
}

TEST(identify_limits_above_ours_are_cut)
{
	struct draco_identify raw;
	struct draco_ident ident;
	const char *bad;

	good_identify(&raw);
	raw.max_sq = cpu_to_le32(1u << 30);
	raw.max_cq = cpu_to_le32(1u << 31);
	raw.max_rq = cpu_to_le32(1u << 20);
	raw.max_cell = cpu_to_le32(1u << 16);
	raw.max_transfer = cpu_to_le64(1ull << 40);
	CHECK_EQ(decode(&raw, &ident, &bad), 0);
	CHECK_EQ(ident.info.max_sq, FABREX_SQ_MAX);
	CHECK_EQ(ident.info.max_cq, FABREX_CQ_MAX);
	CHECK_EQ(ident.info.max_rq, FABREX_RQ_MAX);
	CHECK_EQ(ident.info.max_cell, FABREX_CELL_MAX);
	CHECK_EQ(ident.info.max_transfer, 0xffffffffu);
}

TEST(identify_works_without_windows_and_receive)
{
	struct draco_identify raw;
	struct draco_ident ident;
	const char *bad;

	good_identify(&raw);
	raw.max_windows = 0;
	raw.window_slot_size = 0;
	raw.max_rq = 0;
	raw.max_cell = 0;
	CHECK_EQ(draco_decode_identify(&raw, DB_PAGES, 0, &ident, &bad), 0);
	CHECK_EQ(ident.info.max_windows, 0);
	CHECK_EQ(ident.info.window_slot_size, 0);
}

static void good_object(struct draco_object *raw)
{
	memset(raw, 0, sizeof(*raw));
	raw->type = DRACO_OBJ_ENDPOINT;
	raw->kind = DRACO_EP_GPU;
	raw->state = DRACO_EP_BOUND;
	raw->id = cpu_to_le32(0x01020304);
	raw->parent = cpu_to_le32(5);
	raw->link = cpu_to_le32(6);
	raw->bound = cpu_to_le32(7);
	raw->slot = cpu_to_le16(2);
	raw->peer = cpu_to_le16(0xffff);
	raw->number = cpu_to_le32(3);
	raw->width = cpu_to_le16(16);
	raw->pci_vendor = cpu_to_le16(0x1234);
	raw->pci_device = cpu_to_le16(0xda10);
	raw->size = cpu_to_le64(1ull << 36);
	strcpy(raw->name, "columba1.gpu3");
}

TEST(object_is_decoded)
{
	struct draco_object raw;
	struct fabrex_object object;

	good_object(&raw);
	memset(&object, 0xff, sizeof(object));
	CHECK_EQ(draco_decode_object(&raw, 64, &object), 0);
	CHECK_EQ(object.type, DRACO_OBJ_ENDPOINT);
	CHECK_EQ(object.id, 0x01020304);
	CHECK_EQ(object.parent, 5);
	CHECK_EQ(object.link, 6);
	CHECK_EQ(object.bound, 7);
	CHECK_EQ(object.slot, 2);
	CHECK_EQ(object.peer, FABREX_PEER_NONE);
	CHECK_EQ(object.size, 1ll << 36);
	CHECK_EQ(object.pci_device, 0xda10);
	CHECK(!object.surprise);
	CHECK(!strcmp(object.name, "columba1.gpu3"));
}

TEST(manager_is_a_host_port)
{
	struct fabrex_object object;
	struct draco_object raw;

	good_object(&raw);
	raw.flags = DRACO_OBJF_MANAGER;
	CHECK_EQ(draco_decode_object(&raw, 64, &object), 0);
	CHECK(!object.manager);
	raw.type = DRACO_OBJ_PORT;
	raw.state = DRACO_LINK_UP;
	raw.kind = DRACO_PORT_UPLINK;
	CHECK_EQ(draco_decode_object(&raw, 64, &object), 0);
	CHECK(!object.manager);
	raw.kind = DRACO_PORT_HOST;
	CHECK_EQ(draco_decode_object(&raw, 64, &object), 0);
	CHECK(object.manager);
	raw.flags = 0;
	CHECK_EQ(draco_decode_object(&raw, 64, &object), 0);
	CHECK(!object.manager);
}

#define OBJECT_REFUSED(field, value, error) \
	do { \
		struct draco_object raw_; \
		struct fabrex_object object_; \
		good_object(&raw_); \
		raw_.field = value; \
		CHECK_EQ(draco_decode_object(&raw_, 64, &object_), error); \
	} while (0)

TEST(objects_that_cannot_be_are_refused)
{
	OBJECT_REFUSED(type, 0, -EPROTO);
	OBJECT_REFUSED(kind, 0, -EPROTO);
	OBJECT_REFUSED(kind, DRACO_EP_FPGA + 1, -EPROTO);
	OBJECT_REFUSED(state, DRACO_EP_ATTACHING + 1, -EPROTO);
	OBJECT_REFUSED(id, 0, -EPROTO);
	OBJECT_REFUSED(slot, cpu_to_le16(0x2000), -EPROTO);
	OBJECT_REFUSED(peer, cpu_to_le16(64), -EPROTO);
	OBJECT_REFUSED(name[0], 0, -EPROTO);
	OBJECT_REFUSED(name[3], '\033', -EPROTO);
	/* A later device may have types that we do not know. */
	OBJECT_REFUSED(type, DRACO_OBJ_ENDPOINT + 1, -EOPNOTSUPP);
}

TEST(names)
{
	char name[DRACO_NAME_LEN] = "draco1:4";

	CHECK(draco_name_ok(name));
	memset(name, 'a', sizeof(name));
	CHECK(!draco_name_ok(name));
	name[sizeof(name) - 1] = 0;
	CHECK(draco_name_ok(name));
	CHECK(!draco_name_ok("-rf\0........................."));
	CHECK(!draco_name_ok("..\0.........................."));
	CHECK(!draco_name_ok("a b\0........................."));
	CHECK(!draco_name_ok("\xc3\xa4\0.........................."));
}

static void good_event(struct draco_event *raw, u16 type)
{
	memset(raw, 0, sizeof(*raw));
	raw->seq = cpu_to_le64(1ull << 33);
	raw->type = cpu_to_le16(type);
	raw->obj_type = DRACO_OBJ_ENDPOINT;
	raw->flags = DRACO_EVF_SURPRISE;
	raw->object = cpu_to_le32(40);
	raw->port = cpu_to_le32(41);
	raw->state = cpu_to_le32(1);
}

static int decode_event(u16 type, u32 state, u64 a0, u64 a1, u64 a2)
{
	struct draco_event raw;
	struct draco_ev ev;

	good_event(&raw, type);
	raw.state = cpu_to_le32(state);
	raw.arg[0] = cpu_to_le64(a0);
	raw.arg[1] = cpu_to_le64(a1);
	raw.arg[2] = cpu_to_le64(a2);
	return draco_decode_event(&raw, 64, &ev);
}

TEST(event_is_decoded)
{
	struct draco_event raw;
	struct draco_ev ev;

	good_event(&raw, DRACO_EV_EP_STATE);
	raw.arg[0] = cpu_to_le64(4);
	CHECK_EQ(draco_decode_event(&raw, 64, &ev), 0);
	CHECK_EQ(ev.seq, 1ll << 33);
	CHECK_EQ(ev.type, DRACO_EV_EP_STATE);
	CHECK_EQ(ev.obj_type, DRACO_OBJ_ENDPOINT);
	CHECK_EQ(ev.flags, DRACO_EVF_SURPRISE);
	CHECK_EQ(ev.object, 40);
	CHECK_EQ(ev.port, 41);
	CHECK_EQ(ev.state, 1);
	CHECK_EQ(ev.arg[0], 4);
}

TEST(events_that_cannot_be_are_refused)
{
	u64 big = 1ull << 32;

	CHECK_EQ(decode_event(DRACO_EV_LINK, DRACO_LINK_DISABLED, 0, 0, 0), 0);
	CHECK_EQ(decode_event(DRACO_EV_LINK, 3, 0, 0, 0), -EPROTO);
	CHECK_EQ(decode_event(DRACO_EV_PEER_UP, 1, 7, 63, 0), 0);
	CHECK_EQ(decode_event(DRACO_EV_PEER_UP, 1, 7, 64, 0), -EPROTO);
	CHECK_EQ(decode_event(DRACO_EV_PEER_DOWN, 1, big, 1, 0), -EPROTO);
	CHECK_EQ(decode_event(DRACO_EV_EP_STATE, 6, 0, 0, 0), -EPROTO);
	CHECK_EQ(decode_event(DRACO_EV_EP_STATE, 2, 0x2000, 0, 0), -EPROTO);
	CHECK_EQ(decode_event(DRACO_EV_RELEASE_REQUEST, 3, big, 2, 5000), 0);
	CHECK_EQ(decode_event(DRACO_EV_RELEASE_REQUEST, 3, 1, 0x2000, 0),
		 -EPROTO);
	CHECK_EQ(decode_event(DRACO_EV_RELEASE_REQUEST, 3, 1, 2, big),
		 -EPROTO);
	CHECK_EQ(decode_event(DRACO_EV_QUEUE_ERROR, 1, 256, 0, 0), -EPROTO);
	CHECK_EQ(decode_event(DRACO_EV_WINDOW_FAULT, 0, FABREX_WC_RKEY, 0, 0),
		 0);
	CHECK_EQ(decode_event(DRACO_EV_RESET, 0, 0, 0, 0), 0);
	CHECK_EQ(decode_event(DRACO_EV_FAULT, 0, ~0ull, 0, 0), 0);
	CHECK_EQ(decode_event(0, 0, 0, 0, 0), -EOPNOTSUPP);
	CHECK_EQ(decode_event(0x7777, 0, 0, 0, 0), -EOPNOTSUPP);
}

TEST(peers_are_checked)
{
	struct draco_peer raw = {
		.port = cpu_to_le32(7), .generation = cpu_to_le32(1u << 31),
		.peer = cpu_to_le16(63), .flags = cpu_to_le16(DRACO_PEERF_UP),
	};
	struct draco_peer_state peer;

	CHECK_EQ(draco_decode_peer(&raw, 64, &peer), 0);
	CHECK_EQ(peer.port, 7);
	CHECK_EQ(peer.generation, 1u << 31);
	CHECK_EQ(peer.peer, 63);
	CHECK(peer.up);
	CHECK_EQ(draco_decode_peer(&raw, 63, &peer), -EPROTO);
	raw.flags = cpu_to_le16(0xfffe);
	CHECK_EQ(draco_decode_peer(&raw, 64, &peer), 0);
	CHECK(!peer.up);
	raw.port = 0;
	CHECK_EQ(draco_decode_peer(&raw, 64, &peer), -EPROTO);
}

TEST(every_status_has_errno_and_text)
{
	u32 status;

	CHECK_EQ(draco_status_errno(DRACO_SC_OK), 0);
	for (status = 1; status <= DRACO_SC_RETRY; status++) {
		CHECK(draco_status_errno(status) < 0);
		CHECK(draco_status_errno(status) != -EPROTO);
		CHECK(strlen(draco_status_text(status)) > 4);
	}
	for (; status <= 0xffff; status++)
		CHECK_EQ(draco_status_errno(status), -EPROTO);
	CHECK_EQ(draco_status_errno(DRACO_SC_BUSY), -EBUSY);
	CHECK_EQ(draco_status_errno(DRACO_SC_BOUND), -EADDRINUSE);
	CHECK_EQ(draco_status_errno(DRACO_SC_NO_SLOT), -ENOSPC);
	CHECK_EQ(draco_status_errno(DRACO_SC_DENIED), -EPERM);
	CHECK_EQ(draco_status_errno(DRACO_SC_GONE), -ENODEV);
}

TEST(holder_survives_the_way_there_and_back)
{
	struct fabrex_holder in = { .pid = 1234, .port = 17 }, out;
	struct draco_holder raw;

	strcpy(in.comm, "trainer");
	strcpy(in.reason, "17 memory regions");
	memset(&raw, 0xff, sizeof(raw));
	memset(&out, 0xff, sizeof(out));
	draco_encode_holder(&in, &raw);
	draco_decode_holder(&raw, &out);
	CHECK_EQ(memcmp(&in, &out, sizeof(in)), 0);
}

TEST(holder_of_a_hostile_host_is_harmless)
{
	struct fabrex_holder out;
	struct draco_holder raw;

	memset(&raw, 'A', sizeof(raw));
	strcpy(raw.comm, "x\033[2J");
	draco_decode_holder(&raw, &out);
	CHECK(!strcmp(out.comm, "x"));
	CHECK_EQ(strnlen(out.reason, sizeof(out.reason)),
		 sizeof(out.reason) - 1);
}

TEST(counters_are_decoded_in_order)
{
	struct fabrex_counters out = { .size = sizeof(out), .id = 5 };
	struct draco_counters raw;
	u64 value = 1, *to = (u64 *)&out.out_tx_bytes;
	__le64 *from = (__le64 *)&raw;
	size_t i;

	for (i = 0; i < sizeof(raw) / sizeof(*from); i++)
		from[i] = cpu_to_le64(value++ << 40);
	draco_decode_counters(&raw, &out);
	CHECK_EQ(out.size, sizeof(out));
	CHECK_EQ(out.id, 5);
	for (i = 0; i < 13; i++)
		CHECK_EQ(to[i], (i + 1) << 40);
}

TEST(links_have_two_ends)
{
	struct draco_link raw = {
		.a = cpu_to_le32(3), .b = cpu_to_le32(9),
		.a_to_b = cpu_to_le64(1ull << 40), .b_to_a = cpu_to_le64(7),
	};
	struct fabrex_link link;

	CHECK_EQ(draco_decode_link(&raw, &link), 0);
	CHECK_EQ(link.id, 3);
	CHECK_EQ(link.a, 3);
	CHECK_EQ(link.b, 9);
	CHECK_EQ(link.a_to_b, 1ull << 40);
	CHECK_EQ(link.b_to_a, 7);
	raw.id = cpu_to_le32(77);
	CHECK_EQ(draco_decode_link(&raw, &link), 0);
	CHECK(link.id == 77 && link.a == 3);
	raw.b = raw.a;
	CHECK_EQ(draco_decode_link(&raw, &link), -EPROTO);
	raw.b = 0;
	CHECK_EQ(draco_decode_link(&raw, &link), -EPROTO);
	raw.b = cpu_to_le32(9);
	raw.a = 0;
	CHECK_EQ(draco_decode_link(&raw, &link), -EPROTO);
}

/* The structures that both sides share have the sizes docs/draco.md gives. */
TEST(layouts)
{
	CHECK_EQ(sizeof(struct draco_acmd), 64);
	CHECK_EQ(sizeof(struct draco_acpl), 32);
	CHECK_EQ(sizeof(struct draco_identify), 264);
	CHECK_EQ(sizeof(struct draco_object), 128);
	CHECK_EQ(sizeof(struct draco_event), 64);
	CHECK_EQ(sizeof(struct draco_peer), 16);
	CHECK_EQ(sizeof(struct draco_holder), 128);
	CHECK_EQ(sizeof(struct draco_queue_create), 72);
	CHECK_EQ(sizeof(struct draco_mr_create), 72);
	CHECK_EQ(sizeof(struct draco_window_create), 48);
	CHECK_EQ(sizeof(struct draco_counters), 128);
	CHECK_EQ(sizeof(struct draco_link), 64);
}
