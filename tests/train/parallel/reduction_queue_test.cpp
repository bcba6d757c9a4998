#include "parallel/averaging/reduction_queue.hpp"
#include "rounds.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "guard.hpp"
#include "support/forked_gang.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

namespace {

constexpr std::size_t kModels = 3;
constexpr int kBackwards = 300;

/// A model without LibTorch: a bucket is one number, and backward fills it in.
class Numbers final : public Reducible {
 public:
  Numbers(Communicator& communicator, std::size_t buckets, bool zeros)
      : values(buckets), communicator_(communicator), zeros_(zeros) {}
  std::string name() const override { return "numbers"; }
  std::size_t buckets() const override { return values.size(); }
  bool owes_average() const override { return false; }
  bool zero_where_unused() const override { return zeros_; }
  void reduce(std::size_t bucket) override {
    communicator_.all_reduce(&values[bucket], 1, DataType::Float64, ReduceOp::Average);
  }
  void fill() override {
    if (refuses) throw std::runtime_error("no gradient");
  }
  void fill_with_zeros() override { std::fill(values.begin(), values.end(), 0); }
  void finish(Communicator&) override {}
  void reset() override {
    filled = 0;
    refuses = false;
  }

  std::vector<double> values;
  std::size_t filled = 0;
  bool refuses = false;

 private:
  Communicator& communicator_;
  const bool zeros_;
};

/// What happens in one backward, the same on all ranks.
struct Plan {
  enum class Mishap { None, Abandoned, Refused, NotEverywhere };
  Plan(std::mt19937& random, int ranks) {
    for (auto&& takes_part : models) takes_part = random() % 3 != 0;
    models[random() % kModels] = true;
    // One of four backwards goes wrong, on one rank.
    mishap = random() % 4 == 0 ? static_cast<Mishap>(1 + random() % 3) : Mishap::None;
    rank = static_cast<int>(random() % static_cast<unsigned>(ranks));
  }
  std::vector<bool> models = std::vector<bool>(kModels);
  Mishap mishap;
  int rank;
};

double value_of(int backward, std::size_t model, std::size_t bucket, int rank) {
  return 1000.0 * backward + 100.0 * static_cast<double>(model) +
         10.0 * static_cast<double>(bucket) + rank;
}

/// One rank: its models, and a random order of its own in which it fills their buckets.
class Rank {
 public:
  Rank(GangContext& gang, unsigned seed)
      : gang_(gang),
        communicator_(make_host_communicator(gang, {.timeout = test::kGuard})),
        queue_(*communicator_),
        own_(seed + 1 + static_cast<unsigned>(gang.rank())) {
    for (std::size_t m = 0; m < kModels; ++m) {
      models_.push_back(std::make_unique<Numbers>(*communicator_, 1 + 2 * m, m == 1));
      expect(queue_.add(*models_.back()) == m, "the ordinal of the model");
    }
  }

  void run(int backward, const Plan& plan) {
    const bool here = gang_.rank() == plan.rank;
    auto takes_part = plan.models;
    const auto missing = std::find(takes_part.begin(), takes_part.end(), true);
    const bool alone = std::count(takes_part.begin(), takes_part.end(), true) == 1;
    const bool lacks = plan.mishap == Plan::Mishap::NotEverywhere && !alone;
    if (lacks && here) *missing = false;
    fill(backward, takes_part, here && plan.mishap == Plan::Mishap::Abandoned);
    if (here && plan.mishap == Plan::Mishap::Abandoned) return queue_.abandon();
    if (here && plan.mishap == Plan::Mishap::Refused) {
      const auto begun = static_cast<std::size_t>(
          std::find(takes_part.begin(), takes_part.end(), true) - takes_part.begin());
      models_[begun]->refuses = true;
    }
    const auto thrown = close();
    const auto absent = lacks ? static_cast<std::size_t>(missing - takes_part.begin()) : kModels;
    check(plan, thrown, absent);
    if (thrown.empty()) check_averages(backward, plan, absent);
  }

 private:
  /// Autograd: a bucket of any model that has one left, until all are full or, if it is to be left,
  /// half of them.
  void fill(int backward, const std::vector<bool>& takes_part, bool leaves) {
    std::vector<std::size_t> turns;
    for (std::size_t m = 0; m < kModels; ++m) {
      if (takes_part[m]) turns.insert(turns.end(), models_[m]->buckets(), m);
    }
    std::shuffle(turns.begin(), turns.end(), own_);
    if (leaves) turns.resize((turns.size() + 1) / 2);
    std::vector<bool> begun(kModels);
    for (auto m : turns) {
      if (!begun[m]) queue_.begin(m);
      begun[m] = true;
      auto& model = *models_[m];
      model.values[model.filled] = value_of(backward, m, model.filled, gang_.rank());
      queue_.on_full(m, ++model.filled);
      if (own_() % 2 == 0) queue_.await_room(m, own_() % 3);
      if (own_() % 4 == 0) std::this_thread::yield();
    }
  }

