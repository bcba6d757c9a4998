#include "transport/peer_silence.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using troupe::transport::PeerSilence;
using Change = PeerSilence::Change;

namespace {

constexpr PeerSilence::Clock::time_point kStart{1h};

PeerSilence heard_at_start(PeerSilence::Clock::duration limit = 60s) {
  PeerSilence silence(10s, limit);
  silence.heard(kStart);
  return silence;
}

}  // namespace

TEST_CASE("a peer's silence is noticed once, and its end once", "[transport][standstill]") {
  auto silence = heard_at_start();
  CHECK(silence.look(kStart + 10s, 0s) == Change::None);
  CHECK(silence.look(kStart + 11s, 0s) == Change::FellSilent);
  CHECK(silence.look(kStart + 60s, 0s) == Change::None);
  CHECK(silence.heard(kStart + 60s) == Change::SpeaksAgain);
  CHECK(silence.heard(kStart + 60s) == Change::None);
  CHECK(silence.look(kStart + 71s, 0s) == Change::FellSilent);
}

TEST_CASE("a peer is gone that is silent for longer than the limit", "[transport][standstill]") {
  auto silence = heard_at_start();
  CHECK(silence.look(kStart + 11s, 0s) == Change::FellSilent);
  CHECK(silence.look(kStart + 61s, 0s) == Change::Gone);
  auto at_once = heard_at_start(5s);
  CHECK(at_once.look(kStart + 6s, 0s) == Change::Gone);
}

TEST_CASE("what a process stands still is not its peer's silence", "[transport][standstill]") {
  auto silence = heard_at_start();
  CHECK(silence.look(kStart + 100s, 95s) == Change::None);
  CHECK(silence.look(kStart + 106s, 0s) == Change::FellSilent);
  CHECK(silence.look(kStart + 1000s, 850s) == Change::None);
  CHECK(silence.look(kStart + 1006s, 0s) == Change::Gone);
}
