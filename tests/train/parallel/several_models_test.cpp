#include <troupe/train/context.hpp>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/test_member.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

namespace {

constexpr std::int64_t kSamples = 12;  // of each rank
constexpr std::int64_t kNoise = 32;
constexpr std::int64_t kSample = 48;

ContextOptions with_buckets(std::size_t first, std::size_t others, bool find_unused = false) {
  ContextOptions options;
  options.timeout = std::chrono::seconds(60);
  options.data_parallel = {
      .first_bucket_bytes = first, .bucket_bytes = others, .find_unused_parameters = find_unused};
  return options;
}

/// A generator and a discriminator, as every rank makes them.
struct Adversaries {
  explicit Adversaries(std::int64_t hidden)
      : generator(std::vector<std::int64_t>{kNoise, hidden, hidden, kSample}, 1),
        discriminator(std::vector<std::int64_t>{kSample, hidden, hidden, 1}, 2) {}
  std::vector<torch::Tensor> parameters() const {
    auto all = generator->parameters();
    for (auto& parameter : discriminator->parameters()) all.push_back(parameter);
    return all;
  }
  void zero_grad() {
    generator->zero_grad();
    discriminator->zero_grad();
  }
  Net generator;
  Net discriminator;
};

/// Which models the loss of a step depends on.
enum class Through { Both, Generator, Discriminator };

torch::Tensor real(int rank, std::uint64_t step) {
  return rows(kSamples, kSample, 1000 + 10 * step + static_cast<std::uint64_t>(rank));
}
torch::Tensor noise(int rank, std::uint64_t step) {
  return rows(kSamples, kNoise, 5000 + 10 * step + static_cast<std::uint64_t>(rank));
}

/// Of the rows that a rank has in this step.
torch::Tensor adversary_loss(Adversaries& pair, int rank, std::uint64_t step, Through through) {
  if (through == Through::Generator)
    return pair.generator->forward(noise(rank, step)).pow(2).mean();
  auto judged = torch::softplus(-pair.discriminator->forward(real(rank, step))).mean();
  if (through == Through::Discriminator) return judged;
  return judged +
         torch::softplus(pair.discriminator->forward(pair.generator->forward(noise(rank, step))))
             .mean();
}

/// The average over the ranks, added up in their order by one process; undefined for a parameter
/// without a gradient.
std::vector<torch::Tensor> averages(Adversaries& pair, int ranks,
                                    const std::function<torch::Tensor(int rank)>& loss) {
  std::vector<torch::Tensor> sums(pair.parameters().size());
  for (int rank = 0; rank < ranks; ++rank) {
    pair.zero_grad();
    loss(rank).backward();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto gradient = pair.parameters()[i].grad();
      if (gradient.defined()) sums[i] = sums[i].defined() ? sums[i] + gradient : gradient.clone();
    }
  }
  for (auto& sum : sums) {
    if (sum.defined()) sum /= ranks;
  }
  return sums;
}

/// On one node the ranks' gradients are added up in their order too, so that averages are the same
/// bits.
void expect_gradients(const Adversaries& pair, const std::vector<torch::Tensor>& wanted,
                      const std::string& when, double tolerance = 0) {
  const auto parameters = pair.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto got = parameters[i].grad();
    expect(got.defined() == wanted[i].defined(),
           fmt::format("a gradient of parameter {} {} or none", i, when));
    if (!got.defined()) continue;
    const auto error = (got - wanted[i]).abs().max().item<double>();
    expect(error <= tolerance * wanted[i].abs().max().item<double>(),
           fmt::format("the average of parameter {} {}, it is off by {}", i, when, error));
  }
}

Adversaries prepared(Context& ctx, std::int64_t hidden) {
  Adversaries pair(hidden);
  ctx.prepare(pair.generator);
  ctx.prepare(pair.discriminator);
  return pair;
}

/// One step of all ranks, whose averages must be those of one process.
void check_step(Context& ctx, Adversaries& pair, Adversaries& reference, std::uint64_t step,
                Through through, double tolerance = 0) {
  pair.zero_grad();
  adversary_loss(pair, ctx.rank(), step, through).backward();
  const auto wanted = averages(reference, ctx.world_size(), [&](int rank) {
    return adversary_loss(reference, rank, step, through);
  });
  expect_gradients(pair, wanted, fmt::format("in step {}", step), tolerance);
}

/// A ring adds up in an order of its own.
double tolerance_of(const GangContext& gang) { return gang.node_count() > 1 ? 1e-14 : 0; }

/// Throws in backward once the last layer has its gradients, and so buckets are on their way.
void throw_in(torch::Tensor middle) {
  middle.register_hook(
      [](const torch::Tensor&) -> torch::Tensor { throw std::runtime_error("the user's hook"); });
}

/// The text of what `call` throws; empty: nothing.
std::string thrown_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("two models of 12 MiB in one backward have the averages of one process, twenty times",
          "[train][data_parallel][models]") {
  const int ranks = GENERATE(2, 3);
  CHECK(failures(ForkedGang::on_one_node(ranks).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, {.timeout = std::chrono::seconds(60)});
          auto pair = prepared(ctx, 850);
          Adversaries reference(850);
          for (std::uint64_t step = 0; step < 20; ++step)
            check_step(ctx, pair, reference, step, Through::Both);
        })) == "");
}

