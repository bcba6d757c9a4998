#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "actors/actors.hpp"
#include "actors/detached_spawns.hpp"
#include "calls/call_server.hpp"
#include "calls/calls.hpp"
#include "calls/executor.hpp"
#include "calls/head_link.hpp"
#include "calls/peers/peers.hpp"
#include "calls/resolver.hpp"
#include "gangs/gangs.hpp"
#include "objects/exports.hpp"
#include "objects/orphans.hpp"
#include "objects/process_context.hpp"
#include "objects/store_link.hpp"
#include "session/held_values.hpp"
#include "tasks/cpu_lending.hpp"
#include "tasks/tasks.hpp"
#include "transport/socket/acceptor.hpp"

namespace troupe::runtime {

/// Who this process is in its cluster, known once the head or the node has said so.
struct Identity {
  AddressPtr self;
  JobId job{};
  transport::Secret job_key{};
  std::string cluster;
  bool is_private = false;  ///< of a driver: its cluster ends with it
};

/// A process that takes part in a cluster, driver or worker: wires the parts, and dispatches what
/// arrives. One per OS process, from troupe::init to its end. Everything but `post`, the ids and
/// `identity` belongs to its loop, which runs on a thread of its own (start_thread); user threads
/// reach it by `post` alone.
class Process final : public ProcessContext {
 public:
  /// `serve`: answers what only some processes do (a driver: requests for its program); returns
  /// false if it is not that.
  using Serve = std::function<bool(const transport::ConnectionPtr&, wire::Message::Reader)>;
  /// Who may connect besides processes of the job, and with which key; "" and a key, or why not.
  struct AcceptPolicy {
    std::function<std::string(const transport::Caller&)> refuse;
    transport::Secret key{};
    Serve serve;
  };

  /// `to_store`: connects to a node of this machine.
  Process(boost::asio::io_context& loop, Identity identity, transport::ConnectionPtr head,
          AcceptPolicy accept_policy, std::function<void(StoreLink::Connected)> to_store);
  ~Process() override;

  /// Throws Refused where this process is in no cluster.
  static Process& current();
  /// nullptr where this process is in no cluster.
  static Process* maybe() { return static_cast<Process*>(ProcessContext::maybe()); }

  template <class F>
  void post(F&& f) {
    boost::asio::post(loop_, std::forward<F>(f));
  }
  boost::asio::io_context& loop() { return loop_; }
  const Identity& identity() const { return identity_; }
  std::uint64_t next_object_id() { return ++last_object_; }
  /// An id that is unique in the cluster: for the actors and gangs that this process makes.
  template <class Id>
  Id next_shared_id() {
    return Id(identity_.self->process.value() << 32 | ++last_shared_);
  }

  /// Of a driver: asks the head a question in JSON, which the object is the answer to. nullptr in
  /// a worker process. Any thread.
  detail::ObjectPtr ask_head(std::string question) const {
    return ask_head_ ? ask_head_(std::move(question)) : nullptr;
  }
  /// Before any thread of the user's knows this process.
  void set_ask_head(std::function<detail::ObjectPtr(std::string)> ask) {
    ask_head_ = std::move(ask);
  }

  /// Of a driver: the last line that has come from a process; empty: none has. Any thread.
  std::string last_line_of(ProcessId process) const {
    return last_line_of_ ? last_line_of_(process) : std::string();
  }
  /// Before any thread of the user's knows this process.
  void set_last_line_of(std::function<std::string(ProcessId)> find) {
    last_line_of_ = std::move(find);
  }

  /// That a detached actor which is made in this driver's private cluster ends with it, once. Any
  /// thread.
  void warn_if_cluster_is_private();

  /// As detail::cluster_end(). Any thread.
  const detail::ObjectPtr& cluster_end() const { return cluster_end_; }

  /// That it is made here. Any thread.
  void note_detached(const std::string& name, const detail::ActorPtr& actor);
  /// Before a driver's end, as DetachedSpawns::finish().
  void finish_detached(const std::function<void(const std::string&)>& say);

