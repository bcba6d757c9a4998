// Where the gangs of a search are, and what they hold of the cluster.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <troupe/cluster.hpp>
#include <troupe/tune.hpp>

#include "support/population_files.hpp"
#include "support/temporary_folder.hpp"

namespace places_test {

using namespace troupe;
namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

struct Config {
  int index = 0;
  std::string until = {};  ///< a file; empty: three reports
};

void reports(tune::Context& ctx, const Config& config) {
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  for (int step = 0; config.until.empty() ? step < 3 : !fs::exists(config.until); ++step) {
    if (ctx.report({{"score", config.index}}) == Verdict::Stop || Clock::now() > deadline) return;
  }
}

/// What programs ask about a terminal. Made before a cluster, since no other thread may read the
/// environment while it changes.
class TerminalVariables {
 public:
  TerminalVariables() {
    ::setenv("TERM", "xterm", 1);
    ::setenv("NO_COLOR", "1", 1);
  }
  TerminalVariables(const TerminalVariables&) = delete;
  ~TerminalVariables() {
    ::unsetenv("NO_COLOR");
    if (term_.empty()) {
      ::unsetenv("TERM");
    } else {
      ::setenv("TERM", term_.c_str(), 1);
    }
  }

 private:
  const std::string term_ = std::getenv("TERM") != nullptr ? std::getenv("TERM") : "";
};

/// The standard error stream of this process is a terminal meanwhile, of which a thread reads.
class Terminal {
 public:
  /// `until` is made once `text` has been shown.
  Terminal(std::string text, fs::path until) : text_(std::move(text)), until_(std::move(until)) {
    winsize size{};
    size.ws_row = 40;
    size.ws_col = 120;
    int theirs = -1;
    REQUIRE(openpty(&ours_, &theirs, nullptr, nullptr, &size) == 0);
    before_ = ::dup(STDERR_FILENO);
    REQUIRE(::dup2(theirs, STDERR_FILENO) == STDERR_FILENO);
    ::close(theirs);
    reader_ = std::thread([this] { read(); });
  }
  ~Terminal() { end(); }

  std::string end() {
    if (before_ >= 0) {
      ::dup2(before_, STDERR_FILENO);
      ::close(std::exchange(before_, -1));
      is_over_ = true;
      reader_.join();
      ::close(ours_);
    }
    return shown_;
  }

 private:
  /// Worker processes may hold the other end for longer than the search.
  void read() {
    char buffer[4096];
    pollfd readable{.fd = ours_, .events = POLLIN, .revents = 0};
    while (true) {
      const bool is_last_look = is_over_;
      const bool has_more = ::poll(&readable, 1, is_last_look ? 0 : 20) > 0;
      const auto got = has_more ? ::read(ours_, buffer, sizeof buffer) : 0;
      if (got <= 0 && (is_last_look || has_more)) return;
      if (got <= 0) continue;
      shown_.append(buffer, static_cast<std::size_t>(got));
      if (shown_.find(text_) != std::string::npos) std::ofstream{until_};
    }
  }

  const std::string text_;
  const fs::path until_;
  int ours_ = -1;
  int before_ = -1;
  std::atomic<bool> is_over_ = false;
  std::string shown_;
  std::thread reader_;
};

}  // namespace

TEST_CASE("the journal says on which node and slot each rank of each attempt ran",
          "[tune][places][cluster]") {
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto status = nlohmann::json::parse(cluster.status_json());
  const std::string node = status["nodes"][0]["name"];
  const auto results = tune::run<reports>({.space = {{"index", tune::grid({0, 1, 2, 3, 4, 5})}},
                                           .metric = "score",
                                           .each = {.workers = 2},
                                           .storage = folder.path(),
                                           .show = tune::Show::None});
  std::map<int, std::set<int>> held;  // by trial
  int started = 0;
  for (const auto& event : tune::lines_of(results.folder() / "journal.jsonl")) {
    if (event.value("event", "") == "ended") held.erase(event.at("trial").get<int>());
    if (event.value("event", "") != "started") continue;
    ++started;
    auto& slots = held[event.at("trial").get<int>()];
    for (const auto& place : event.at("places")) {
      CHECK(place.at(0) == node);
      slots.insert(place.at(1).get<int>());
    }
    CHECK(slots.size() == 2);
    std::set<int> all;
    for (const auto& [trial, own] : held) all.insert(own.begin(), own.end());
    CHECK(all.size() == 2 * held.size());  // none twice at once
    // Later ones: that of a trial which has just ended may be taken a moment longer.
    if (started == 1) CHECK(all == std::set<int>{0, 1});
  }
  CHECK(started == 6);
}

TEST_CASE("the table on a terminal shows what the gangs hold of the cluster",
          "[tune][places][cluster]") {
  const tune::TemporaryFolder folder;
  const auto until = folder.path() / "seen";
  const TerminalVariables variables;
  const auto cluster = init(InitOptions{.cpus = 6, .gpus = 2});
  Terminal terminal("4 ranks at work on 4 of 6 CPUs and 2 of 2 GPUs", until);
  const auto results = tune::run<reports>({.space = {{"index", tune::grid({0, 1})}},
                                           .metric = "score",
                                           .each = {.workers = 2, .each = {.gpus = 0.5}},
                                           .config = {.until = until.string()}});
  const auto shown = terminal.end();
  INFO(shown);
  CHECK(fs::exists(until));
  CHECK(results.trials().size() == 2);
}

}  // namespace places_test
