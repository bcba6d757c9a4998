"""Accelerate finds its ranks by itself."""

import torch
from accelerate import Accelerator


def main():
    accelerator = Accelerator(cpu=True)
    model, data = torch.nn.Linear(4, 1), torch.utils.data.DataLoader(torch.arange(32.0).reshape(8, 4), batch_size=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    for inputs in data:
        loss = model(inputs).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    ranks = accelerator.gather(torch.tensor([accelerator.process_index])).tolist()
    print("result", accelerator.distributed_type.value, accelerator.num_processes, type(model).__name__, ranks, len(data))
    accelerator.end_training()


main()
