#pragma once

#include <cstdint>

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include "train/gpt_size.hpp"

/// A decoder-only transformer, to measure training steps with. `peer/torch_train.py` has the same
/// one in Python.
namespace troupe::bench {

class GptBlockImpl : public torch::nn::Module {
 public:
  explicit GptBlockImpl(const GptSize& size);
  /// `x` is [batch, tokens, width], and so is the result.
  torch::Tensor forward(torch::Tensor x);

 private:
  torch::Tensor attend(const torch::Tensor& x);

  std::int64_t heads_;
  torch::nn::LayerNorm before_attention_, before_mlp_;
  torch::nn::Linear query_key_value_, attention_out_, up_, down_;
};
TORCH_MODULE(GptBlock);

class GptImpl : public torch::nn::Module {
 public:
  explicit GptImpl(const GptSize& size);
  /// `tokens` is [batch, context] of int64. Returns the logits, [batch, context, vocabulary].
  torch::Tensor forward(const torch::Tensor& tokens);

 private:
  torch::nn::Embedding tokens_, positions_;
  torch::nn::ModuleList blocks_;
  torch::nn::LayerNorm last_;
};
TORCH_MODULE(Gpt);

/// While it lives, this thread's operations on a GPU run in bfloat16 where PyTorch's autocast says
/// so, and the weights stay float32.
class Bfloat16Autocast {
 public:
  Bfloat16Autocast();
  ~Bfloat16Autocast();
  Bfloat16Autocast(const Bfloat16Autocast&) = delete;
  Bfloat16Autocast& operator=(const Bfloat16Autocast&) = delete;
};

}  // namespace troupe::bench
