"""torch.distributed.checkpoint: saves a model that is split over the ranks, or loads one over another number of them.

usage: checkpoint.py save|load FOLDER
"""

import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from leaving import leave


def main(action, folder):
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    whole = torch.arange(24 * 5, dtype=torch.float32).reshape(24, 5)
    saves = action == "save"
    state = {"weight": distribute_tensor(whole if saves else torch.zeros_like(whole), mesh, [Shard(0)]), "step": 7 if saves else 0}
    if saves:
        dcp.save(state, checkpoint_id=folder)
    else:
        dcp.load(state, checkpoint_id=folder)
        assert torch.equal(state["weight"].full_tensor(), whole)
        assert state["step"] == 7
    print("result", action, dist.get_rank(), tuple(state["weight"].to_local().shape))
    dist.destroy_process_group()
    leave()


main(*sys.argv[1:])
