// Trainings whose disk becomes full on the way, or has no room for one of the ranks.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <troupe/train/context.hpp>

#include "checkpoint/restoring/saved_files.hpp"
#include "checkpoint/small_checkpoint.hpp"
#include "small_disk.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/parameter_values.hpp"
#include "support/rank_logs.hpp"
#include "support/scratch.hpp"
#include "support/test_member.hpp"
#include "support/zero_training.hpp"

using namespace troupe;
using namespace troupe::testing;
using train::Context;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kSteps = 6;
constexpr std::uint64_t kFullFrom = 2;  // the save that is the first to find no room
constexpr int kDiskKib = 2048;          // less than a filler is, and more than all checkpoints are
constexpr rlim_t kMostInFile = 4096;    // bytes: less than a rank's part, more than it logs

struct Way {
  int full_rank;  // no file of this rank's process may become large; -1: the disk is full
  int stage;      // of ZeRO
  bool in_background;
  std::uint64_t room_from = kSteps;  // the save that finds room again

  bool is_disk() const { return full_rank < 0; }
  bool has_room(std::uint64_t save) const { return save < kFullFrom || save >= room_from; }
};

/// Before each save.
void take_or_make_room(const Way& way, const Context& ctx, const fs::path& storage,
                       std::uint64_t save) {
  if (save != kFullFrom && save != way.room_from) return;
  if (way.is_disk()) {
    if (ctx.rank() != 0) return;
    if (way.has_room(save))
      test::make_room(storage);
    else
      test::fill(storage);
  } else if (ctx.rank() == way.full_rank) {
    limit_files(way.has_room(save) ? RLIM_INFINITY : kMostInFile);
  }
}

/// What rank 0 sees of each save.
void check_saved(const Way& way, const train::Checkpoint& saved, const fs::path& storage,
                 std::uint64_t save) {
  const auto before = std::min(save, kFullFrom);
  if (way.has_room(save)) {
    const auto number = save < kFullFrom ? save : kFullFrom + save - way.room_from;
    expect(saved.error.empty(), saved.error);
    expect(saved.directory == storage / fmt::format("checkpoint_{:06}", number),
           "the number behind the last one: " + saved.directory.string());
    return;
  }
  const std::string why = way.is_disk() ? "No space left on device" : "File too large";
  const std::string of_rank = way.full_rank == 1 ? "rank 1: cannot write " : "cannot write ";
  expect(saved.directory.empty(), "no checkpoint");
  expect(saved.error.starts_with(of_rank) && saved.error.ends_with(why), saved.error);
  expect(entries(storage) == before + (way.is_disk() ? 1 : 0), "what was written of it is gone");
  const auto last = train::latest_checkpoint(storage);
  expect(last.filename() == "checkpoint_000001", "the last one that was whole is found");
  train::SavedFiles(last).verify();
}

struct Training {
  explicit Training(Context& context) : ctx(context) {}

  void step(std::uint64_t number) { testing::step(ctx, net, optimizer, number); }
  /// One step besides, before or after the checkpoint is there.
  train::Checkpoint save_and_step(bool in_background, std::uint64_t number) {
    if (!in_background) {
      auto saved = ctx.checkpoint(net, optimizer);
      step(number);
      return saved;
    }
    const auto saving = ctx.begin_checkpoint(net, optimizer);
    step(number);
    return saving.wait();
  }

  Context& ctx;
  Net net = ctx.prepare(Net(kWidths, 5));
  train::PreparedOptimizer<torch::optim::Adam> optimizer = ctx.prepare(adam(net));
};

/// Of gangs of two ranks, whose values at the end are compared with those of one that was never
/// interrupted.
class Trainings {
 public:
  explicit Trainings(int stage) : stage_(stage) {
    REQUIRE(run(2, options_with(stage_), [&](Context& ctx) {
              Training training(ctx);
              for (std::uint64_t i = 0; i < kSteps; ++i) training.step(i);
              values_.keep(ctx, values_of(training.net));
            }) == "");
  }

  /// From a checkpoint that was saved before step `first`. -> failures()
  std::string resumed(const fs::path& from, std::uint64_t first) const {
    return run(2, options_with(stage_),
               [&](Context& ctx) {
                 Training training(ctx);
                 for (auto i = first; i < kSteps; ++i) training.step(i);
                 values_.expect_same_as(values_of(training.net), 0, "resumed");
               },
               {.from = from});
  }

  std::string on_full_disk(const Way& way, const fs::path& storage, const RankLogs& logs) const {
    return failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
      logs.take_over(gang.rank());
      TestMember member(gang, storage);
      Context ctx(member, options_with(stage_));
      Training training(ctx);
      for (std::uint64_t i = 0; i < kSteps; ++i) {
        take_or_make_room(way, ctx, storage, i);
        const auto saved = training.save_and_step(way.in_background, i);
        if (ctx.rank() == 0) check_saved(way, saved, storage, i);
        ctx.report({{"step", static_cast<double>(i)}}, saved);
      }
      expect(member.reports.size() == kSteps, "each step was reported");
      values_.expect_same_as(values_of(training.net), 0, "beside a full disk");
    }));
  }

 private:
  const int stage_;
  const KeptValues values_;
};

void check_logged(const RankLogs& logs, const fs::path& storage, std::size_t times) {
  const auto lines = logs.lines("a checkpoint was not written: ");
  CHECK(lines.size() == times);
  for (const auto& line : lines)
    CHECK_THAT(line, Catch::Contains("; the training goes on, and the last checkpoint is " +
                                     (storage / "checkpoint_000001").string()));
}

const auto kWays = {Way{.full_rank = -1, .stage = 0, .in_background = false},
                    Way{.full_rank = -1, .stage = 1, .in_background = true},
                    Way{.full_rank = 0, .stage = 1, .in_background = false},
                    Way{.full_rank = 1, .stage = 1, .in_background = false},
                    Way{.full_rank = 1, .stage = 1, .in_background = true}};

/// Trains in a folder that has no room on the way. `check_resumed` then gets the folder with its
/// checkpoints.
void check_full_disk(
    const Way& way,
    const std::function<void(const Trainings&, const fs::path& storage)>& check_resumed) {
  CAPTURE(way.full_rank, way.stage, way.in_background);
  const Scratch scratch;
  std::optional<test::SmallDisk> disk;
  if (way.is_disk() && !disk.emplace(scratch.path(), kDiskKib).is_there()) return;
  const Trainings trainings(way.stage);
  const RankLogs logs(2);
  CHECK(trainings.on_full_disk(way, scratch.path(), logs) == "");
  check_logged(logs, scratch.path(), way.room_from - kFullFrom);
  check_resumed(trainings, scratch.path());
}

}  // namespace

TEST_CASE("a training goes on to its end on a full disk, and is continued from the last checkpoint",
          "[train][checkpoint][full]") {
  const auto way = GENERATE(values(kWays));
  check_full_disk(way, [](const Trainings& trainings, const fs::path& storage) {
    CHECK(trainings.resumed(train::latest_checkpoint(storage), 1) == "");
  });
}

TEST_CASE("a training writes checkpoints again once there is room", "[train][checkpoint][full]") {
  auto way = GENERATE(values(kWays));
  way.room_from = 4;
  check_full_disk(way, [](const Trainings& trainings, const fs::path& storage) {
    CHECK(trainings.resumed(storage / "checkpoint_000001", 1) == "");
    const auto last = train::latest_checkpoint(storage);
    CHECK(last.filename() == "checkpoint_000003");
    CHECK(trainings.resumed(last, kSteps - 1) == "");
  });
}
