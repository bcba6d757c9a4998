#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "train/gpt_size.hpp"

/// What the benchmarks of training compute from the times that they have measured. Pure functions.
namespace troupe::bench {

/// Both bandwidths of an all-reduce, in GB/s of 10^9 bytes, as nccl-tests defines them
/// (doc/PERFORMANCE.md there). S is the size of the buffer of one rank, t the time, n the number of
/// ranks.
struct Bandwidth {
  double algorithm = 0;  ///< S / t
  double bus = 0;        ///< S / t * 2 * (n - 1) / n: what each rank must send, and receive
};
Bandwidth bandwidth_of_all_reduce(std::size_t bytes, double seconds, int ranks);

/// The floating-point operations of a model's forward and backward for one token, 6 * N plus
/// 12 * layers * width * context (Chowdhery et al., PaLM, 2022, appendix B). N counts the
/// parameters that multiply: those of the linear layers, and the embedding as the output layer; not
/// the positions' embedding, biases and layer norms. The attention term is that of PaLM, which
/// counts a causal model's masked half too. What a backward computes anew, where
/// activations are not kept, does not count.
double flops_per_token(const GptSize& size);

/// The dense peak of a GPU's tensor cores in bfloat16, in TFLOP/s, from NVIDIA's data sheets (which
/// name twice as much, with sparsity, for GPUs since the A100). `name` is CUDA's, such as
/// "NVIDIA H100 80GB HBM3". nullopt: of another GPU, or of a part of one (MIG).
std::optional<double> peak_tflops_of(std::string_view name);

/// What one GPU computes of a model, beside what it could.
struct Computing {
  double tflops = 0;           ///< TFLOP/s of the model, of all ranks on that GPU
  std::optional<double> peak;  ///< TFLOP/s; nullopt: unknown
  std::string gpu;             ///< CUDA's name of the GPU

  /// The share of the peak that is computed; nullopt where the peak is unknown.
  std::optional<double> share() const;
  /// "280 TFLOP/s, 28 % of 989", or where the peak is unknown how to name it.
  std::string text() const;
};
/// Ranks that have `gpus` GPUs make so many steps a second, each with a batch of `tokens` of its
/// own. `peak`: in TFLOP/s; 0: that of the GPU's name.
Computing computing(const GptSize& size, double tokens, double steps_per_s, int ranks, int gpus,
                    std::string gpu, double peak = 0);

}  // namespace troupe::bench