TEST_CASE("models that take part by turns and together are averaged, over two nodes too",
          "[train][data_parallel][models]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(3), ForkedGang::on_nodes(3, 2));
  CHECK(failures(gang.run([](GangContext& context) {
          TestMember member(context);
          Context ctx(member, with_buckets(1000, 4000));
          auto pair = prepared(ctx, 40);
          Adversaries reference(40);
          for (std::uint64_t step = 0; step < 30; ++step)
            check_step(ctx, pair, reference, step, static_cast<Through>(step % 3),
                       tolerance_of(context));
        })) == "");
}

// Autograd comes first to what was computed last, so the ranks' buckets are full in different
// orders.
TEST_CASE("ranks whose models are ready in different orders average alike",
          "[train][data_parallel][models]") {
  const int ranks = GENERATE(2, 3);
  CHECK(failures(ForkedGang::on_one_node(ranks).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, with_buckets(1000, 4000));
          auto pair = prepared(ctx, 40);
          Adversaries reference(40);
          auto apart = [](Adversaries& of, int rank, std::uint64_t step) {
            std::vector<torch::Tensor> losses(2);
            for (int turn = 0; turn < 2; ++turn) {
              const bool first = (turn + rank + static_cast<int>(step)) % 2 == 0;
              losses[first ? 0 : 1] = adversary_loss(
                  of, rank, step, first ? Through::Generator : Through::Discriminator);
            }
            return losses[0] + losses[1];
          };
          for (std::uint64_t step = 0; step < 50; ++step) {
            pair.zero_grad();
            apart(pair, ctx.rank(), step).backward();
            expect_gradients(pair,
                             averages(reference, ctx.world_size(),
                                      [&](int r) { return apart(reference, r, step); }),
                             fmt::format("in step {}", step));
          }
        })) == "");
}

TEST_CASE("after a backward that an exception left on every rank the next ones average",
          "[train][data_parallel][failure]") {
  const int ranks = GENERATE(2, 3);
  CHECK(failures(ForkedGang::on_one_node(ranks).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, with_buckets(1000, 4000));
          auto pair = prepared(ctx, 40);
          Adversaries reference(40);
          for (std::uint64_t step = 0; step < 12; ++step) {
            if (step % 3 != 1) {
              check_step(ctx, pair, reference, step, Through::Both);
              continue;
            }
            pair.zero_grad();
            auto sample = pair.generator->forward(noise(ctx.rank(), step));
            throw_in(sample);
            const auto text =
                thrown_by([&] { pair.discriminator->forward(sample).sum().backward(); });
            expect(text.find("the user's hook") != std::string::npos,
                   "the exception of the hook, it is " + text);
          }
        })) == "");
}

TEST_CASE(
    "a backward that an exception left on one rank fails on all, naming that rank, and the next "
    "one averages",
    "[train][data_parallel][failure]") {
  const auto gang =
      GENERATE(ForkedGang::on_one_node(2), ForkedGang::on_one_node(3), ForkedGang::on_nodes(3, 2));
  const int thrower = GENERATE(0, 1);
  CHECK(failures(gang.run([thrower](GangContext& context) {
          TestMember member(context);
          Context ctx(member, with_buckets(1000, 4000));
          auto pair = prepared(ctx, 40);
          Adversaries reference(40);
          for (std::uint64_t step = 0; step < 12; ++step) {
            if (step % 3 != 1) {
              check_step(ctx, pair, reference, step, Through::Both, tolerance_of(context));
              continue;
            }
            pair.zero_grad();
            auto sample = pair.generator->forward(noise(ctx.rank(), step));
            if (ctx.rank() == thrower) throw_in(sample);
            const auto text =
                thrown_by([&] { pair.discriminator->forward(sample).sum().backward(); });
            const auto wanted =
                ctx.rank() == thrower
                    ? std::string("the user's hook")
                    : fmt::format("rank {} left this backward by an exception", thrower);
            expect(text.find(wanted) != std::string::npos, wanted + ", it is " + text);
          }
        })) == "");
}

TEST_CASE(
    "a model that takes part on some ranks only is named on all, and the next backward averages",
    "[train][data_parallel][failure]") {
  CHECK(
      failures(ForkedGang::on_one_node(3).run([](GangContext& gang) {
        TestMember member(gang);
        Context ctx(member, with_buckets(1000, 4000));
        auto pair = prepared(ctx, 40);
        Adversaries reference(40);
        const auto text = thrown_by([&] {
          adversary_loss(pair, ctx.rank(), 0, ctx.rank() == 1 ? Through::Generator : Through::Both)
              .backward();
        });
        expect(
            text.find("model 1 (layer0.weight, ...) got gradients on rank 0, and none on rank 1") !=
                std::string::npos,
            "the model and the ranks, it is " + text);
        check_step(ctx, pair, reference, 1, Through::Both);
      })) == "");
}

TEST_CASE("with find_unused_parameters a model that a rank did not use at all counts as zero there",
          "[train][data_parallel][models]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, with_buckets(1000, 4000, true));
          auto pair = prepared(ctx, 40);
          Adversaries reference(40);
          for (std::uint64_t step = 0; step < 4; ++step) {
            auto mixed = [step](Adversaries& of, int rank) {
              return adversary_loss(of, rank, step,
                                    rank == 0 ? Through::Generator : Through::Discriminator);
            };
            pair.zero_grad();
            mixed(pair, ctx.rank()).backward();
            expect_gradients(
                pair, averages(reference, 2, [&](int rank) { return mixed(reference, rank); }),
                fmt::format("in step {}", step));
          }
        })) == "");
}
