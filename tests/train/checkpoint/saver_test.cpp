#include "checkpoint/saving/saver.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <troupe/errors.hpp>

#include "checkpoint/directory.hpp"
#include "checkpoint/saving/save_in_flight.hpp"
#include "checkpoint/small_checkpoint.hpp"
#include "guard.hpp"
#include "support/forked_gang.hpp"
#include "support/rank_logs.hpp"
#include "support/scratch.hpp"

using namespace troupe;
using namespace troupe::testing;
using train::latest_checkpoint;
using train::Saver;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kEach = 5;  // elements of a rank

Saver saver_of(GangContext& gang, const fs::path& storage) {
  return {
      storage,
      gang.size() == 1 ? nullptr : train::make_host_communicator(gang, {.timeout = test::kGuard}),
      test::kGuard};
}

/// Rank r has kEach times the number r + `offset`.
train::RankShare numbers_of(GangContext& gang, float offset = 0) {
  const auto rank = gang.rank();
  return share_of(rank, kEach * gang.size(), rank * kEach,
                  std::vector<float>(kEach, static_cast<float>(rank) + offset));
}

std::vector<float> all_numbers(int ranks, float offset = 0) {
  std::vector<float> all;
  for (int rank = 0; rank < ranks; ++rank)
    all.insert(all.end(), kEach, static_cast<float>(rank) + offset);
  return all;
}

}  // namespace

TEST_CASE("ranks write their parts of a checkpoint, one after the other",
          "[train][checkpoint][saver]") {
  const int ranks = GENERATE(1, 2, 4);
  const Scratch storage;
  CHECK(failures(ForkedGang::on_one_node(ranks).run([&](GangContext& gang) {
          auto saver = saver_of(gang, storage.path());
          for (int i = 0; i < 3; ++i) {
            const auto saved = saver.begin(numbers_of(gang, static_cast<float>(i)))->wait();
            expect(saved.error.empty(), saved.error);
            expect(saved.directory.empty() == (gang.rank() != 0), "a directory on rank 0 alone");
          }
          saver.finish();
        })) == "");
  CHECK(entries(storage.path()) == 3);
  const auto latest = latest_checkpoint(storage.path());
  CHECK(latest.filename() == "checkpoint_000002");
  CHECK(weight_in(latest) == all_numbers(ranks, 2));
  CHECK(entries(latest) == static_cast<std::size_t>(ranks) + 2);  // manifest and optimizer
}

TEST_CASE("a rank that does not see the directory sends its part to rank 0",
          "[train][checkpoint][saver]") {
  const Scratch storage;
  if (!can_hide(storage.path())) return;
  CHECK(failures(ForkedGang::on_nodes(3, 3).run([&](GangContext& gang) {
          if (gang.rank() == 2) expect(hide(storage.path()), "the folder is hidden");
          auto saver = saver_of(gang, storage.path());
          saver.begin(numbers_of(gang))->wait();
          saver.finish();
          if (gang.rank() == 2) expect(entries(storage.path()) == 0, "nothing is written there");
        })) == "");
  CHECK(weight_in(latest_checkpoint(storage.path())) == all_numbers(3));
}

TEST_CASE("where a rank cannot write its part the others go on, and the last checkpoint stays",
          "[train][checkpoint][saver]") {
  const int failing = GENERATE(0, 1);
  const Scratch storage;
  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          auto saver = saver_of(gang, storage.path());
          saver.begin(numbers_of(gang, 1))->wait();
          auto share = numbers_of(gang, 2);
          // A name that no file can have.
          if (gang.rank() == failing) share.files.bytes[std::string(300, 'x') + "/y"] = "z";
          const auto saved = saver.begin(std::move(share))->wait();
          expect(saved.directory.empty(), "no checkpoint");
          if (gang.rank() == 0)
            expect(saved.error.find("cannot write") != std::string::npos, saved.error);
          saver.finish();
          if (gang.rank() == 0)
            expect(entries(storage.path()) == 1, "the first checkpoint alone is there");
          saver.begin(numbers_of(gang, 3))->wait();
          saver.finish();
        })) == "");
  CHECK(entries(storage.path()) == 2);
  CHECK(weight_in(storage.path() / "checkpoint_000000") == all_numbers(2, 1));
  CHECK(weight_in(storage.path() / "checkpoint_000001") == all_numbers(2, 3));
}

