// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sizes and offsets that applications were compiled with. A number that has
 * to be changed here is an incompatible change of the library.
 */
#include <stddef.h>
#include <fabrex/coll.h>
#include <fabrex/fabrex.h>
#include <fabrex/p2p.h>

#define SIZE(type, lp64, ilp32) \
	_Static_assert(sizeof(struct type) == \
		       (sizeof(void *) == 8 ? (lp64) : (ilp32)), #type)
#define AT(type, member, lp64, ilp32) \
	_Static_assert(offsetof(struct type, member) == \
		       (sizeof(void *) == 8 ? (lp64) : (ilp32)), \
		       #type "." #member)

#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__)
SIZE(fabrex_port_attr, 192, 192);
AT(fabrex_port_attr, window_slot_size, 48, 48);
AT(fabrex_port_attr, name, 64, 64);
AT(fabrex_port_attr, driver, 160, 160);
SIZE(fabrex_peer, 92, 92);
AT(fabrex_peer, name, 12, 12);
SIZE(fabrex_port_event, 56, 48);
AT(fabrex_port_event, queue, 16, 16);
AT(fabrex_port_event, time_ns, 32, 24);
AT(fabrex_port_event, mr, 40, 32);
SIZE(fabrex_remote, 32, 32);
AT(fabrex_remote, peer, 16, 16);
SIZE(fabrex_queue_attr, 32, 32);
AT(fabrex_queue_attr, service, 24, 24);
SIZE(fabrex_op, 128, 120);
AT(fabrex_op, user_data, 8, 8);
AT(fabrex_op, mr, 16, 16);
AT(fabrex_op, offset, 24, 20);
AT(fabrex_op, rkey, 40, 36);
AT(fabrex_op, operand, 56, 52);
AT(fabrex_op, dest_key, 72, 68);
AT(fabrex_op, inline_data, 80, 76);
AT(fabrex_op, reserved, 88, 80);
SIZE(fabrex_wc, 48, 44);
AT(fabrex_wc, peer, 24, 24);
AT(fabrex_wc, cell, 28, 28);
AT(fabrex_wc, data, 32, 32);
SIZE(fabrex_request, 24, 24);
SIZE(fabrex_stats, 104, 104);
AT(fabrex_memory, base, 8, 8);
AT(fabrex_mr_attr, length, 8, 4);
AT(fabrex_mr_cache_stats, regions, 32, 32);
SIZE(fabrex_mr_cache_stats, 64, 64);
SIZE(fabrex_local_port, 408, 408);
AT(fabrex_local_port, pci, 144, 144);
AT(fabrex_local_port, guid, 160, 160);
AT(fabrex_local_port, numa_node, 176, 176);
AT(fabrex_local_port, gpu, 248, 248);
AT(fabrex_local_port, reserved, 376, 376);
SIZE(fabrex_local_device, 88, 88);
AT(fabrex_local_device, numa_node, 32, 32);
AT(fabrex_local_device, reserved, 56, 56);
SIZE(fabrex_sqe, 64, 64);
SIZE(fabrex_cqe, 32, 32);
SIZE(fabrex_qctrl, 256, 256);
AT(fabrex_qctrl, cq_head, 64, 64);
AT(fabrex_qctrl, sq_head, 128, 128);
AT(fabrex_qctrl, state, 192, 192);
#endif

#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__)
AT(fabrex_collective, send, 16, 16);
AT(fabrex_collective, count, 32, 24);
#endif

#ifdef __LP64__
SIZE(fabrex_unique_id, 128, 128);
SIZE(fabrex_comm_attr, 120, 0);
AT(fabrex_comm_attr, ports, 104, 0);
AT(fabrex_comm_attr, secret, 72, 0);
SIZE(fabrex_collective, 96, 0);
AT(fabrex_collective, send_counts, 64, 0);
AT(fabrex_collective, recv_displs, 88, 0);
SIZE(fabrex_memory, 80, 0);
AT(fabrex_memory, id, 24, 0);
AT(fabrex_memory, pci, 32, 0);
SIZE(fabrex_mr_attr, 88, 0);
AT(fabrex_mr_attr, access, 16, 0);
AT(fabrex_mr_attr, fd, 28, 0);
AT(fabrex_mr_attr, peers, 40, 0);
#endif

_Static_assert(FABREX_EV_LOST == 8 && FABREX_EV_MR_REVOKED == 9 &&
	       FABREX_MEMORY_DMABUF == 2 && FABREX_MEMORY_CUDA == 4 &&
	       FABREX_MR_MAY_MOVE == 1, "numbers of version 1.1");
_Static_assert(FABREX_EV_LOST == 8 && FABREX_MR_ALL == 15 &&
	       FABREX_BLOB_MAX == 960 && FABREX_QUEUE_EVENTFD == 1,
	       "numbers of the API");
_Static_assert(FABREX_FLOAT64 == 12 && FABREX_AVG == 5 && FABREX_RECV == 9 &&
	       FABREX_ALL_TO_ALLV == 12 && FABREX_DEVICE_FPGA == 8, "numbers of version 1.2");
