"""ZeRO of DeepSpeed on CPUs, stages 1 to 3, beside one process that trains on the batches of all ranks together.

Each rank prints what DeepSpeed found of its place, and for each way of training the losses (means over the ranks) and how many values of the
optimizer's first moment and of the parameters are in its memory between steps. The optimizer is one of torch.optim: those of DeepSpeed
are compiled as they are first used. Every stage trains in this process, since importing DeepSpeed takes longer than all of them.
"""

import json

import deepspeed
import torch

STEPS, ROWS = 8, 8


def new_model():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))


def new_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


def batch(step, rank):
    generator = torch.Generator().manual_seed(100 * step + rank)
    inputs = torch.randn(ROWS, 16, generator=generator)
    return inputs, inputs.sum(1, keepdim=True).sin()


def loss_of(model, inputs, wanted):
    return torch.nn.functional.mse_loss(model(inputs), wanted)


def in_memory(optimizer):
    return sum(values["exp_avg"].numel() for values in optimizer.state.values())


def train_alone(ranks):
    model = new_model()
    optimizer = new_optimizer(model)
    losses = []
    for step in range(STEPS):
        inputs, wanted = (torch.cat(parts) for parts in zip(*(batch(step, rank) for rank in range(ranks))))
        loss = loss_of(model, inputs, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "moments": in_memory(optimizer), "parameters": sum(each.numel() for each in model.parameters())}


def train_with_zero(stage):
    model = new_model()
    config = {
        "train_micro_batch_size_per_gpu": ROWS,
        "zero_allow_untested_optimizer": True,
        "gradient_clipping": 0.0,  # unlike PyTorch, DeepSpeed clips at a norm of 1 where nothing is said
        "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0},
    }
    engine, *_ = deepspeed.initialize(model=model, optimizer=new_optimizer(model), config=config)
    losses = []
    for step in range(STEPS):
        loss = loss_of(engine, *batch(step, deepspeed.comm.get_rank()))
        engine.backward(loss)
        engine.step()
        mean = loss.detach() / deepspeed.comm.get_world_size()
        deepspeed.comm.all_reduce(mean)
        losses.append(mean.item())
    return {"losses": losses, "moments": in_memory(engine.optimizer.optimizer), "parameters": sum(each.numel() for each in model.parameters())}


def main():
    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    ranks = deepspeed.comm.get_world_size()
    told = {"rank": deepspeed.comm.get_rank(), "ranks": ranks, "local_rank": deepspeed.comm.get_local_rank(), "alone": train_alone(ranks)}
    for stage in (1, 2, 3):
        told[f"stage {stage}"] = train_with_zero(stage)
    print("result", json.dumps(told))
    deepspeed.comm.destroy_process_group()


main()
