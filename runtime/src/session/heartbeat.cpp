#include "session/heartbeat.hpp"

namespace troupe::runtime {

void Heartbeat::start() {
  last_echo_ = Clock::now();
  beat();
}

void Heartbeat::beat() {
  const auto now = Clock::now();
  last_echo_ += stall_detector_.came(now);
  if (now - last_echo_ > silence_) return callbacks_.silent();
  callbacks_.send(++beats_);
  stall_detector_.expect(now + period_);
  timer_.expires_after(period_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) beat();
  });
}

}  // namespace troupe::runtime
