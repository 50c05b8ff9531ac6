// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * net_abi.h against the libraries' own headers: sizes and offsets are those that
 * their structures have in NCCL 2.30, compiled for 64 bits.
 */
#include "net_abi.h"

#define SIZE(type, bytes) \
	_Static_assert(sizeof(struct type) == (bytes), "size of " #type)
#define AT(type, member, bytes) \
	_Static_assert(offsetof(struct type, member) == (bytes), \
		       #type "." #member)

#if UINTPTR_MAX > UINT32_MAX
SIZE(nccl_properties_v6, 48);
SIZE(nccl_properties_v8, 64);
SIZE(nccl_properties_v9, 104);
SIZE(nccl_properties_v11, 112);
SIZE(nccl_properties_v12, 128);
SIZE(nccl_net_v6, 136);
SIZE(nccl_net_v8, 152);
SIZE(nccl_net_v9, 160);
SIZE(nccl_net_v10, 160);
SIZE(nccl_net_v11, 176);
SIZE(nccl_net_v12, 176);
AT(nccl_properties_v6, max_recvs, 44);
AT(nccl_properties_v8, reg_is_global, 28);
AT(nccl_properties_v8, device_version, 56);
AT(nccl_properties_v9, force_flush, 32);
AT(nccl_properties_v9, vdevice, 64);
AT(nccl_properties_v9, max_p2p_bytes, 88);
AT(nccl_properties_v11, max_multi_request_size, 104);
AT(nccl_properties_v12, max_p2p_bytes, 104);
AT(nccl_properties_v12, rail, 124);
AT(nccl_net_v6, close_listen, 128);
AT(nccl_net_v9, make_vdevice, 152);
AT(nccl_net_v12, finalize, 160);
AT(nccl_net_v12, attributes, 168);
#endif
