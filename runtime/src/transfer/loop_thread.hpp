#pragma once

#include <optional>
#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

namespace troupe::transfer {

/// A loop with a thread of its own, which begins with the first use. Signals of the process are for
/// other threads.
class LoopThread {
 public:
  LoopThread() = default;
  ~LoopThread();  ///< as stop()
  /// Belongs to the thread that owns this object.
  boost::asio::io_context& loop();
  /// Waits for the handler that runs; those that wait are dropped with this object.
  void stop();

 private:
  boost::asio::io_context loop_{1};
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
  std::thread thread_;
};

}  // namespace troupe::transfer
