#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <unordered_map>

#include <sys/types.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

namespace troupe::node {

namespace asio = boost::asio;

/// Reaps the children of this process that it was told of. Of the others it reaps those that nobody
/// can tell it of any more, as of a zygote that was killed between its fork and its report: where
/// it owns all children of its process, which a node's does. Belongs to one loop. SIGCHLD reaches
/// every Reaper of a process, but only the one that watches a child reaps it.
class Reaper {
 public:
  /// Called on the loop, once, with the status as waitpid gives it.
  using OnEnded = std::function<void(int status)>;

  /// Children that it was not told of.
  enum class Unknown {
    Left,    ///< somebody else's
    Reaped,  ///< once no Announcement from before their end is open
  };
  explicit Reaper(asio::io_context& loop, Unknown unknown = Unknown::Left);
  ~Reaper();

  /// Somebody may make a child of this process, and it will be watched then: as long as this lives,
  /// no child is taken for one that nobody tells of. May outlive the Reaper.
  class Announcement {
   public:
    Announcement() = default;
    Announcement(Announcement&& other) noexcept = default;
    Announcement& operator=(Announcement&& other) noexcept;
    ~Announcement();

   private:
    friend class Reaper;
    std::weak_ptr<Reaper*> reaper_;
    std::uint64_t number_ = 0;
  };
  Announcement announce();

  /// What becomes of the process group that the child leads, once it has ended.
  enum class Group {
    Killed,  ///< before the child is reaped, while its number cannot be taken by another process
    Left,    ///< of a zygote: a worker process stays in it for a moment after its fork
  };
  /// `ended` is never called from within `watch`, even if the child has ended already.
  void watch(pid_t child, Group group, OnEnded ended);
  bool watches(pid_t child) const { return children_.contains(child); }
  std::size_t size() const { return children_.size(); }
  /// Called after each look at the children that have ended: others of this process may have become
  /// its own by that.
  void on_swept(std::function<void()> swept) { on_swept_ = std::move(swept); }

  /// Takes no further signals, so that the loop can run out of work.
  void stop();

  /// SIGKILL to everything that it watches, and waits for it. For a destructor that finds children
  /// still running.
  void kill_all();

 private:
  struct Child {
    Group group;
    OnEnded on_ended;
  };

  void wait_for_signal();
  void sweep();
  void reap_ended();
  void sweep_later();
  bool may_reap_unknown(pid_t child);
  void over(std::uint64_t announcement);
  void sweep_known();
  bool ended(pid_t child);
  void reap(pid_t child);

  asio::signal_set signals_;
  std::unordered_map<pid_t, Child> children_;
  std::function<void()> on_swept_;
  const Unknown unknown_;
  std::uint64_t last_announcement_ = 0;
  std::set<std::uint64_t> announcements_;  // open
  // Ended children; the last announcement of that time.
  std::unordered_map<pid_t, std::uint64_t> not_told_;
  bool stopped_ = false;
  // A handler may be queued when this object goes.
  std::shared_ptr<Reaper*> alive_ = std::make_shared<Reaper*>(this);
};

/// As waitpid(), until that child has ended, whatever signals come meanwhile. -> its status.
int wait_for_end(pid_t child);

/// SIGKILL to a process and to the group that it leads, if it does by now.
void kill_group(pid_t leader);

}  // namespace troupe::node
