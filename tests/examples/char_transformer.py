"""Trains the transformer of examples/train/char_transformer in PyTorch, with the same weights before the first step, the same
rows in the same order and the same rates, and compares the losses of both in each report. The data's order, the schedule of
the rate and the reading of safetensors are written anew here: nothing of Troupe's is used but the example's output.

usage: char_transformer.py PROGRAM --data FILE [--tolerance X] [options of the program]; the exit code is 1 where the greatest
difference is more than the tolerance.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch.nn import functional

VALIDATION_BATCHES = 20
REPORT = re.compile(r"step (\d+): loss ([\d.]+), of validation ([\d.]+); ")


class Block(torch.nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.attention_norm = torch.nn.LayerNorm(width)
        self.query_key_value = torch.nn.Linear(width, 3 * width)
        self.attention_out = torch.nn.Linear(width, width)
        self.mlp_norm = torch.nn.LayerNorm(width)
        self.mlp_in = torch.nn.Linear(width, 4 * width)
        self.mlp_out = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        query, key, value = self.query_key_value(self.attention_norm(x)).chunk(3, dim=2)
        by_head = lambda part: part.unflatten(2, (self.heads, -1)).transpose(1, 2)
        attended = functional.scaled_dot_product_attention(by_head(query), by_head(key), by_head(value), is_causal=True)
        x = x + self.attention_out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp_out(functional.gelu(self.mlp_in(self.mlp_norm(x)), approximate="tanh"))


class Transformer(torch.nn.Module):
    def __init__(self, vocabulary, options):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, options.width)
        self.positions = torch.nn.Embedding(options.context, options.width)
        self.blocks = torch.nn.ModuleList(Block(options.heads, options.width) for _ in range(options.layers))
        self.norm = torch.nn.LayerNorm(options.width)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


def mersenne_twister_64(seed):
    """std::mt19937_64 (Nishimura, "Tables of 64-bit Mersenne Twisters", 2000)."""
    whole = (1 << 64) - 1
    state = [seed & whole]
    for place in range(1, 312):
        state.append((6364136223846793005 * (state[-1] ^ state[-1] >> 62) + place) & whole)
    while True:
        for place in range(312):
            joined = state[place] & 0xFFFFFFFF80000000 | state[(place + 1) % 312] & 0x7FFFFFFF
            state[place] = state[(place + 156) % 312] ^ joined >> 1 ^ (0xB5026F5AA96619E9 if joined & 1 else 0)
        for drawn in state:
            drawn ^= drawn >> 29 & 0x5555555555555555
            drawn ^= drawn << 17 & 0x71D67FFFEDA60000
            drawn ^= drawn << 37 & 0xFFF7EEE000000000
            yield drawn ^ drawn >> 43


def shuffled(rows, seed):
    """The order that Troupe's DistributedSampler documents: Fisher and Yates'."""
    order = list(range(rows))
    draws = mersenne_twister_64(seed)
    for left in range(rows, 1, -1):
        fair = (1 << 64) - 1 - ((1 << 64) - 1) % left
        drawn = next(number for number in draws if number < fair) % left
        order[left - 1], order[drawn] = order[drawn], order[left - 1]
    return order


def training_batches(tokens, options):
    """Without end: the rows of each step, on all ranks together."""
    rows = (len(tokens) - options.context) // options.batch * options.batch
    window = torch.arange(options.context)
    epoch = 0
    while True:
        for places in torch.tensor(shuffled(rows, epoch)).view(-1, options.batch, 1):
            yield tokens[places + window], tokens[places + window + 1]
        epoch += 1


def validation_batches(tokens, options):
    most = VALIDATION_BATCHES * options.batch
    stride = max(options.context, len(tokens) // most)
    places = torch.arange(0, len(tokens) - options.context, stride)[:most]
    places = places[:len(places) // options.batch * options.batch].view(-1, options.batch, 1) + torch.arange(options.context)
    return [(tokens[rows], tokens[rows + 1]) for rows in places]


def load_safetensors(file):
    content = Path(file).read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, entry in json.loads(content[8:begin]).items():
        if name != "__metadata__":
            assert entry["dtype"] == "F32", (name, entry)
            first, last = entry["data_offsets"]
            tensors[name] = torch.frombuffer(bytearray(content[begin + first:begin + last]), dtype=torch.float32).view(entry["shape"])
    return tensors


def rate_of(step, options):
    """DeepSpeed's WarmupCosineLR: its first step counts as the one before 0."""
    rise = max(2, options.warmup)
    if step == 0:
        return 0.0
    if step - 1 < rise:
        return options.rate * (step - 1) / rise
    fallen = min(1.0, (step - rise) / max(1, options.steps - rise))
    return options.rate * (0.1 + 0.9 * (1 + math.cos(math.pi * fallen)) / 2)


def loss_of(model, batch):
    return functional.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())


def trained(options, initial):
    """Yields (step, training loss since the last report, validation loss)."""
    characters = Path(options.data).read_bytes()
    places = {character: place for place, character in enumerate(sorted(set(characters)))}
    tokens = torch.tensor([places[character] for character in characters])
    cut = len(tokens) - len(tokens) // 10
    validation = validation_batches(tokens[cut:], options)
    model = Transformer(len(places), options)
    model.load_state_dict(initial)
    matrices = [parameter for parameter in model.parameters() if parameter.dim() >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}], lr=options.rate, betas=(0.9, 0.99))
    losses = []
    for step, batch in enumerate(training_batches(tokens[:cut], options)):
        for group in optimizer.param_groups:
            group["lr"] = rate_of(step, options)
        loss = loss_of(model, batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        is_last = step + 1 == options.steps
        if (step + 1) % options.report_every == 0 or is_last:
            with torch.no_grad():
                judged = sum(loss_of(model, batch).item() for batch in validation) / len(validation)
            yield step + 1, sum(losses) / len(losses), judged
            losses = []
        if is_last:
            return


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("--data", required=True)
    parser.add_argument("--tolerance", type=float, default=math.inf)
    parser.add_argument("--rate", type=float, default=1e-3)
    numbers = {"steps": 2000, "batch": 12, "layers": 4, "heads": 4, "width": 128, "context": 64, "warmup": 100, "report-every": 250}
    for name, default in numbers.items():
        parser.add_argument("--" + name, type=int, default=default)
    options, others = parser.parse_known_args()
    command = [options.program, "--data", options.data, "--rate", str(options.rate)]
    for name in numbers:
        command += ["--" + name, str(getattr(options, name.replace("-", "_")))]
    return options, command + others


def main():
    options, command = arguments()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "initial.safetensors")
        done = subprocess.run([*command, "--save-initial", str(file)], stdout=subprocess.PIPE, text=True)
        print(done.stdout)
        if done.returncode != 0:
            return done.returncode
        initial = load_safetensors(file)
    theirs = [(int(step), float(loss), float(judged)) for step, loss, judged in REPORT.findall(done.stdout)]
    print("         training            validation\n  step   Troupe    PyTorch   Troupe    PyTorch")
    greatest = 0.0
    reports = 0
    for (step, loss, judged), (at, here, judged_here) in zip(theirs, trained(options, initial), strict=True):
        assert step == at, (step, at)
        print(f"{step:6}   {loss:.6f}  {here:.6f}  {judged:.6f}  {judged_here:.6f}", flush=True)
        greatest = max(greatest, abs(loss - here), abs(judged - judged_here))
        reports += 1
    print(f"the greatest difference in {reports} reports is {greatest:.6f}")
    return 0 if reports > 0 and greatest <= options.tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
