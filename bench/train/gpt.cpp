#include "train/gpt.hpp"

#include <tuple>

#include <ATen/autocast_mode.h>
#include <torch/nn/functional/activation.h>
#include <torch/types.h>

namespace troupe::bench {

namespace {
torch::nn::LayerNorm layer_norm(std::int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

/// What Linear::forward computes, with the bias added by the multiplication itself, as in Python:
/// LibTorch's module adds it in a kernel of its own where the input has three dimensions.
torch::Tensor affine(const torch::nn::Linear& linear, const torch::Tensor& x) {
  return at::linear(x, linear->weight, linear->bias);
}
}  // namespace

GptBlockImpl::GptBlockImpl(const GptSize& size)
    : heads_(size.heads),
      before_attention_(register_module("before_attention", layer_norm(size.width))),
      before_mlp_(register_module("before_mlp", layer_norm(size.width))),
      query_key_value_(
          register_module("query_key_value", torch::nn::Linear(size.width, 3 * size.width))),
      attention_out_(register_module("attention_out", torch::nn::Linear(size.width, size.width))),
      up_(register_module("up", torch::nn::Linear(size.width, 4 * size.width))),
      down_(register_module("down", torch::nn::Linear(4 * size.width, size.width))) {}

torch::Tensor GptBlockImpl::attend(const torch::Tensor& x) {
  const auto batch = x.size(0), tokens = x.size(1), width = x.size(2);
  // [3, batch, heads, tokens, width / heads]
  const auto all = affine(query_key_value_, x)
                       .view({batch, tokens, 3, heads_, width / heads_})
                       .permute({2, 0, 3, 1, 4})
                       .unbind(0);
  const auto attended = at::scaled_dot_product_attention(all[0], all[1], all[2], {}, 0.0, true);
  return affine(attention_out_, attended.transpose(1, 2).contiguous().view({batch, tokens, width}));
}

torch::Tensor GptBlockImpl::forward(torch::Tensor x) {
  x = x + attend(before_attention_->forward(x));
  const auto hidden =
      torch::nn::functional::gelu(affine(up_, before_mlp_->forward(x)),
                                  torch::nn::functional::GELUFuncOptions().approximate("tanh"));
  return x + affine(down_, hidden);
}

GptImpl::GptImpl(const GptSize& size)
    : tokens_(register_module("tokens", torch::nn::Embedding(size.vocabulary, size.width))),
      positions_(register_module("positions", torch::nn::Embedding(size.context, size.width))),
      blocks_(register_module("blocks", torch::nn::ModuleList())),
      last_(register_module("last", layer_norm(size.width))) {
  for (std::int64_t i = 0; i < size.layers; ++i) blocks_->push_back(GptBlock(size));
  const torch::NoGradGuard no_grad;
  tokens_->weight.normal_(0, 0.02);
  positions_->weight.normal_(0, 0.02);
}

torch::Tensor GptImpl::forward(const torch::Tensor& tokens) {
  const auto at = torch::arange(tokens.size(1), tokens.options());
  auto x = tokens_->forward(tokens) + positions_->forward(at);
  for (const auto& block : *blocks_) x = block->as<GptBlock>()->forward(x);
  return at::linear(last_->forward(x), tokens_->weight);
}

Bfloat16Autocast::Bfloat16Autocast() {
  at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCUDA, true);
}

Bfloat16Autocast::~Bfloat16Autocast() {
  at::autocast::clear_cache();  // of weights in bfloat16, which the next step changes
  at::autocast::set_autocast_enabled(at::kCUDA, false);
}

}  // namespace troupe::bench
