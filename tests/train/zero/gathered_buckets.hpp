#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/utils.h>

#include "support/forked_gang.hpp"
#include "zero/gathering/gathering.hpp"

#include "refusing_communicator.hpp"

/// Buckets of parameters that a Gathering by itself brings. To be used in forked ranks only.
namespace troupe::testing {

/// Counts what it passes on to another one.
class CountingCommunicator final : public RefusingCommunicator {
 public:
  explicit CountingCommunicator(train::Communicator& other) : other_(other) {}
  int rank() const override { return other_.rank(); }
  int size() const override { return other_.size(); }
  void abort(std::string_view reason) override { other_.abort(reason); }

  /// Called before each call of the thread that has made this.
  void set_before_call(std::function<void()> before_call) { before_call_ = std::move(before_call); }
  /// The next call in the background waits until it is let go.
  void hold_background() { is_held_ = true; }
  void let_background_go() {
    is_held_ = false;
    is_held_.notify_all();
  }
  int calls() const { return calls_; }
  /// Of other threads than that which has made this.
  int calls_in_background() const { return in_background_; }

 private:
  void do_all_gather(const void* in, void* out, std::size_t count, DataType type) override {
    ++calls_;
    if (std::this_thread::get_id() != thread_) {
      is_held_.wait(true);
      ++in_background_;
    } else if (before_call_) {
      before_call_();
    }
    other_.all_gather(in, out, count, type);
  }

  train::Communicator& other_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::function<void()> before_call_;
  std::atomic<int> calls_ = 0, in_background_ = 0;
  std::atomic<bool> is_held_ = false;
};

/// Buckets of one parameter each, of one rank.
class Buckets {
 public:
  Buckets(GangContext& gang, int buckets, bool prefetches = true, std::int64_t elements = 300)
      : device_(train::make_host_communicator(gang, {.name = "device"})),
        control_(train::make_host_communicator(gang, {.name = "control"})),
        communicator(*device_),
        control(*control_),
        gathering(communicator, control, prefetches) {
    for (int bucket = 0; bucket < buckets; ++bucket) {
      values_.push_back(torch::arange(elements, torch::kFloat64) + 1000 * bucket);
      parameters.push_back(values_.back().clone());
      flats_.push_back(std::make_shared<train::Flat>(
          std::vector<train::NamedTensor>{{fmt::format("weight {}", bucket), parameters.back()}},
          gang.rank(), gang.size(), train::Flat::Holds::Part));
    }
    gathering.add(flats_);
  }

  /// An operator uses it.
  void use(int bucket) {
    const torch::NoGradGuard no_grad;
    const auto at = static_cast<std::size_t>(bucket);
    expect(torch::equal(parameters[at] * 1, values_[at]),
           [&] { return fmt::format("bucket {} has its values", bucket); });
    expect(is_held_ || here() <= train::Gathering::kKept, "no more are here than are kept");
  }
  void use(const std::vector<int>& buckets) {
    for (const auto bucket : buckets) use(bucket);
  }
  /// As all ranks do.
  void write(int bucket, double value) {
    const torch::NoGradGuard no_grad;
    parameters[static_cast<std::size_t>(bucket)].fill_(value);
    values_[static_cast<std::size_t>(bucket)].fill_(value);
  }
  /// As all ranks do: the program puts the values elsewhere.
  void replace(int bucket) {
    const torch::NoGradGuard no_grad;
    const auto at = static_cast<std::size_t>(bucket);
    parameters[at].set_data(values_[at].clone());
  }
  /// As all ranks do after they have met: each updates its part.
  void step() {
    for (auto& flat : flats_) flat->move_back();
    gathering.settle();
    for (auto& flat : flats_) {
      flat->begin_update();
      for (auto piece : flat->piece_tensors()) piece.add_(1);
      flat->end_update(communicator);
    }
    for (auto& values : values_) values.add_(1);
  }
  void hold() {
    gathering.hold(flats_);
    is_held_ = true;
  }
  void release_held() {
    train::Gathering::release_held(flats_);
    is_held_ = false;
  }
  void meet() {
    gathering.meet();
    expect(here() == 0, "none is here after ranks have met");
  }
  std::size_t here() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(flats_, [](const auto& flat) { return flat->is_whole(); }));
  }

 private:
  std::unique_ptr<train::Communicator> device_, control_;
  std::vector<at::Tensor> values_;
  std::vector<std::shared_ptr<train::Flat>> flats_;
  bool is_held_ = false;

 public:
  CountingCommunicator communicator, control;
  train::Gathering gathering;
  std::vector<at::Tensor> parameters;
};

}  // namespace troupe::testing
