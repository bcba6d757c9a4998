#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/optim/adam.h>
#include <troupe/detail/trainable/trainable_worker.hpp>
#include <troupe/train/context.hpp>

#include "guard.hpp"
#include "support/forked_gang.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"

/// Trainings that fill the memory of any device. To be used in forked ranks only.
namespace full_memory_training {

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

struct Size {
  std::int64_t layers = 30;
  std::int64_t width = 200;
  std::int64_t filler = 0;  ///< elements of float32 that the function makes after its steps
};
inline constexpr std::int64_t kRowsOfBatch = 2;

inline void train_steps(Context& ctx, const Size& size = {}) {
  const std::vector<std::int64_t> widths(static_cast<std::size_t>(size.layers) + 1, size.width);
  auto net = ctx.prepare(float_net(widths));
  auto optimizer = ctx.prepare(torch::optim::Adam(net->parameters(), 1e-3));
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const auto x = torch::ones({kRowsOfBatch, size.width}, net->parameters().front().dtype());
    net->forward(x.to(ctx.device())).square().mean().backward();
    optimizer.step();
  }
}

inline double train_and_fill(Context& ctx, const Size& size) {
  train_steps(ctx, size);
  return torch::ones({size.filler}, ctx.device()).sum().item<double>();
}

/// What train_where_little_is_free calls once LibTorch and NCCL have what they need of the device
/// besides tensors.
inline std::function<void()> take_the_rest;

inline double train_where_little_is_free(Context& ctx, const Size& size) {
  train_steps(ctx, {.layers = 2, .width = 64});
  take_the_rest();
  train_steps(ctx, size);
  return 0;
}

/// What a run tells of a training that finds the device's memory full; "" where another rank was
/// the first, which then has the advice.
template <auto kTrain>
std::string error_where_full(Member& member, const Size& size) {
  try {
    troupe::detail::ResultSlot<double> result;
    troupe::detail::run_trainable<kTrain>(member, size, result);
  } catch (const c10::OutOfMemoryError& full) {
    return full.what();
  } catch (const GangBroken&) {
    return "";
  }
  expect(false, "the memory is full");
  return "";
}

/// One rank trains 8.4 million parameters, which with Adam take 134 MB, where less is free of a
/// device that has 1 GB or more.
/// `leave_free`: leaves so many bytes of the device's memory free.
inline void expect_advice_of_one_rank(GangContext& gang,
                                      const std::function<void(std::int64_t)>& leave_free,
                                      std::int64_t free_bytes) {
  ContextOptions options;
  options.timeout = test::kGuard;
  TestMember member(gang, {}, {}, options);
  take_the_rest = [=] { leave_free(free_bytes); };
  const auto error =
      error_where_full<train_where_little_is_free>(member, {.layers = 8, .width = 1024});
  expect_in(error,
            "By train::plan, with Adam on one rank, .zero = {.stage = 0} takes 0.14 GB of the ");
  expect_in(error,
            ", beside activations. Use .zero = {.stage = 1, .offload_optimizer = true}, "
            "which takes 0.12 GB, or a smaller batch.");
}

/// For the model there is too little, or for the averages of Adam.
inline const std::vector<std::int64_t> kTooLittle{16'000'000, 110'000'000};

}  // namespace full_memory_training