  // ---- ProcessContext
  ProcessId id() const override { return identity_.self->process; }
  void on_loop(std::function<void()> then) override { post(std::move(then)); }
  bool is_on_loop() const override { return loop_.get_executor().running_in_this_thread(); }
  StoreLink& store() override { return store_link_; }
  ProcessId caller() const override { return Executor::caller(); }
  bool runs_calls() const override { return executor_.runs_calls(); }
  bool has_call() const override { return executor_.has_call(); }
  void give_cpu_back() override;
  detail::ObjectPtr take_cpu_again() override;
  void has_cpu_again() override;
  /// The actor of this worker process needs nothing any more of what it asked for: the head gives it
  /// to others, while the actor lives on. Any thread; returns at once. Does nothing where there is
  /// no actor.
  void return_resources();
  /// The detached actor of this worker process has done what it was made for: the head keeps `end`,
  /// a text of up to 8 KiB that only its readers understand, for who asks once the actor is gone.
  /// Any thread; returns at once. Does nothing where there is no detached actor.
  void tell_end(std::string end);

  // ---- the loop's
  HeadLink& head() { return head_; }
  Resolver& resolver() { return resolver_; }
  Tasks& tasks() { return tasks_; }
  Actors& actors() { return actors_; }
  Peers& peers() { return peers_; }
  Executor& executor() { return executor_; }
  /// Its context() is for any thread.
  Gangs& gangs() { return gangs_; }
  /// The cluster ends for this process: what is in flight, and what is asked from now on, fails
  /// with this.
  void end(const Failure& why);
  /// A socket that one of this process's listeners has accepted.
  void accept(transport::Socket socket);
  void on_head_message(wire::Message::Reader message);
  /// A request to the node of this worker process, in JSON, and its answer: never where this process
  /// is none of a node, or the node is gone.
  void ask_node(const std::string& request, std::function<void(const std::string&)> answered);
  /// From a node: of its object store, or from the head by way of it.
  void on_node_message(const transport::ConnectionPtr& from, wire::Message::Reader message);
  void on_head_lost(const std::string& why);
  /// Its nodes miss it too, and end: what is under way between processes has no answer to come
  /// either.
  void on_head_silent(const std::string& why);
  void on_cluster_stopped(const std::string& why);

 private:
  void lose_head(const Failure& why);
  void perform(CpuLending::Then then);
  void on_resumed(const Outcome& outcome);
  void on_request(ProcessId caller, wire::Message::Reader message);
  void on_tell(wire::HeadNotice::Reader tell);
  void on_orphans(wire::Orphans::Reader orphans);
  void watch_node(NodeId node);
  void enter_gang(wire::GangInfo::Reader gang);
  void on_node_lost(wire::NodeLost::Reader lost);

  boost::asio::io_context& loop_;
  const Identity identity_;
  const AcceptPolicy accept_policy_;
  std::function<detail::ObjectPtr(std::string)> ask_head_;
  std::function<std::string(ProcessId)> last_line_of_;
  transport::Acceptor acceptor_;
  // Of all sessions: a handle that outlives its own must not name what a later one makes.
  static inline std::atomic<std::uint64_t> last_object_{0};
  static inline std::atomic<std::uint64_t> last_shared_{0};
  std::atomic<bool> has_warned_of_detached_ = false;
  DetachedSpawns detached_spawns_;
  const detail::ObjectPtr cluster_end_ = detail::Object::pending(next_object_id());

  const transport::ConnectionPtr node_;                             // nullptr: this is a driver
  std::deque<std::function<void(const std::string&)>> node_asked_;  // in the order of the answers
  StoreLink store_link_;
  HeadLink head_;
  CpuLending cpu_lending_;
  std::vector<detail::ObjectPtr> resuming_;  // of threads that go on with the next resumed()
  HeldValues held_values_;
  Exports exports_;
  Orphans orphans_;
  Executor executor_;
  Peers peers_;
  CallServer call_server_;
  Resolver resolver_;
  Calls calls_;
  Tasks tasks_;
  Actors actors_;
  Gangs gangs_;
};

}  // namespace troupe::runtime
