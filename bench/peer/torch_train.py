"""What collective_bench, ddp_bench, zero_bench and checkpoint_bench measure, with torch.distributed, DistributedDataParallel,
ZeroRedundancyOptimizer and torch.distributed.checkpoint: the program of a rank, for torchrun.

usage: torch_train.py collective | ddp | zero | checkpoint [--gpu] [--smoke] [--compressed]; rank 0 prints JSON lines of the same form.
With --compressed ddp measures each model also with gradients that are sent in bfloat16.
"""
import argparse
import gc
import json
import os
import pathlib
import shutil
import tempfile
import time
from functools import partial

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.distributed.optim import ZeroRedundancyOptimizer

ON_CPU = [("MLP 64-64-10 b32", [64, 64, 10], 32, 2000),
          ("MLP 784-1024-1024-10 b64", [784, 1024, 1024, 10], 64, 100),
          ("MLP 784-4096-4096-10 b64", [784, 4096, 4096, 10], 64, 10)]
ON_GPU = [("MLP 64-64-10 b32", [64, 64, 10], 32, 200),
          ("MLP 784-4096-4096-10 b1024", [784, 4096, 4096, 10], 1024, 50),
          ("MLP 4096-8192-8192-10 b4096", [4096, 8192, 8192, 10], 4096, 10),
          ("GPT 124M bf16 b16x1024", None, 16, 10)]
GPT = {"layers": 12, "heads": 12, "width": 768, "context": 1024, "vocabulary": 50304}
ROUNDS = 3


def tell(**row):
    if dist.get_rank() == 0:
        print(json.dumps({"ranks": dist.get_world_size(), **row}), flush=True)


