#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch_all_reduce.py nccl|gloo RANKS BYTES: times of torch.distributed on one
GPU, beside those of fabrex-perf all_reduce --memory cuda. NCCL refuses two ranks
on one GPU of a host; each gets a name of a host of its own, so that they talk by
sockets."""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def measure(tensor, ranks):
    def once():
        dist.all_reduce(tensor)
        torch.cuda.synchronize()

    once()
    tensor.fill_(1.0)
    once()
    right = bool((tensor == ranks).all())
    dist.barrier()
    begin = time.perf_counter()
    once()
    turns = torch.tensor([max(3, min(200, int(
        0.3 / max(time.perf_counter() - begin, 1e-6))))]).cuda()
    dist.broadcast(turns, 0)
    turns = int(turns.item())
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(turns):
        once()
    return (time.perf_counter() - begin) / turns, right


def work(rank, backend, ranks, most, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                      GLOO_SOCKET_IFNAME="lo", NCCL_SOCKET_IFNAME="lo",
                      NCCL_HOSTID=f"host{rank}")
    torch.cuda.set_device(0)
    dist.init_process_group(backend, rank=rank, world_size=ranks)
    size = 8
    while size <= most:
        seconds, right = measure(torch.ones(size // 4, device="cuda"), ranks)
        if not rank:
            print(f"{backend} {ranks} ranks {size:>10} B "
                  f"{seconds * 1e6:12.2f} us {size / seconds / 1e9:8.3f} GB/s "
                  f"{'' if right else 'WRONG'}", flush=True)
        size *= 8
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]),
                         20000 + os.getpid() % 20000), nprocs=int(sys.argv[2]))
