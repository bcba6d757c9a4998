#pragma once

#include <chrono>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "calls/head_link.hpp"

namespace troupe::runtime {

/// Tells the head whether others have refs of values that this worker process owns: while they
/// have, it is not stopped for being idle. That they have is told at once; that they have none any
/// more once this has been so for a while, so that a stream of short-lived refs costs the head
/// nothing. Belongs to the loop.
class HeldValues {
 public:
  static constexpr std::chrono::seconds kCalm{1};

  HeldValues(boost::asio::io_context& loop, HeadLink& head) : head_(head), timer_(loop) {}

  /// The first ref has left, or the last one is gone.
  void changed(bool any);

 private:
  void tell(bool any);

  HeadLink& head_;
  boost::asio::steady_timer timer_;
  bool any_ = false;
  bool told_ = false;
};

}  // namespace troupe::runtime
