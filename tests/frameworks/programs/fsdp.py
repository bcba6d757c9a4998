"""fully_shard (FSDP2) on CPUs: each rank holds its part of the weights, and training goes on as on one."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from leaving import leave


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    assert model[0].weight.to_local().shape[0] == 32 // dist.get_world_size()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(64, 8, generator=torch.Generator().manual_seed(dist.get_rank()))
    losses = []
    for _ in range(20):
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2, losses
    print("result", dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()
    leave()


main()
