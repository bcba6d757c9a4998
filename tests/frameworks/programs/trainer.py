"""A Trainer of Hugging Face finds its ranks by itself."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


def main():
    words = [{"input_ids": torch.arange(8) + i, "labels": torch.arange(8) + i} for i in range(16)]
    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=8, n_embd=16, n_layer=1, n_head=2))
    with tempfile.TemporaryDirectory() as folder:
        options = TrainingArguments(output_dir=folder, use_cpu=True, ddp_backend="gloo", max_steps=3, per_device_train_batch_size=2,
                                    save_strategy="no", report_to=[], disable_tqdm=True, logging_steps=100)
        trainer = Trainer(model=model, args=options, train_dataset=words)
        trainer.train()
    print("result", options.process_index, options.world_size, options.parallel_mode.value, trainer.state.global_step)
    torch.distributed.destroy_process_group()


main()
