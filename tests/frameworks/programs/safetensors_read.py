"""The net that examples/train/fine_tune wrote, read by `safetensors.torch` into the same net of PyTorch.

usage: safetensors_read.py FILE.safetensors digits.csv.gz"""

import gzip
import sys
from collections import OrderedDict

import torch
from safetensors.torch import load_file, load_model, save_model

file, data = sys.argv[1:]
net = torch.nn.Sequential(OrderedDict(
    body1=torch.nn.Linear(64, 48), relu1=torch.nn.ReLU(), body2=torch.nn.Linear(48, 24), relu2=torch.nn.ReLU(), head=torch.nn.Linear(24, 8)))
missing, unexpected = load_model(net, file)
assert not missing and not unexpected, (missing, unexpected)

with gzip.open(data, "rt") as lines:
    rows = torch.tensor([[float(number) for number in line.split(",")] for line in lines])
held_out = rows[5::6]
held_out = held_out[held_out[:, 64] < 8]
guesses = net(held_out[:, :64] / 16).argmax(1)
print(f"result {100 * (guesses == held_out[:, 64]).double().mean():.0f} %")

# What PyTorch writes of the net has the same values under the same names.
save_model(net, "again.safetensors")
ours, theirs = load_file(file), load_file("again.safetensors")
assert ours.keys() == theirs.keys()
assert all(torch.equal(ours[name], theirs[name]) for name in ours)
