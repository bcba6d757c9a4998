#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "process/object.hpp"

namespace troupe::process {

/// One call to run: pushed on the loop's thread, run on the executor's, answered on the loop's.
struct Work {
  enum class Kind : std::uint8_t { Task = 0, Constructor = 1, Method = 2 };
  Kind kind = Kind::Task;
  const detail::Function* function = nullptr;
  std::vector<detail::Payload> arguments;
  std::shared_ptr<std::atomic<bool>> cancelled;  // set before it starts: it does not
  std::function<void(Outcome)> done;
};

/// Runs user code in a worker process, one call at a time, in the order pushed; methods wait for the constructor.
/// The hand-over is a list that the loop pushes to and the executor takes whole: no lock.
class Executor {
 public:
  /// `place`: "process 7 (pid 4711) on node 2", for errors.
  Executor(boost::asio::io_context& loop, std::string place) : loop_(loop), place_(std::move(place)) {}

  void push(Work work);
  /// On the thread that runs user code; never returns.
  [[noreturn]] void run();
  /// True on the executor's thread of this process.
  static bool is_this_thread();

 private:
  struct Node {
    Work work;
    Node* next = nullptr;
  };
  std::vector<Work> take();
  void handle(Work work);
  Outcome perform(Work& work);
  Failure describe(const Work& work) const;  // the exception in flight
  void answer(Work& work, Outcome outcome);

  boost::asio::io_context& loop_;
  const std::string place_;
  std::atomic<Node*> pushed_{nullptr};

  // the executor's thread only
  std::shared_ptr<void> actor_;
  std::optional<Failure> construct_failure_;
  std::vector<Work> before_constructor_;
};

}  // namespace troupe::process
