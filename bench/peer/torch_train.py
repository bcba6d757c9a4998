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


def seconds_of_step(net, loss, steps, rounds, device):
    optimizer = torch.optim.SGD(net.parameters(), 0.05)

    def step():
        optimizer.zero_grad()
        loss(net).backward()
        optimizer.step()

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


def ddp(device, gpu, smoke):
    for name, widths, batch, steps in ON_GPU if gpu else ON_CPU:
        if gpu and shares_gpu():
            steps = max(steps // 10, 3)
        steps, rounds = (5, 1) if smoke else (steps, ROUNDS)
        make, loss = model_and_loss(widths, batch, device)
        alone = seconds_of_step(make(), loss, steps, rounds, device)
        net = torch.nn.parallel.DistributedDataParallel(make(), gradient_as_bucket_view=True)
        tell(bench="ddp", model=name, floor=1 / alone, steps_per_s=1 / seconds_of_step(net, loss, steps, rounds, device))
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