def wait_for(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def maximum(value, device):
    """Of all ranks."""
    all_ranks = torch.tensor([value], dtype=torch.int64, device=device)
    dist.all_reduce(all_ranks, op=dist.ReduceOp.MAX)
    return all_ranks.item()


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


def network(widths):
    layers = []
    for i, (of, to) in enumerate(zip(widths, widths[1:])):
        layers.append(torch.nn.Linear(of, to))
        if i + 2 < len(widths):
            layers.append(torch.nn.ReLU())
    return torch.nn.Sequential(*layers)


class GptBlock(torch.nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.before_attention = torch.nn.LayerNorm(width)
        self.before_mlp = torch.nn.LayerNorm(width)
        self.query_key_value = torch.nn.Linear(width, 3 * width)
        self.attention_out = torch.nn.Linear(width, width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def attend(self, x):
        batch, tokens, width = x.shape
        query, key, value = self.query_key_value(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.attention_out(attended.transpose(1, 2).contiguous().view(batch, tokens, width))

    def forward(self, x):
        x = x + self.attend(self.before_attention(x))
        return x + self.down(torch.nn.functional.gelu(self.up(self.before_mlp(x)), approximate="tanh"))


class Gpt(torch.nn.Module):
    """That of bench/train/gpt.cpp."""

    def __init__(self, layers, heads, width, context, vocabulary):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, width)
        self.positions = torch.nn.Embedding(context, width)
        self.blocks = torch.nn.ModuleList(GptBlock(heads, width) for _ in range(layers))
        self.last = torch.nn.LayerNorm(width)
        torch.nn.init.normal_(self.tokens.weight, 0, 0.02)
        torch.nn.init.normal_(self.positions.weight, 0, 0.02)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return torch.nn.functional.linear(self.last(x), self.tokens.weight)


def step_of(net, loss, optimizer):
    def step():
        optimizer.zero_grad()
        loss(net).backward()
        optimizer.step()

    return step


def seconds_of_step(step, steps, rounds, device):
    for _ in range(5):
        step()
    return best_of(rounds, device, steps, step)


def model_and_loss(widths, batch, device):
    """A function that makes the model, and one that computes its loss over one batch, always the same."""
    cross_entropy = torch.nn.functional.cross_entropy
    if widths:
        x = torch.randn(batch, widths[0], device=device)
        y = torch.randint(widths[-1], (batch,), device=device)
        return lambda: network(widths).to(device), lambda net: cross_entropy(net(x), y)
    x = torch.randint(GPT["vocabulary"], (batch, GPT["context"]), device=device)
    y = torch.randint(GPT["vocabulary"], (batch * GPT["context"],), device=device)

    def loss(net):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            return cross_entropy(net(x).view(-1, GPT["vocabulary"]), y)

    return lambda: Gpt(**GPT).to(device), loss


def cases_of(gpu, smoke):
    """(name, widths, batch, steps, rounds) of each model, the smallest first, and with `smoke` alone."""
    for name, widths, batch, steps in (ON_GPU if gpu else ON_CPU)[:1 if smoke else None]:
        if gpu and shares_gpu():
            steps = max(steps // 10, 3)
        yield name, widths, batch, *((5, 1) if smoke else (steps, ROUNDS))


def data_parallel(net, compressed=False):
    net = torch.nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
    if compressed:
        net.register_comm_hook(None, bf16_compress_hook)
    return net


def ddp(device, gpu, smoke, compressed):
    def steps_per_second(net):
        step = step_of(net, loss, torch.optim.SGD(net.parameters(), 0.05))
        return 1 / seconds_of_step(step, steps, rounds, device)

    for name, widths, batch, steps, rounds in cases_of(gpu, smoke):
        make, loss = model_and_loss(widths, batch, device)
        for how in ("", "bfloat16") if compressed else ("",):
            floor = steps_per_second(make())
            tell(bench="ddp", model=name, how=how, floor=floor, steps_per_s=steps_per_second(data_parallel(make(), how == "bfloat16")))


def adam(parameters, cut):
    """With PyTorch's defaults: on a GPU foreach=True, one kernel for many parameters; on a CPU foreach=False; on both fused=False."""
    if cut:
        return ZeroRedundancyOptimizer(parameters, torch.optim.Adam, lr=1e-5)
    return torch.optim.Adam(parameters, lr=1e-5)


def bytes_of_state(optimizer, cut):
    state = (optimizer.optim if cut else optimizer).state
    return sum(of[average].nbytes for of in state.values() for average in ("exp_avg", "exp_avg_sq"))


def train_with_adam(net, loss, cut, steps, rounds, device):
    """The figures of this rank."""
    optimizer = adam(net.parameters(), cut)
    step = step_of(net, loss, optimizer)
    step()  # which makes the state
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    figures = {"steps_per_s": 1 / seconds_of_step(step, steps, rounds, device), "state_bytes": bytes_of_state(optimizer, cut)}
    if device.type == "cuda":
        figures["peak_bytes"] = torch.cuda.max_memory_allocated()
    return figures


def zero(device, gpu, smoke):
    for name, widths, batch, steps, rounds in list(cases_of(gpu, smoke))[0 if smoke else 1:]:
        if not gpu:
            steps = max(steps // 2, 1)
        make, loss = model_and_loss(widths, batch, device)
        for how in ("plain", "zero"):
            figures = train_with_adam(data_parallel(make()), loss, how == "zero", steps, rounds, device)
            bytes_of_most = {field: maximum(value, device) for field, value in figures.items() if field != "steps_per_s"}
            tell(bench="zero", model=name, how=how, **figures | bytes_of_most)
            gc.collect()  # what the models of the rows before have held is no part of the next row's peak


def seconds_of(act):
    """Of the slowest rank."""
    dist.barrier()
    began = time.perf_counter()
    result = act()
    dist.barrier()
    return time.perf_counter() - began, result


def checkpoint(device, gpu, smoke):
    """Of a model under DistributedDataParallel with Adam, whose files torch.distributed.checkpoint makes durable as well."""
    import torch.distributed.checkpoint as saved
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    name, widths, batch, _, rounds = list(cases_of(gpu, smoke))[-1]
    make, loss = model_and_loss(widths, batch, device)
    net = data_parallel(make())
    optimizer = adam(net.parameters(), False)
    step_of(net, loss, optimizer)()
    folder = [tempfile.mkdtemp(prefix="troupe-checkpoint-") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder)
    # A save in the background has collectives of its own, which must not mix with those that come meanwhile.
    behind = dist.new_group(backend="gloo")
    best = {}

    def note(how, seconds):
        best[how] = min(best.get(how, seconds), seconds)

    def state():
        model, state = get_state_dict(net, optimizer)
        return {"model": model, "optimizer": state}

    def load():
        into = state()
        saved.load(into, checkpoint_id=f"{folder[0]}/a0")
        set_state_dict(net, optimizer, model_state_dict=into["model"], optim_state_dict=into["optimizer"])

    for i in range(rounds):
        note("save", seconds_of(lambda: saved.save(state(), checkpoint_id=f"{folder[0]}/a{i}"))[0])
        dist.barrier()
        began = time.perf_counter()
        seconds, future = seconds_of(lambda: saved.async_save(state(), checkpoint_id=f"{folder[0]}/b{i}", process_group=behind))
        note("stall", seconds)
        future.result()
        note("save behind", time.perf_counter() - began)
        note("load", seconds_of(load)[0])
        if dist.get_rank() == 0:
            shutil.rmtree(f"{folder[0]}/b{i}")
    size = sum(file.stat().st_size for file in pathlib.Path(folder[0], "a0").iterdir())
    for how, seconds in best.items():
        tell(bench="checkpoint", model=name, how=how, gb_per_s=size / seconds / 1e9)
    dist.barrier()
    shutil.rmtree(folder[0], ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["collective", "ddp", "zero", "checkpoint"])
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--compressed", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device("cpu")
    if given.gpu:
        # Several ranks may have one GPU, which NCCL refuses to ranks of one host.
        os.environ |= {"NCCL_HOSTID": os.environ["RANK"], "NCCL_SOCKET_IFNAME": "lo"}
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    # A checkpoint of GPUs, too, goes through main memory.
    dist.init_process_group("cpu:gloo,cuda:nccl" if given.gpu else "gloo")
    parts = {"collective": collective, "ddp": partial(ddp, compressed=given.compressed), "zero": zero, "checkpoint": checkpoint}
    parts[given.what](device, given.gpu, given.smoke)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
