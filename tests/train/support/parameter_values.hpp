#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/serialize.h>
#include <torch/utils.h>
#include <troupe/train/context.hpp>

#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/scratch.hpp"

/// The values of a net's parameters, which tests compare. To be used in forked ranks only, but for
/// the making of KeptValues.
namespace troupe::testing {

inline std::vector<torch::Tensor> values_of(Net& net) {
  std::vector<torch::Tensor> values;
  for (const auto& parameter : net->parameters()) values.push_back(parameter.detach().clone());
  return values;
}

/// Also of parameters that ZeRO has cut. A collective.
inline std::vector<torch::Tensor> whole_values(train::Context& ctx, Net& net) {
  const auto whole = ctx.gathered(net);
  return values_of(net);
}

/// Of any types. An element of `a` differs from that of `b` by `tolerance` * (1 + |b|) at most.
inline void expect_close(const torch::Tensor& a, const torch::Tensor& b, double tolerance,
                         const std::string& what) {
  expect(a.sizes() == b.sizes(), what + ": the shape");
  const auto wide_a = a.to(torch::kFloat64), wide_b = b.to(torch::kFloat64);
  expect(torch::allclose(wide_a, wide_b, tolerance, tolerance), [&] {
    return fmt::format("{} differs by {}", what, (wide_a - wide_b).abs().max().item<double>());
  });
}

inline void expect_same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b,
                        double tolerance, const std::string& what) {
  expect(a.size() == b.size(), what + ": as many parameters");
  for (std::size_t i = 0; i < a.size(); ++i)
    expect_close(a[i], b[i], tolerance, fmt::format("{}: parameter {}", what, i));
}

inline std::vector<torch::Tensor> in_main_memory(const std::vector<torch::Tensor>& values) {
  std::vector<torch::Tensor> moved;
  for (const auto& value : values) moved.push_back(value.cpu());
  return moved;
}

/// The values with which one gang ends, of any device, for gangs that are forked later.
class KeptValues {
 public:
  /// Those of rank 0. The other ranks do nothing.
  void keep(const train::Context& ctx, const std::vector<torch::Tensor>& values) const {
    if (ctx.rank() == 0) torch::save(in_main_memory(values), file());
  }
  void expect_same_as(const std::vector<torch::Tensor>& values, double tolerance,
                      const std::string& what) const {
    std::vector<torch::Tensor> kept;
    torch::load(kept, file());
    expect_same(in_main_memory(values), kept, tolerance, what);
  }

 private:
  std::string file() const { return (folder_.path() / "values.pt").string(); }

  Scratch folder_;
};

}  // namespace troupe::testing
