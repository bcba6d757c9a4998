#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

#include "../../support/eventually.hpp"
#include "../../support/guard.hpp"
#include "../../support/id_literals.hpp"
#include "store/service/service.hpp"
#include "transfer/exchange.hpp"

namespace troupe::transfer::test {

using namespace std::chrono_literals;
using store::JobId;
using store::NodeAddress;
using store::ObjectId;
using store::ProcessId;
using troupe::test::eventually;

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr JobId kJob{1};
inline constexpr const char* kCluster = "test";
transport::Secret token();

/// Bytes that differ everywhere, and from those of another object.
void fill(std::span<std::byte> bytes, ObjectId object);
bool is_filled(std::span<const std::byte> bytes, ObjectId object);

/// What a process was told.
struct Answer {
  std::optional<store::Refusal> refusal;
  store::Extent extent = {};
  std::uint64_t bytes = 0;
};

struct NodeOptions {
  std::uint64_t cap_bytes = 256 * kMiB;
  std::string spill_directory = {};  ///< empty: it does not spill
  transport::Secret key = token();
  ExchangeOptions exchange = {};
  std::chrono::milliseconds patience = troupe::test::kGuard;  ///< of its store, for a request
};

/// One node's store with its exchange and listener, on a thread of its own. Processes are numbers.
class Node {
 public:
  explicit Node(store::NodeId number, NodeOptions options = {});
  ~Node();

  const NodeAddress& address() const { return address_; }
  void attach(ProcessId process, JobId job = kJob);
  void detach(ProcessId process);

  ObjectId put(ProcessId process, std::uint64_t bytes,
               ProcessId owner = {});  ///< none: the process
  std::future<Answer> ask(ProcessId process, ObjectId object, std::uint64_t bytes,
                          const NodeAddress& at, ProcessId owner = {});  ///< none: who wrote it
  Answer get(ProcessId process, ObjectId object, std::uint64_t bytes, const NodeAddress& at,
             ProcessId owner = {});
  void unpin(ProcessId process, ObjectId object);
  void free(ProcessId process, ObjectId object, const NodeAddress& at = {});
  bool has(ProcessId process, const Answer& answer, ObjectId object);  ///< with the right bytes

  store::Statistics statistics();
  std::size_t sending();
  int accepted() const { return accepted_; }
  std::size_t freeing();
  // What was said to the head, and what it says.
  std::set<ProcessId> watched();            ///< owners that it was asked about
  std::set<store::NodeId> nodes_watched();  ///< nodes likewise
  std::map<ProcessId, std::vector<ObjectId>> orphaned();
  void owner_ended(ProcessId owner);
  void node_ended(store::NodeId node);
  void job_ended(JobId job = kJob);
  void stop_listening();
  void listen_again();
  /// Every connection is cut, as where the process was killed.
  void kill();

  /// Runs it on the node's loop.
  template <class Body>
  auto on_loop(Body body) {
    std::packaged_task<decltype(body())()> task(std::move(body));
    auto result = task.get_future();
    boost::asio::post(loop_, [&task] { task(); });
    return result.get();
  }

 private:
  struct Process {
    JobId job;
    std::unique_ptr<store::Mapping> memory;
    std::map<store::RequestId, std::promise<Answer>> asked;
    std::uint64_t last_object = 0;
  };
  void listen();
  void on_socket(transport::Socket socket);
  void on_word_to_head(wire::Message::Reader message);
  void told(ProcessId process, transport::Outgoing&& message);
  void say(ProcessId from, const std::function<void(wire::Message::Builder)>& write);

  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      loop_.get_executor()};
  const NodeOptions options_;
  NodeAddress address_;
  std::unique_ptr<store::Service> service_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<transport::Listener> listener_;
  std::map<ProcessId, Process> processes_;
  store::RequestId last_request_;
  std::set<ProcessId> watched_;
  std::set<store::NodeId> nodes_watched_;
  std::map<ProcessId, std::vector<ObjectId>> orphaned_;
  std::atomic<int> accepted_ = 0;
  std::thread thread_;
};

/// Passes bytes on between those who connect to it and a node, and sees and changes what comes
/// back.
class Proxy {
 public:
  /// Of the bytes that come back on a connection, which is numbered from 1 on: those from `offset`.
  /// False: cut it.
  using OnBytes = std::function<bool(int connection, std::uint64_t offset, std::span<char> bytes)>;
  /// `on_forward`: likewise, of the bytes that go to the node; none: they pass.
  Proxy(const NodeAddress& to, OnBytes on_bytes, OnBytes on_forward = {});
  ~Proxy();
  NodeAddress address() const { return {.node = to_.node, .host = "127.0.0.1", .port = port_}; }
  std::uint64_t came_back() const { return came_back_; }
  int connections() const { return connections_; }

 private:
  void serve(int listening);
  void pass(int client, int number);

  const NodeAddress to_;
  const OnBytes on_bytes_, on_forward_;
  std::uint16_t port_ = 0;
  int listening_ = -1;
  std::atomic<int> connections_ = 0;
  std::atomic<std::uint64_t> came_back_ = 0;
  std::atomic<bool> ends_ = false;
  std::mutex mutex_;  // guards passing_
  std::vector<std::thread> passing_;
  std::thread thread_;
};

/// About so many bytes a second, for Proxy::OnBytes.
Proxy::OnBytes slowly(std::uint64_t bytes_per_second);

/// A node as far as the handshake, which answers each request with bytes of the test's choice, and
/// then says no more.
class FakeNode {
 public:
  FakeNode(std::function<std::string(wire::TransferRequest::Reader)> answer,
           transport::Secret key = token());
  ~FakeNode();
  NodeAddress address() const { return {.node = 99_node, .host = "127.0.0.1", .port = port_}; }
  int requests() const { return requests_; }

 private:
  boost::asio::io_context loop_{1};
  std::function<std::string(wire::TransferRequest::Reader)> answer_;
  std::unique_ptr<transport::Listener> listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> requests_ = 0;
  std::vector<os::UniqueFd> sockets_;
  std::thread thread_;
};

/// As it was before anybody asked for anything.
bool is_at_rest(Node& node, const store::Statistics& before);

/// Runs the loop until then, or for a minute. -> whether it came to that.
bool runs_until(boost::asio::io_context& loop, const std::function<bool()>& condition);

}  // namespace troupe::transfer::test
