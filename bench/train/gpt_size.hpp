#pragma once

#include <cstdint>

namespace troupe::bench {

/// The sizes of a decoder-only transformer. The defaults are GPT-2's smallest (Radford et al.,
/// 2019, table 2), with 124 million parameters: the output layer is the transposed embedding, and
/// the vocabulary is rounded up to a multiple of 64.
struct GptSize {
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;
  std::int64_t context = 1024;  ///< tokens of one sequence
  std::int64_t vocabulary = 50304;
};

}  // namespace troupe::bench