TEST_CASE("who waits for ever for a save waits until it is done", "[train][checkpoint][saver]") {
  train::SaveInFlight save(true, std::chrono::milliseconds::max());
  auto saved = std::async(std::launch::async, [&] { return save.wait(); });
  CHECK(saved.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  save.set_done({.directory = "there", .error = {}});
  CHECK(saved.get().directory == "there");
}

TEST_CASE("a full disk ends a save and not the training", "[train][checkpoint][saver]") {
  const Scratch storage;
  const bool is_disk = GENERATE(true, false);
  if (is_disk && !can_hide(storage.path())) return;
  CHECK(failures(ForkedGang::on_one_node(1).run([&](GangContext& gang) {
          if (is_disk) {
            expect(hide(storage.path()), "a small disk");
          } else {  // no file of this process is larger
            limit_files(1 << 20);
          }
          auto saver = saver_of(gang, storage.path());
          saver.begin(share_of(0, 3, 0, {1, 2, 3}))->wait();
          const std::vector<float> much(1 << 20, 7);
          const auto saved = saver.begin(share_of(0, 1 << 20, 0, much))->wait();
          expect(saved.directory.empty(), "no checkpoint");
          const auto* why = is_disk ? "No space left on device" : "File too large";
          expect(saved.error.find(why) != std::string::npos, saved.error);
          expect(entries(storage.path()) == 1, "what was written of it is gone");
          const auto last = weight_in(latest_checkpoint(storage.path()));
          expect(last == std::vector<float>{1, 2, 3}, "the last one is as it was");
          const auto after = saver.begin(share_of(0, 2, 0, {4, 5}))->wait();
          expect(weight_in(after.directory) == std::vector<float>{4, 5}, "there is room again");
        })) == "");
}

TEST_CASE("what a rank had written of a file that found no room is gone when rank 0 knows of it",
          "[train][checkpoint][saver]") {
  constexpr int kSaves = 300;  // of each, rank 1 removes its file while rank 0 removes the folder
  const Scratch storage;
  const RankLogs logs(2);
  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          logs.take_over(gang.rank());
          auto saver = saver_of(gang, storage.path());
          saver.begin(numbers_of(gang))->wait();
          if (gang.rank() == 1) limit_files(16);
          for (int save = 0; save < kSaves; ++save) {
            const auto saved = saver.begin(numbers_of(gang))->wait();
            if (gang.rank() != 0) continue;
            expect(saved.error.ends_with("File too large"), saved.error);
            expect(entries(storage.path()) == 1, "the first checkpoint alone is there");
          }
          saver.finish();
        })) == "");
}

TEST_CASE("a rank that is killed while a checkpoint is written leaves the one before it",
          "[train][checkpoint][saver]") {
  const int killed = GENERATE(0, 1);
  const Scratch storage;
  const auto outcomes = ForkedGang::on_one_node(2).run([&](GangContext& gang) {
    auto saver = saver_of(gang, storage.path());
    saver.begin(numbers_of(gang, 1))->wait();
    saver.finish();
    if (gang.rank() == killed) ::kill(::getpid(), SIGKILL);
    saver.begin(numbers_of(gang, 2))->wait();
    saver.finish();
  });
  CHECK(outcomes[static_cast<std::size_t>(killed)].signal == SIGKILL);
  CHECK(outcomes[static_cast<std::size_t>(1 - killed)].type == "GangBroken");
  CHECK(weight_in(latest_checkpoint(storage.path())) == all_numbers(2, 1));
  save(storage.path(), {1});
  CHECK(entries(storage.path()) == 2);
}

TEST_CASE("two runs on one storage are kept apart", "[train][checkpoint][saver]") {
  const Scratch storage;
  const auto minute = std::chrono::minutes(1);
  Saver first(storage.path(), nullptr, minute);
  Saver second(storage.path(), nullptr, minute);
  Saver third(storage.path(), nullptr, minute);
  const auto saved_by = [](Saver& saver, float value) {
    return saver.begin(share_of(0, 1, 0, {value}))->wait().directory;
  };
  CHECK(saved_by(first, 1) == storage.path() / "checkpoint_000000");
  CHECK(saved_by(second, 2) == storage.path() / "run_1/checkpoint_000000");
  CHECK(saved_by(third, 3) == storage.path() / "run_2/checkpoint_000000");
  CHECK(saved_by(first, 4) == storage.path() / "checkpoint_000001");
  CHECK(saved_by(second, 5) == storage.path() / "run_1/checkpoint_000001");
  CHECK(weight_in(storage.path() / "checkpoint_000001") == std::vector<float>{4});
  CHECK(weight_in(storage.path() / "run_1/checkpoint_000001") == std::vector<float>{5});
}

TEST_CASE("runs that see no lock of a folder are kept apart by that of a file, as over NFS",
          "[train][checkpoint][saver]") {
  const Scratch storage;
  const auto file = storage.path() / ".lock";
  const int other = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const auto is_free = [&] { return ::flock(other, LOCK_EX | LOCK_NB) == 0; };
  REQUIRE(is_free());
  CHECK(save(storage.path(), {1}) == storage.path() / "run_1/checkpoint_000000");
  REQUIRE(::flock(other, LOCK_UN) == 0);
  {
    Saver saver(storage.path(), nullptr, test::kGuard);
    CHECK(saver.begin(share_of(0, 1, 0, {2}))->wait().directory ==
          storage.path() / "checkpoint_000000");
    CHECK(!is_free());
  }
  CHECK(is_free());
  ::close(other);
}

