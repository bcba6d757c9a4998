#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include <troupe/errors.hpp>

#include "node/program/program.hpp"
#include "transport/handshake/handshake.hpp"
#include "transport/handshake/proof.hpp"
#include "transport/stream/resumable_line.hpp"

namespace troupe::node::test {

/// What a node needs of a head, and of a driver that its program can be fetched from: one listener
/// that accepts both. Keeps what it is told.
class FakeHead {
 public:
  explicit FakeHead(boost::asio::io_context& loop);

  static transport::Secret token();
  std::uint16_t port() const { return listener_->port(); }

  void send(transport::Outgoing& message);
  void start_job(std::uint64_t job, const Program& program);
  void end_job(std::uint64_t job);
  void start_process(std::uint64_t process, std::uint64_t job,
                     const std::vector<std::uint32_t>& gpus = {});
  void stop_process(std::uint64_t process, const std::string& why);
  /// A command for `perform` in that process.
  void command(std::uint64_t process, std::uint64_t id, const std::string& text);
  void shut_down(const std::string& why);
  void welcome();
  /// Closes the node's connection, as a head does that was killed.
  void vanish();
  /// Breaks the node's connection; both ends live.
  void cut();
  void stop_listening() { listener_.reset(); }

  struct Joined {
    std::string name, host, machine;
    std::map<std::string, double> resources;
    std::map<std::string, std::string> labels;
    std::size_t gpus = 0;
  };
  std::vector<Joined> joined;
  std::map<std::uint64_t, pid_t> ready;
  std::map<std::uint64_t, Failure> exited;
  std::map<std::uint64_t, std::string> answers;  ///< by the id of the command
  std::size_t beats = 0;
  std::size_t stood_still = 0;  ///< how often the node has said so
  bool echoes = true;
  bool takes_back = false;        ///< a node whose connection has broken
  bool is_slow = false;           ///< a node hears that it has joined at welcome()
  std::string refuses_with;       ///< instead of taking one back
  std::size_t resumed = 0;        ///< nodes that were taken back
  ProgramImage* image = nullptr;  ///< what it serves as driver
  std::size_t chunks = 0;         ///< that it served
  std::function<void(wire::ProgramChunk::Builder)> spoil;

 private:
  void on_message(const transport::ConnectionPtr& from, wire::Message::Reader message);
  void on_join(const transport::ConnectionPtr& from, wire::NodeJoin::Reader join);
  void on_resume(const transport::ConnectionPtr& from, wire::NodeResume::Reader resume);

  std::unique_ptr<transport::Listener> listener_;
  transport::LinePtr node_;
  transport::Outgoing welcome_;
  std::vector<transport::ConnectionPtr> connections_;
};

}  // namespace troupe::node::test