  std::string close() {
    try {
      queue_.close();
    } catch (const std::exception& e) {
      return e.what();
    }
    return "";
  }

  void check(const Plan& plan, const std::string& thrown, std::size_t absent) const {
    std::string wanted;
    if (plan.mishap == Plan::Mishap::Refused && gang_.rank() == plan.rank)
      wanted = "no gradient";
    else if (plan.mishap == Plan::Mishap::Abandoned || plan.mishap == Plan::Mishap::Refused)
      wanted = fmt::format("rank {} left this backward by an exception", plan.rank);
    else if (absent < kModels && !models_[absent]->zero_where_unused())
      wanted = fmt::format("model {} (numbers) got gradients on rank {}, and none on rank {}",
                           absent, plan.rank == 0 ? 1 : 0, plan.rank);
    expect(wanted.empty() ? thrown.empty() : thrown.starts_with(wanted),
           fmt::format("\"{}\", it is \"{}\"", wanted, thrown));
  }

  void check_averages(int backward, const Plan& plan, std::size_t absent) const {
    for (std::size_t m = 0; m < kModels; ++m) {
      if (!plan.models[m]) continue;
      for (std::size_t bucket = 0; bucket < models_[m]->buckets(); ++bucket) {
        double sum = 0;
        for (int r = 0; r < gang_.size(); ++r) {
          if (m != absent || r != plan.rank) sum += value_of(backward, m, bucket, r);
        }
        expect(std::abs(models_[m]->values[bucket] - sum / gang_.size()) < 1e-9,
               fmt::format("the average of bucket {} of model {} in backward {}", bucket, m,
                           backward));
      }
    }
  }

  GangContext& gang_;
  std::unique_ptr<Communicator> communicator_;
  ReductionQueue queue_;
  std::mt19937 own_;
  std::vector<std::unique_ptr<Numbers>> models_;
};

}  // namespace

// Invariants 1 to 4 of ReductionQueue: a call that does not fit throws, and a wait without end does
// at its deadline.
TEST_CASE("backwards whose ranks fill buckets in any order, or fail, stay in step",
          "[train][reduction_queue]") {
  const auto gang =
      GENERATE(ForkedGang::on_one_node(2), ForkedGang::on_one_node(3), ForkedGang::on_nodes(3, 2));
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  CHECK(failures(gang.run([seed](GangContext& context) {
          std::mt19937 shared(seed);
          Rank rank(context, seed);
          for (int backward = 0; backward < kBackwards; ++backward)
            rank.run(backward, Plan(shared, context.size()));
        })) == "");
}

namespace {

/// A model whose reductions wait until they are let go.
class Held final : public Reducible {
 public:
  std::string name() const override { return "held"; }
  std::size_t buckets() const override { return 8; }
  bool owes_average() const override { return false; }
  bool zero_where_unused() const override { return false; }
  void reduce(std::size_t) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return allowed_ > reduced_; });
    ++reduced_;
  }
  void fill() override {}
  void fill_with_zeros() override {}
  void finish(Communicator&) override {}
  void reset() override {}

  void allow(int reductions) {
    const std::lock_guard lock(mutex_);
    allowed_ += reductions;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int allowed_ = 0;
  int reduced_ = 0;
};

}  // namespace

TEST_CASE("backward waits for room while buckets are not reduced", "[train][reduction_queue]") {
  CHECK(failures(ForkedGang::on_one_node(1).run([](GangContext& gang) {
          const auto communicator = make_host_communicator(gang, {});
          ReductionQueue queue(*communicator);
          Held model;
          const auto number = queue.add(model);
          queue.begin(number);
          std::atomic<int> filled = 0;
          std::thread backward([&] {
            for (int bucket = 1; bucket <= 4; ++bucket) {
              queue.on_full(number, static_cast<std::size_t>(bucket));
              queue.await_room(number, 2);
              filled = bucket;
            }
          });
          expect(eventually([&] { return filled == 2; }), "two full buckets are not waited for");
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          expect(filled == 2, "and the third one is");
          model.allow(1);
          expect(eventually([&] { return filled == 3; }), "until one is reduced");
          model.allow(1);
          expect(eventually([&] { return filled == 4; }), "and so on");
          backward.join();
          model.allow(8);
          queue.close();
        })) == "");
}

TEST_CASE("backward does not wait for a queue that waits for it", "[train][reduction_queue]") {
  CHECK(failures(ForkedGang::on_one_node(1).run([](GangContext& gang) {
          const auto communicator = make_host_communicator(gang, {});
          ReductionQueue queue(*communicator);
          Held first, second;
          first.allow(8);
          second.allow(8);
          const auto last_in_order = queue.add(first);
          const auto first_in_order = queue.add(second);
          queue.begin(first_in_order);
          queue.begin(last_in_order);
          // The next bucket in the order is the first of `second`, which this thread fills later.
          queue.on_full(last_in_order, 3);
          queue.await_room(last_in_order, 0);
          queue.on_full(first_in_order, 8);
          queue.on_full(last_in_order, 8);
          queue.close();
        })) == "");
}