TEST_CASE("runs are kept apart by the lock of their folder where no file can be locked",
          "[train][checkpoint][saver]") {
  const Scratch storage;
  fs::create_directory(storage.path() / ".lock");
  fs::create_directory(storage.path() / "checkpoint_000000.0123456789abcdef.tmp");
  Saver first(storage.path(), nullptr, test::kGuard);
  CHECK(first.begin(share_of(0, 1, 0, {1}))->wait().directory ==
        storage.path() / "checkpoint_000000");
  CHECK(names_in(storage.path()) == std::vector<std::string>{"checkpoint_000000"});
  CHECK(save(storage.path(), {2}) == storage.path() / "run_1/checkpoint_000000");
}

TEST_CASE("a storage that is removed while a run lives is made anew, and still one run's",
          "[train][checkpoint][saver]") {
  const Scratch scratch;
  const auto storage = scratch.path() / "runs";
  const auto minute = std::chrono::minutes(1);
  Saver first(storage, nullptr, minute);
  Saver second(storage, nullptr, minute);
  const auto saved_by = [](Saver& saver, float value) {
    return saver.begin(share_of(0, 1, 0, {value}))->wait().directory;
  };
  CHECK(saved_by(first, 1) == storage / "checkpoint_000000");
  fs::remove_all(storage);
  CHECK(saved_by(first, 2) == storage / "checkpoint_000000");
  CHECK(saved_by(second, 3) == storage / "run_1/checkpoint_000000");
}

TEST_CASE("a run goes on in the storage of one that has ended, or was killed",
          "[train][checkpoint][saver]") {
  const Scratch storage;
  const auto outcomes = ForkedGang::on_one_node(1).run([&](GangContext& gang) {
    auto saver = saver_of(gang, storage.path());
    saver.begin(share_of(0, 1, 0, {1}))->wait();
    ::kill(::getpid(), SIGKILL);
  });
  CHECK(outcomes[0].signal == SIGKILL);
  CHECK(save(storage.path(), {2}) == storage.path() / "checkpoint_000001");
  CHECK(save(storage.path(), {3}) == storage.path() / "checkpoint_000002");
}

TEST_CASE("a rank that gives up a save ends it on all ranks", "[train][checkpoint][saver]") {
  const Scratch storage;
  const auto outcomes = ForkedGang::on_one_node(2).run([&](GangContext& gang) {
    auto saver = saver_of(gang, storage.path());
    if (gang.rank() == 1) {
      saver.abort("it wants no more");
      return;
    }
    saver.begin(numbers_of(gang))->wait();
  });
  CHECK(outcomes[0].type == "GangBroken");
  CHECK_THAT(outcomes[0].message, Catch::Contains("it wants no more"));
  CHECK(latest_checkpoint(storage.path()).empty());
}

TEST_CASE("a save that is given up while it is written is not committed",
          "[train][checkpoint][saver]") {
  const Scratch storage;
  Saver saver(storage.path(), nullptr, std::chrono::minutes(1));
  const std::vector<float> much(64 << 20, 7);
  const auto save = saver.begin(share_of(0, 64 << 20, 0, much));
  saver.abort("it wants no more");
  CHECK(save->wait().error == "it was given up");
  CHECK(entries(storage.path()) == 0);
  CHECK(saver.begin(share_of(0, 1, 0, {1}))->wait().error.empty());
}

TEST_CASE("ranks that save other models than each other are told so",
          "[train][checkpoint][saver]") {
  const Scratch storage;
  CHECK(failures(ForkedGang::on_one_node(3).run([&](GangContext& gang) {
          auto saver = saver_of(gang, storage.path());
          auto share = numbers_of(gang);
          if (gang.rank() == 1) {
            share.manifest.models.emplace_back();
            share.manifest.models.back().tensors["more"] = {};
          }
          const auto saved = saver.begin(std::move(share))->wait();
          saver.finish();
          if (gang.rank() == 0)
            expect(saved.error.find("rank 1 gave ctx.checkpoint other models") == 0, saved.error);
        })) == "");
  CHECK(entries(storage.path()) == 0);
}

TEST_CASE("a storage that nobody can write to is an error on every rank",
          "[train][checkpoint][saver]") {
  const Scratch scratch;
  write(scratch.path() / "file", "");
  for (const auto& storage : {scratch.path() / "file", fs::path("/proc/self/storage")}) {
    const auto outcomes = ForkedGang::on_one_node(2).run([&](GangContext& gang) {
      auto saver = saver_of(gang, storage);
      saver.begin(numbers_of(gang))->wait();
    });
    for (const auto& outcome : outcomes)
      CHECK_THAT(outcome.message, Catch::Contains(storage.string()));
  }
}
