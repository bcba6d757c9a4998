#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/types.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "files.hpp"
#include "os/unique_fd.hpp"
#include "store/client/client.hpp"
#include "store/service/service.hpp"
#include "transport/connection.hpp"

namespace troupe::store::test {

/// Small, and patient however busy the machine is; without a spill directory unless one is named.
ServiceOptions options_for_test(std::uint64_t cap_bytes, const std::string& spill_directory = {});

/// The store of a node: its loop is run by the test's own thread, while it waits.
struct TestNode {
  explicit TestNode(ServiceOptions options)
      : service(std::make_unique<Service>(loop, std::move(options))) {}

  /// Runs the loop until the condition holds; fails the test after a minute.
  template <class Condition>
  void run_until(const std::string& what, Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition()) {
      INFO("waiting for " << what);
      REQUIRE(std::chrono::steady_clock::now() < end);
      if (loop.stopped()) loop.restart();
      loop.run_one_for(std::chrono::milliseconds(10));
    }
  }
  Statistics statistics() const { return service->statistics(); }

  boost::asio::io_context loop;
  std::unique_ptr<Service> service;
  std::map<wire::Message::Which, int> received;
};

/// In a forked process: its client, and a line to the test.
struct Worker {
  Client& client;
  int line;
  ProcessId self;

  void tell(const std::string& word) const;
  std::string hear() const;

  /// Throw where the store refuses.
  Writable create(std::uint64_t bytes, ProcessId owner = {}) const;  ///< none: this process
  ObjectId put(std::uint64_t bytes, char fill, ProcessId owner = {}) const;
  ViewPtr view(ObjectId object) const;
  Refusal refused_create(std::uint64_t bytes) const;
  Refusal refused_view(ObjectId object) const;
};

/// Throws what makes a worker end with exit code 1.
void require(bool holds, const std::string& what);
bool is_filled(std::span<const std::byte> bytes, std::uint64_t size, char fill);

/// A real process that uses the store of the test's node, by a socket, and with the arena's
/// descriptor sent over another.
class WorkerProcess {
 public:
  using Body = std::function<void(Worker&)>;
  WorkerProcess(TestNode& node, ProcessId number, JobId job, Body body);
  ~WorkerProcess();

  std::string hear();  ///< its next word
  void tell(const std::string& word);
  /// Its exit code, or minus the signal that ended it; the node has been told then.
  int join();
  void kill();
  pid_t pid() const { return pid_; }

 private:
  TestNode& node_;
  ProcessId number_;
  pid_t pid_ = 0;
  os::UniqueFd line_;
  transport::ConnectionPtr link_;
};

/// A client in this process, with a loop and thread of its own.
class LocalClient {
 public:
  LocalClient(int arena, ProcessId self, os::UniqueFd socket);
  ~LocalClient();
  Client& client() { return *client_; }

 private:
  boost::asio::io_context loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      loop_.get_executor()};
  transport::ConnectionPtr link_;
  std::unique_ptr<Client> client_;
  std::thread thread_;
};

/// Both ends of a socket between a node and a process.
std::pair<os::UniqueFd, os::UniqueFd> socket_pair();
/// Lets the process of that number talk to the node's service. -> its end, and its arena's
/// descriptor.
struct Attached {
  transport::ConnectionPtr link;
  int arena = -1;
};
Attached attach(TestNode& node, ProcessId number, JobId job, os::UniqueFd socket);

}  // namespace troupe::store::test
