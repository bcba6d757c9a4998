"""Horovod meets over Gloo, trains by its DistributedOptimizer, and meets anew after a shutdown."""

import horovod.torch as hvd
import torch


def train():
    torch.manual_seed(hvd.rank())  # ranks begin apart
    model = torch.nn.Linear(4, 1)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
    return model.weight.detach()


def main():
    for _ in range(2):
        hvd.init()
        place = hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_size()
        total = hvd.allreduce(torch.tensor([float(hvd.rank() + 1)]), op=hvd.Sum).item()
        weights = hvd.allgather(train())
        assert torch.equal(weights, weights[:1].expand_as(weights)), weights
        hvd.shutdown()
    print("result", *place, total)


main()
