// SPDX-License-Identifier: GPL-2.0-only
/*
 * Layout of every uapi structure, pinned for ever: sizes and offsets are the
 * same for 32-bit and 64-bit processes (this file is built as both).
 */

#include <stddef.h>
#include <linux/fabrex.h>

#include "kselftest_harness.h"

#define SIZE(type, n) \
	_Static_assert(sizeof(struct type) == (n), "size of " #type)
#define AT(type, member, n) \
	_Static_assert(offsetof(struct type, member) == (n), #type "." #member)

SIZE(fabrex_port_query, 208);
AT(fabrex_port_query, size, 0);
AT(fabrex_port_query, flags, 4);
AT(fabrex_port_query, out_peer, 8);
AT(fabrex_port_query, out_max_peers, 12);
AT(fabrex_port_query, out_generation, 16);
AT(fabrex_port_query, out_flags, 20);
AT(fabrex_port_query, out_caps, 24);
AT(fabrex_port_query, out_max_queues, 32);
AT(fabrex_port_query, out_max_mrs, 36);
AT(fabrex_port_query, out_max_windows, 40);
AT(fabrex_port_query, out_max_sq, 44);
AT(fabrex_port_query, out_max_cq, 48);
AT(fabrex_port_query, out_max_rq, 52);
AT(fabrex_port_query, out_max_cell, 56);
AT(fabrex_port_query, out_page_size, 60);
AT(fabrex_port_query, out_window_slot_size, 64);
AT(fabrex_port_query, out_max_transfer, 72);
AT(fabrex_port_query, out_name, 80);
AT(fabrex_port_query, out_host, 112);
AT(fabrex_port_query, out_fabric, 144);
AT(fabrex_port_query, out_driver, 176);

SIZE(fabrex_peer_query, 128);
AT(fabrex_peer_query, size, 0);
AT(fabrex_peer_query, flags, 4);
AT(fabrex_peer_query, peer, 8);
AT(fabrex_peer_query, out_state, 12);
AT(fabrex_peer_query, out_generation, 16);
AT(fabrex_peer_query, out_peer, 20);
AT(fabrex_peer_query, __reserved, 24);
AT(fabrex_peer_query, name, 32);
AT(fabrex_peer_query, out_name, 64);
AT(fabrex_peer_query, out_host, 96);

SIZE(fabrex_mr_register, 64);
AT(fabrex_mr_register, size, 0);
AT(fabrex_mr_register, flags, 4);
AT(fabrex_mr_register, addr, 8);
AT(fabrex_mr_register, length, 16);
AT(fabrex_mr_register, access, 24);
AT(fabrex_mr_register, fd, 28);
AT(fabrex_mr_register, peers, 32);
AT(fabrex_mr_register, npeers, 40);
AT(fabrex_mr_register, watch, 44);
AT(fabrex_mr_register, out_key, 48);
AT(fabrex_mr_register, out_id, 56);
AT(fabrex_mr_register, __reserved, 60);

SIZE(fabrex_queue_create, 96);
AT(fabrex_queue_create, size, 0);
AT(fabrex_queue_create, flags, 4);
AT(fabrex_queue_create, sq_entries, 8);
AT(fabrex_queue_create, cq_entries, 12);
AT(fabrex_queue_create, rq_entries, 16);
AT(fabrex_queue_create, cell_size, 20);
AT(fabrex_queue_create, eventfd, 24);
AT(fabrex_queue_create, __reserved, 28);
AT(fabrex_queue_create, service, 32);
AT(fabrex_queue_create, out_id, 40);
AT(fabrex_queue_create, out_queue, 44);
AT(fabrex_queue_create, out_key, 48);
AT(fabrex_queue_create, out_ring_mmap, 56);
AT(fabrex_queue_create, out_ring_size, 64);
AT(fabrex_queue_create, out_db_mmap, 72);
AT(fabrex_queue_create, out_ctrl_offset, 80);
AT(fabrex_queue_create, out_sq_offset, 84);
AT(fabrex_queue_create, out_cq_offset, 88);
AT(fabrex_queue_create, out_rq_offset, 92);

SIZE(fabrex_window_create, 64);
AT(fabrex_window_create, size, 0);
AT(fabrex_window_create, flags, 4);
AT(fabrex_window_create, peer, 8);
AT(fabrex_window_create, access, 12);
AT(fabrex_window_create, rkey, 16);
AT(fabrex_window_create, offset, 24);
AT(fabrex_window_create, length, 32);
AT(fabrex_window_create, out_mmap, 40);
AT(fabrex_window_create, out_length, 48);
AT(fabrex_window_create, out_id, 56);
AT(fabrex_window_create, __reserved, 60);

SIZE(fabrex_destroy, 8);
AT(fabrex_destroy, size, 0);
AT(fabrex_destroy, id, 4);

SIZE(fabrex_counters, 112);
AT(fabrex_counters, size, 0);
AT(fabrex_counters, id, 4);
AT(fabrex_counters, out_tx_bytes, 8);
AT(fabrex_counters, out_rx_bytes, 16);
AT(fabrex_counters, out_tx_ops, 24);
AT(fabrex_counters, out_rx_ops, 32);
AT(fabrex_counters, out_errors, 40);
AT(fabrex_counters, out_p2p_bytes, 48);
AT(fabrex_counters, out_host_bytes, 56);
AT(fabrex_counters, out_window_reads, 64);
AT(fabrex_counters, out_window_writes, 72);
AT(fabrex_counters, out_doorbells, 80);
AT(fabrex_counters, out_link_downs, 88);
AT(fabrex_counters, out_crc_errors, 96);
AT(fabrex_counters, out_interrupts, 104);

SIZE(fabrex_resolve, 32);
AT(fabrex_resolve, size, 0);
AT(fabrex_resolve, peer, 4);
AT(fabrex_resolve, service, 8);
AT(fabrex_resolve, out_key, 16);
AT(fabrex_resolve, out_queue, 24);
AT(fabrex_resolve, __reserved, 28);

SIZE(fabrex_watch, 32);
AT(fabrex_watch, size, 0);
AT(fabrex_watch, flags, 4);
AT(fabrex_watch, entries, 8);
AT(fabrex_watch, __reserved, 12);
AT(fabrex_watch, out_mmap, 16);
AT(fabrex_watch, out_length, 24);

SIZE(fabrex_p2p_query, 24);
AT(fabrex_p2p_query, size, 0);
AT(fabrex_p2p_query, flags, 4);
AT(fabrex_p2p_query, domain, 8);
AT(fabrex_p2p_query, devfn, 12);
AT(fabrex_p2p_query, out_flags, 16);
AT(fabrex_p2p_query, out_distance, 20);

SIZE(fabrex_event, 40);
AT(fabrex_event, size, 0);
AT(fabrex_event, type, 4);
AT(fabrex_event, peer, 8);
AT(fabrex_event, generation, 12);
AT(fabrex_event, id, 16);
AT(fabrex_event, error, 20);
AT(fabrex_event, time_ns, 24);
AT(fabrex_event, seq, 32);

SIZE(fabrex_sqe, 64);
AT(fabrex_sqe, opcode, 0);
AT(fabrex_sqe, flags, 1);
AT(fabrex_sqe, peer, 2);
AT(fabrex_sqe, imm, 4);
AT(fabrex_sqe, user_data, 8);
AT(fabrex_sqe, lkey, 16);
AT(fabrex_sqe, loffset, 24);
AT(fabrex_sqe, rkey, 32);
AT(fabrex_sqe, inline_data, 16);
AT(fabrex_sqe, roffset, 40);
AT(fabrex_sqe, length, 48);
AT(fabrex_sqe, operand, 48);
AT(fabrex_sqe, dest_key, 56);
AT(fabrex_sqe, compare, 56);

SIZE(fabrex_cqe, 32);
AT(fabrex_cqe, user_data, 0);
AT(fabrex_cqe, length, 8);
AT(fabrex_cqe, imm, 12);
AT(fabrex_cqe, crc, 16);
AT(fabrex_cqe, src_queue, 20);
AT(fabrex_cqe, peer, 24);
AT(fabrex_cqe, index, 26);
AT(fabrex_cqe, opcode, 28);
AT(fabrex_cqe, status, 29);
AT(fabrex_cqe, flags, 30);

SIZE(fabrex_qctrl, 256);
AT(fabrex_qctrl, sq_tail, 0);
AT(fabrex_qctrl, __pad0, 4);
AT(fabrex_qctrl, cq_head, 64);
AT(fabrex_qctrl, rq_head, 68);
AT(fabrex_qctrl, __pad1, 72);
AT(fabrex_qctrl, sq_head, 128);
AT(fabrex_qctrl, db_needed, 132);
AT(fabrex_qctrl, __pad2, 136);
AT(fabrex_qctrl, state, 192);
AT(fabrex_qctrl, error, 196);
AT(fabrex_qctrl, __pad3, 200);

/* Numbers that are part of the ABI. */
TEST(ioctl_numbers)
{
	ASSERT_EQ(FABREX_IOCTL_PORT_QUERY, 0xfa00);
	ASSERT_EQ(FABREX_IOCTL_PEER_QUERY, 0xfa01);
	ASSERT_EQ(FABREX_IOCTL_MR_REGISTER, 0xfa02);
	ASSERT_EQ(FABREX_IOCTL_QUEUE_CREATE, 0xfa03);
	ASSERT_EQ(FABREX_IOCTL_WINDOW_CREATE, 0xfa04);
	ASSERT_EQ(FABREX_IOCTL_DESTROY, 0xfa05);
	ASSERT_EQ(FABREX_IOCTL_COUNTERS, 0xfa06);
	ASSERT_EQ(FABREX_IOCTL_RESOLVE, 0xfa07);
	ASSERT_EQ(FABREX_IOCTL_WATCH, 0xfa08);
	ASSERT_EQ(FABREX_IOCTL_P2P_QUERY, 0xfa09);
}

/* Every byte of a structure belongs to a member: no implicit padding. */
#define FILLED(type, last) \
	(offsetof(struct type, last) + sizeof(((struct type *)0)->last) == \
	 sizeof(struct type))

TEST(no_tail_padding)
{
	ASSERT_TRUE(FILLED(fabrex_port_query, out_driver));
	ASSERT_TRUE(FILLED(fabrex_peer_query, out_host));
	ASSERT_TRUE(FILLED(fabrex_mr_register, __reserved));
	ASSERT_TRUE(FILLED(fabrex_queue_create, out_rq_offset));
	ASSERT_TRUE(FILLED(fabrex_window_create, __reserved));
	ASSERT_TRUE(FILLED(fabrex_destroy, id));
	ASSERT_TRUE(FILLED(fabrex_counters, out_interrupts));
	ASSERT_TRUE(FILLED(fabrex_resolve, __reserved));
	ASSERT_TRUE(FILLED(fabrex_watch, out_length));
	ASSERT_TRUE(FILLED(fabrex_p2p_query, out_distance));
	ASSERT_TRUE(FILLED(fabrex_event, seq));
	ASSERT_TRUE(FILLED(fabrex_sqe, dest_key));
	ASSERT_TRUE(FILLED(fabrex_cqe, flags));
	ASSERT_TRUE(FILLED(fabrex_qctrl, __pad3));
}

TEST(constants)
{
	ASSERT_EQ(FABREX_OP_SEND, 6);
	ASSERT_EQ(FABREX_OP_RECV, 0x80);
	ASSERT_EQ(FABREX_OP_RECV_IMM, 0x81);
	ASSERT_EQ(FABREX_SQE_FLAGS_ALL, 0xf);
	ASSERT_EQ(FABREX_WC_OK, 0);
	ASSERT_EQ(FABREX_WC_RPEER, 9);
	ASSERT_EQ(FABREX_WC_ABORTED, 19);
	ASSERT_EQ(FABREX_EVENT_LOST, 8);
	ASSERT_EQ(FABREX_EVENT_MR_REVOKED, 9);
	ASSERT_EQ(FABREX_MR_DMABUF, 2);
	ASSERT_EQ(FABREX_MR_PIN, 4);
	ASSERT_EQ(FABREX_MR_WATCH, 8);
	ASSERT_EQ(FABREX_P2P_REACHABLE, 2);
	ASSERT_EQ(FABREX_QERR_RESET, 4);
	ASSERT_EQ(FABREX_PEER_WORDS_MAX, 1024);
	ASSERT_EQ(FABREX_EVENT_SIZE_MIN, offsetof(struct fabrex_event, seq));
	ASSERT_EQ(FABREX_NAME_LEN, 32);
}

TEST_HARNESS_MAIN
