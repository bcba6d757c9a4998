"""Lightning finds its ranks by itself."""

import os

import lightning
import torch
import torch.distributed as dist


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, _):
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main():
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 4)), batch_size=4)
    trainer = lightning.Trainer(accelerator="cpu", strategy="ddp", devices=int(os.environ["LOCAL_WORLD_SIZE"]),
                                num_nodes=int(os.environ["GROUP_WORLD_SIZE"]), max_epochs=1, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Module(), data)
    environment = trainer.strategy.cluster_environment
    print("result", type(environment).__name__, trainer.global_rank, trainer.world_size, dist.get_backend(), trainer.global_step)


main()
