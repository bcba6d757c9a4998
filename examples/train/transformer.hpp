#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/adamw.h>
#include <torch/types.h>

/// A decoder-only transformer (Radford et al., "Language Models are Unsupervised Multitask
/// Learners", 2019), of the size that a processor trains in minutes.
namespace transformer {

struct Size {
  std::int64_t vocabulary = 0;
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t width = 128;   ///< a multiple of `heads`
  std::int64_t context = 64;  ///< tokens of the longest sequence
};

inline torch::nn::LayerNorm layer_norm(std::int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

/// Attention to the tokens before, then two layers on each token. Each adds to what it is given.
class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const Size& size)
      : heads_(size.heads),
        attention_norm_(register_module("attention_norm", layer_norm(size.width))),
        query_key_value_(
            register_module("query_key_value", torch::nn::Linear(size.width, 3 * size.width))),
        attention_out_(register_module("attention_out", torch::nn::Linear(size.width, size.width))),
        mlp_norm_(register_module("mlp_norm", layer_norm(size.width))),
        mlp_in_(register_module("mlp_in", torch::nn::Linear(size.width, 4 * size.width))),
        mlp_out_(register_module("mlp_out", torch::nn::Linear(4 * size.width, size.width))) {
    // Standard deviations are those of GPT-2. What a block adds is smaller where there are many.
    const torch::NoGradGuard no_gradients;
    for (const auto& linear : {query_key_value_, attention_out_, mlp_in_, mlp_out_}) {
      linear->weight.normal_(0, 0.02);
      linear->bias.zero_();
    }
    const auto layers = static_cast<double>(size.layers);
    for (const auto& linear : {attention_out_, mlp_out_})
      linear->weight.div_(std::sqrt(2 * layers));
  }

  /// [batch, tokens, width] -> the same.
  at::Tensor forward(at::Tensor x) {
    x = x + attend(attention_norm_->forward(x));
    const auto gelu = torch::nn::functional::GELUFuncOptions().approximate("tanh");
    const auto hidden = torch::nn::functional::gelu(mlp_in_->forward(mlp_norm_->forward(x)), gelu);
    return x + mlp_out_->forward(hidden);
  }

 private:
  at::Tensor attend(const at::Tensor& x) {
    const auto batch = x.size(0), tokens = x.size(1), width = x.size(2);
    const auto all = query_key_value_
                         ->forward(x)  // [3, batch, heads, tokens, width / heads]
                         .view({batch, tokens, 3, heads_, width / heads_})
                         .permute({2, 0, 3, 1, 4})
                         .unbind(0);
    const auto attended = at::scaled_dot_product_attention(all[0], all[1], all[2], {}, 0.0,
                                                           /*is_causal=*/true);
    return attention_out_->forward(attended.transpose(1, 2).reshape({batch, tokens, width}));
  }

  std::int64_t heads_;
  torch::nn::LayerNorm attention_norm_;
  torch::nn::Linear query_key_value_, attention_out_;
  torch::nn::LayerNorm mlp_norm_;
  torch::nn::Linear mlp_in_, mlp_out_;
};
TORCH_MODULE(Block);

/// The output layer is the transposed embedding of the tokens.
class TransformerImpl : public torch::nn::Module {
 public:
  explicit TransformerImpl(const Size& size)
      : tokens_(register_module("tokens", torch::nn::Embedding(size.vocabulary, size.width))),
        positions_(register_module("positions", torch::nn::Embedding(size.context, size.width))),
        blocks_(register_module("blocks", torch::nn::ModuleList())),
        norm_(register_module("norm", layer_norm(size.width))) {
    const torch::NoGradGuard no_gradients;
    tokens_->weight.normal_(0, 0.02);
    positions_->weight.normal_(0, 0.02);
    for (std::int64_t layer = 0; layer < size.layers; ++layer) blocks_->push_back(Block(size));
  }

  /// int64 [batch, tokens] -> the logits of each next token, [batch, tokens, vocabulary].
  at::Tensor forward(const at::Tensor& tokens) {
    const auto at = at::arange(tokens.size(1), tokens.options());
    auto x = tokens_->forward(tokens) + positions_->forward(at);
    for (const auto& block : *blocks_) x = block->as<Block>()->forward(x);
    return at::linear(norm_->forward(x), tokens_->weight);
  }

 private:
  torch::nn::Embedding tokens_, positions_;
  torch::nn::ModuleList blocks_;
  torch::nn::LayerNorm norm_;
};
TORCH_MODULE(Transformer);

/// Matrices are drawn to zero, and vectors (biases, norms) are not.
inline torch::optim::AdamW adam_w(const Transformer& model, double rate) {
  std::vector<at::Tensor> matrices, vectors;
  for (const auto& parameter : model->parameters())
    (parameter.dim() < 2 ? vectors : matrices).push_back(parameter);
  const auto options = [&](double decay) {
    return std::make_unique<torch::optim::AdamWOptions>(
        torch::optim::AdamWOptions(rate).betas({0.9, 0.99}).weight_decay(decay));
  };
  return torch::optim::AdamW(std::vector<torch::optim::OptimizerParamGroup>{
      {matrices, options(0.1)}, {vectors, options(0)}});
}

/// Lets the model write: draws each next token as likely as the model has it, but for what
/// `kTemperature` leaves out. int64 [tokens] -> the same with those behind that make it `length`.
inline at::Tensor written(Transformer& model, at::Tensor tokens, std::int64_t length,
                          std::int64_t context) {
  constexpr double kTemperature = 0.8;  // below 1: the likely ones become likelier
  const torch::NoGradGuard no_gradients;
  while (tokens.size(0) < length) {
    const auto last = tokens.slice(0, std::max<std::int64_t>(0, tokens.size(0) - context));
    const auto logits = model->forward(last.unsqueeze(0))[0][-1].to(torch::kFloat);
    tokens = at::cat({tokens, at::multinomial(at::softmax(logits / kTemperature, 0), 1)});
  }
  return tokens;
}

}  // namespace transformer
