#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include <sys/types.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

namespace troupe::node {

namespace asio = boost::asio;

/// Reaps the children of this process that it was told of, and no others. Belongs to one loop. One per process works
/// best: SIGCHLD reaches every one, but only the one that watches a child reaps it.
class Reaper {
 public:
  /// Called on the loop, once, with the status as waitpid gives it.
  using OnEnded = std::function<void(int status)>;

  explicit Reaper(asio::io_context& loop);

  /// What becomes of the process group that the child leads, once it has ended.
  enum class Group {
    Killed,  ///< before the child is reaped, while its number cannot be taken by another process
    Left,    ///< of a zygote: a worker process stays in it for a moment after its fork
  };
  /// `ended` is never called from within `watch`, even if the child has ended already.
  void watch(pid_t child, Group group, OnEnded ended);
  bool watches(pid_t child) const { return children_.contains(child); }
  std::size_t size() const { return children_.size(); }
  /// Called after each child that was reaped and told of.
  void on_reaped(std::function<void()> reaped) { on_reaped_ = std::move(reaped); }

  /// Takes no further signals, so that the loop can run out of work.
  void stop();

  /// SIGKILL to everything that it watches but one, and waits for it. For a destructor that finds children still
  /// running.
  void kill_all_but(pid_t spared);

 private:
  struct Child {
    Group group;
    OnEnded on_ended;
  };

  void wait_for_signal();
  void sweep();
  void sweep_known();
  bool ended(pid_t child);
  void reap(pid_t child);

  asio::signal_set signals_;
  std::unordered_map<pid_t, Child> children_;
  std::function<void()> on_reaped_;
  bool stopped_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // a handler may be queued when this object goes
};

/// SIGKILL to a process and to the group that it leads, if it does by now.
void kill_group(pid_t leader);

}  // namespace troupe::node
