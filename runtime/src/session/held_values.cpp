#include "session/held_values.hpp"

namespace troupe::runtime {

void HeldValues::changed(bool any) {
  any_ = any;
  if (any_) {
    timer_.cancel();
    if (!told_) tell(true);
    return;
  }
  timer_.expires_after(kCalm);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !any_) tell(false);
  });
}

void HeldValues::tell(bool any) {
  told_ = any;
  head_.notify([any](wire::HeadRequest::Builder ask) { ask.setValuesHeld(any); });
}

}  // namespace troupe::runtime
