#include "run/send_progress.hpp"

#include <catch2/catch.hpp>

using namespace troupe::launch;
using namespace std::chrono_literals;

/// How far a folder has come on its way to the nodes, in virtual time.
namespace {

const SendProgress::Clock::time_point kBegun{};

}  // namespace

TEST_CASE("a folder is on its way until each node has each piece", "[launch][workdir]") {
  SendProgress progress(2, 2, 1 << 20, kBegun);
  progress.on_piece(0, kBegun);
  progress.on_piece(0, kBegun);
  progress.on_piece(1, kBegun);
  CHECK_FALSE(progress.is_over());
  CHECK(progress.in_words() ==
        "1 of 2 nodes has the working directory (1.0 MiB), the slowest 50 % of it");
  progress.on_piece(1, kBegun);
  CHECK(progress.is_over());
  CHECK(SendProgress(0, 2, 1 << 20, kBegun).is_over());
}

TEST_CASE("a folder may take long, as long as a node takes a piece each minute",
          "[launch][workdir]") {
  SendProgress progress(1, 100, 1 << 20, kBegun);
  auto now = kBegun;
  for (int piece = 0; piece < 99; ++piece) {
    now += 59s;
    CHECK_FALSE(progress.is_stalled(now));
    progress.on_piece(0, now);
  }
  CHECK_FALSE(progress.is_stalled(now + 60s));
  CHECK(progress.is_stalled(now + 61s));
}

TEST_CASE("how far a folder is is told after five seconds, and then every ten",
          "[launch][workdir]") {
  SendProgress progress(1, 4, 1 << 20, kBegun);
  progress.on_piece(0, kBegun + 1s);
  CHECK(progress.line(kBegun + 4s).empty());
  CHECK(progress.line(kBegun + 5s) ==
        "0 of 1 nodes have the working directory (1.0 MiB), the slowest 25 % of it");
  CHECK(progress.line(kBegun + 14s).empty());
  CHECK_FALSE(progress.line(kBegun + 15s).empty());
  CHECK(progress.line(kBegun + 24s).empty());
}
