#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "os/now_and_then.hpp"
#include "store/catalog/catalog.hpp"
#include "store/memory/arena.hpp"
#include "store/memory/spill.hpp"
#include "store/service/remote_store_client.hpp"
#include "store/service/work_thread.hpp"
#include "transport/connection.hpp"
#include "transport/stall_detector.hpp"

namespace troupe::store {

struct ServiceOptions {
  /// Of memory for all jobs; 0: 30 % of what this machine, or the cgroup, has.
  std::uint64_t cap_bytes = 0;
  /// That one process may keep of what it has freed.
  std::uint64_t keep_bytes = std::uint64_t{64} << 20;
  /// Of memory that stay free when the store grows.
  std::uint64_t spare_bytes = std::uint64_t{128} << 20;
  std::string spill_directory = kDefaultSpillParent;     ///< one of its own is made in there
  std::uint64_t spill_bytes = std::uint64_t{256} << 30;  ///< of disk; 0: nothing is spilled
  std::chrono::milliseconds patience{
      10'000};  ///< of a request, for an object to be sealed, or with a line for
                ///< memory that does not move
  std::chrono::milliseconds disk_patience{60'000};  ///< with such a line while the disk is at work
  std::chrono::milliseconds recall_patience{200};   ///< for processes that are asked to give back
  /// After the machine had no memory for the store.
  std::chrono::milliseconds growth_retry{1'000};
};

/// The object store of a node: what the catalog decides, done. Lives on the node's loop; memory is
/// committed and files are written on two threads beside it, the results of which come home to the
/// loop. See docs/store.md.
///
///   process --attach--> requests (on_message) --> detach     the process has ended, and nothing of it maps the arena
class Service {
 public:
  /// Removes what dead nodes of this user left in the spill directory, which may take a moment.
  Service(boost::asio::io_context& loop, ServiceOptions options);
  ~Service();  ///< waits for a file that is being written

  using Send = std::function<void(transport::Outgoing&&)>;
  /// A process that sends what no version of Troupe does: its views can no more be trusted. It
  /// should be ended.
  using OnViolation = std::function<void(const std::string& why)>;
  /// -> the descriptor of its job's arena, to be handed on to it; it stays the service's. A process
  /// may attach again, as one that could not map the arena: it keeps what it has, and hears by the
  /// new `send`.
  std::variant<int, Refusal> attach(ProcessId process, JobId job, Send send, OnViolation violated);
  /// False: the message is not for the store.
  bool on_message(ProcessId from, wire::Message::Reader message);
  void detach(ProcessId process);
  /// A process elsewhere that owns objects here has ended; of attached ones detach says so.
  void owner_ended(ProcessId owner);
  /// For an owner that is not attached here; nothing where the object is of another job.
  void free(JobId job, ObjectId object);
  void job_ended(JobId job);

  // ---- what this node itself does with objects, for other nodes
  /// Who brings what was written on another node than `self`, and outlives this object or takes
  /// itself back (nullptr). Without one, what is not here is refused.
  void set_remote_client(RemoteStoreClient* elsewhere, NodeId self);
  bool has(JobId job, ObjectId object) const { return catalog_.job_of(object) == job; }
  /// Nullopt: not attached.
  std::optional<JobId> job_of(ProcessId process) const { return catalog_.job_of(process); }
  /// Pins an object of the job, brought back from the disk first, or waited for where it is being
  /// written. `done` is called once, from the loop.
  using OnHeld = std::function<void(std::variant<Held, Refusal>)>;
  void hold(JobId job, ObjectId object, OnHeld done);
  /// Pins a copy that RemoteStoreClient::fetch has not brought yet.
  void hold_copy(ObjectId object) { catalog_.pin_copy(object); }
  void release(JobId job, ObjectId object);
  /// The end of a RemoteStoreClient::fetch: all bytes are there, or why not. Its memory is not to
  /// be touched from now on.
  void copied(ObjectId object, const std::optional<Refusal>& failure);

  Statistics statistics() const { return catalog_.statistics(); }
  std::vector<ObjectView> largest(std::size_t most) const { return catalog_.largest(most); }
  /// Why nothing can be spilled; nullopt: it can.
  const std::optional<Refusal>& no_spilling() const { return no_spilling_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Process {
    Send send;
    OnViolation violated;
  };
  struct Deadline {
    Clock::time_point at;
    ProcessId process;
    RequestId request;
    std::uint64_t moves;      // of the line for memory, when last looked
    Clock::time_point moved;  // when that was seen
  };
  using ArenaPtr = std::shared_ptr<Arena>;

  void on_create(ProcessId from, wire::ObjectCreate::Reader create);
  void on_get(ProcessId from, wire::ObjectGet::Reader get);
  void on_free(ProcessId from, wire::ObjectFree::Reader free);
  void on_return(ProcessId from, wire::ObjectReturn::Reader returned);
  void violation(ProcessId from, const std::string& why);
  void perform(const Effects& effects);
  void send(ProcessId to, transport::Outgoing&& message);

  void perform(const Created& effect);
  void perform(const Got& effect);
  void perform(const Declined& effect);
  void perform(const Kept& effect);
  void perform(const Recall& effect);
  void perform(const Orphans& effect);
  void perform(const Punch& effect);
  void perform(const Commit& effect);
  void perform(const WriteOut& effect);
  void perform(const ReadBack& effect);
  void perform(const Erase& effect);
  void perform(const Gone& effect);
  void perform(const CloseArena& effect);

  // service_node.cpp: requests of the node itself
  bool is_elsewhere(const NodeAddress& at) const {
    return remote_client_ != nullptr && at.node && at.node != self_;
  }
  void fetch(JobId job, ObjectId object, ProcessId owner, std::uint64_t bytes, NodeAddress at);
  void watch_owner(ProcessId owner);
  void granted(const Created& effect);
  void granted(const Got& effect);
  void declined(const Declined& effect);
  /// Nobody is called from within a turn of the catalog's effects: they are done in order, and
  /// without gaps.
  void later(std::function<void()> piece);

  void watch(ProcessId process, RequestId request);
  void expire_at(Clock::time_point time);
  void expire();
  void forgive_standstill();
  bool is_to_wait(Deadline& deadline) const;
  void retry_growth();
  void grow_again();
  /// Calls it unless the timer is set anew or this object is gone by then.
  void after(boost::asio::steady_timer& timer, std::chrono::milliseconds time,
             void (Service::*then)());
  void end_recall();

  boost::asio::io_context& loop_;
  const ServiceOptions options_;
  Catalog catalog_;
  os::NowAndThen checks_;
  std::unordered_map<ProcessId, Process> processes_;
  std::unordered_map<JobId, ArenaPtr> arenas_;
  std::optional<Refusal> no_spilling_;
  std::shared_ptr<SpillDirectory> spill_;  // the disk lane's
  RemoteStoreClient* remote_client_ = nullptr;
  NodeId self_{};
  std::unordered_map<RequestId, std::variant<Copy, OnHeld>> own_requests_;
  RequestId last_own_request_{};
  std::deque<Deadline> deadlines_;
  static constexpr std::chrono::seconds kStandstill{1};
  transport::StallDetector stall_detector_{kStandstill};
  bool expiring_ = false;  // expire() is to be called
  bool retrying_ = false;
  bool told_of_punch_ = false;  // that memory does not go back to the machine
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  boost::asio::steady_timer deadline_timer_, recall_timer_, growth_timer_;
  WorkThread memory_lane_, disk_lane_;  // last: their threads end first
};

}  // namespace troupe::store
