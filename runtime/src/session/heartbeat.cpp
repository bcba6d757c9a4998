#include "session/heartbeat.hpp"

namespace troupe::runtime {

void Heartbeat::start() {
  silence_.heard(Clock::now());
  beat();
}

void Heartbeat::echoed() {
  if (silence_.heard(Clock::now()) == transport::PeerSilence::Change::SpeaksAgain)
    callbacks_.speaks_again();
}

void Heartbeat::beat() {
  const auto now = Clock::now();
  const auto change = silence_.look(now, stall_detector_.came(now));
  if (change == transport::PeerSilence::Change::Gone) return callbacks_.gone();
  if (change == transport::PeerSilence::Change::FellSilent) callbacks_.fell_silent();
  callbacks_.send(++beats_);
  stall_detector_.expect(now + period_);
  timer_.expires_after(period_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) beat();
  });
}

}  // namespace troupe::runtime
