"""What collective_bench and ddp_bench measure, with torch.distributed and DistributedDataParallel: the program of a rank, for torchrun.

usage: torch_train.py collective | ddp [--gpu] [--smoke]; rank 0 prints JSON lines of the same form.
"""
import argparse
import json
import os
import time

import torch
import torch.distributed as dist

ON_CPU = [("MLP 64-64-10 b32", [64, 64, 10], 32, 2000),
          ("MLP 784-1024-1024-10 b64", [784, 1024, 1024, 10], 64, 100),
          ("MLP 784-4096-4096-10 b64", [784, 4096, 4096, 10], 64, 10)]
ON_GPU = [("MLP 64-64-10 b32", [64, 64, 10], 32, 200),
          ("MLP 784-4096-4096-10 b1024", [784, 4096, 4096, 10], 1024, 50),
          ("MLP 4096-8192-8192-10 b4096", [4096, 8192, 8192, 10], 4096, 10)]
ROUNDS = 3


def tell(**row):
    if dist.get_rank() == 0:
        print(json.dumps({"ranks": dist.get_world_size(), **row}), flush=True)


def wait_for(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def best_of(rounds, device, repeats, step):
    """The seconds of one step in the best round."""
    best = float("inf")
    for _ in range(rounds):
        wait_for(device)
        dist.barrier()
        began = time.perf_counter()
        for _ in range(repeats):
            step()
        wait_for(device)
        best = min(best, (time.perf_counter() - began) / repeats)
    return best


def shares_gpu():
    return dist.get_world_size() > torch.cuda.device_count()


def repeats_of(size, gpu, smoke):
    if smoke:
        return 2
    if gpu and shares_gpu():
        return 3 if size > 500_000 else 50
    if gpu:
        return 15 if size > 500_000 else 1_000
    return 15 if size > 4_000_000 else 60 if size > 500_000 else 1_000


def collective(device, gpu, smoke):
    for size in [1, 256, 16 << 10, 1 << 20, 16 << 20]:
        if smoke and size > 16 << 10:
            break
        data = torch.ones(size, device=device)

        def step():
            dist.all_reduce(data, op=dist.ReduceOp.AVG if gpu else dist.ReduceOp.SUM)
            wait_for(device)  # the communicator that stands beside it returns with the result

        step()
        tell(bench="all_reduce", bytes=size * 4, us=1e6 * best_of(ROUNDS, device, repeats_of(size, gpu, smoke), step))
        if not gpu:
            continue

        def enqueue():
            dist.all_reduce(data, op=dist.ReduceOp.AVG)

        tell(bench="all_reduce, not waited for", bytes=size * 4,
             us=1e6 * best_of(ROUNDS, device, repeats_of(size, gpu, smoke), enqueue))


def network(widths, device):
    layers = []
    for i, (of, to) in enumerate(zip(widths, widths[1:])):
        layers.append(torch.nn.Linear(of, to))
        if i + 2 < len(widths):
            layers.append(torch.nn.ReLU())
    return torch.nn.Sequential(*layers).to(device)


def seconds_of_step(net, widths, batch, steps, rounds, device):
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    x = torch.randn(batch, widths[0], device=device)
    y = torch.randint(widths[-1], (batch,), device=device)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    for _ in range(5):
        step()
    return best_of(rounds, device, steps, step)


def ddp(device, gpu, smoke):
    for name, widths, batch, steps in ON_GPU if gpu else ON_CPU:
        if gpu and shares_gpu():
            steps = max(steps // 10, 3)
        steps, rounds = (5, 1) if smoke else (steps, ROUNDS)
        alone = seconds_of_step(network(widths, device), widths, batch, steps, rounds, device)
        net = torch.nn.parallel.DistributedDataParallel(network(widths, device), gradient_as_bucket_view=True)
        tell(bench="ddp", model=name, floor=1 / alone, steps_per_s=1 / seconds_of_step(net, widths, batch, steps, rounds, device))
        if smoke:
            break


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["collective", "ddp"])
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device("cpu")
    if given.gpu:
        # Several ranks may have one GPU, which NCCL refuses to ranks of one host.
        os.environ |= {"NCCL_HOSTID": os.environ["RANK"], "NCCL_SOCKET_IFNAME": "lo"}
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if given.gpu else "gloo")
    {"collective": collective, "ddp": ddp}[given.what](device, given.gpu, given.smoke)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
