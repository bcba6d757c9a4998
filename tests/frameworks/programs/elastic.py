"""Trains in steps, each with a checkpoint, and goes on from the last one after a restart, whatever the number of ranks.

usage: elastic.py FOLDER [DIES_AT [WAITS_AT]]      in the first attempt, rank 1 kills itself at one step, or all ranks wait at one
"""

import hashlib
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = 10


def main(folder, dies_at=-1, waits_at=-1):
    dist.init_process_group("gloo")
    rank, attempt = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 1)
    file, first = Path(folder, "checkpoint.pt"), 0
    if file.exists():
        state = torch.load(file)
        model.load_state_dict(state["model"])
        first = state["step"]
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    print(f"attempt {attempt} of {dist.get_world_size()} ranks begins at step {first}")
    for step in range(first, STEPS):
        if attempt == 0 and step == dies_at and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if attempt == 0 and step == waits_at:
            print("waits")
            time.sleep(100)
        # Of the step alone, and the same on each rank, so that any number of ranks computes the same.
        inputs = torch.randn(16, 8, generator=torch.Generator().manual_seed(step))
        loss = parallel(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            torch.save({"model": model.state_dict(), "step": step + 1}, file.with_suffix(".partial"))
            file.with_suffix(".partial").rename(file)
        dist.barrier()
    if rank == 0:
        print("result", hashlib.sha256(model.weight.detach().numpy().tobytes()).hexdigest())
    dist.destroy_process_group()


main(sys.argv[1], *map(int, sys.argv[2:]))
