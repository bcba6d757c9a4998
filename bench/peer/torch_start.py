"""What start_bench measures, with PyTorch and gloo: how long it takes until init_process_group has returned on every rank.

usage: torch_start.py: the program of a rank, for torchrun. Rank 0 prints when the last rank was there, on the system's monotonic
       clock: whoever starts torchrun counts from that start.
       torch_start.py --ranks N [--smoke]: starts ranks from this process, which has imported torch, by torch.multiprocessing: with
       its default, which starts a new Python for each rank (spawn), and by fork.
Both print JSON lines of start_bench's form.
"""
import argparse
import json
import os
import socket
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing


def tell(**row):
    print(json.dumps(row), flush=True)


def seconds_when_there():
    """When the last rank was there, on each rank."""
    dist.init_process_group("gloo")
    at = torch.tensor([time.monotonic()], dtype=torch.float64)
    dist.all_reduce(at, op=dist.ReduceOp.MAX)
    dist.destroy_process_group()
    return at.item()


def rank_of_gang(rank, ranks, port, answer):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    at = seconds_when_there()
    if rank == 0:
        answer.put(at)


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def milliseconds_of_gang(ranks, method):
    answer = torch.multiprocessing.get_context(method).SimpleQueue()
    port = free_port()
    began = time.monotonic()
    torch.multiprocessing.start_processes(rank_of_gang, (ranks, port, answer), nprocs=ranks, start_method=method)
    return 1e3 * (answer.get() - began)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=0)
    parser.add_argument("--smoke", action="store_true")
    given = parser.parse_args()
    if not given.ranks:
        at = seconds_when_there()
        if os.environ["RANK"] == "0":
            tell(bench="gang start", how="whole command", at_s=at)
        return
    for bench, method in ("gang start", "spawn"), ("gang start, forked", "fork"):
        first, *later = [milliseconds_of_gang(given.ranks, method) for _ in range(2 if given.smoke else 6)]
        tell(bench=bench, how="first", ms=first)
        tell(bench=bench, how="later", ms=statistics.median(later))


if __name__ == "__main__":
    main()
