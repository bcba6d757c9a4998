#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include <boost/asio/io_context.hpp>

#include "node/program/program.hpp"
#include "session/heartbeat.hpp"
#include "session/output/output_printer.hpp"
#include "session/process.hpp"
#include "transport/silence_timer.hpp"
#include "transport/socket/listeners.hpp"

namespace troupe::runtime {

struct DriverOptions {
  transport::Endpoint head;
  transport::Secret token{};
  std::string token_from;  ///< where it was read
  node::Program program;
  std::string name;         ///< of the job
  double weight = 1;        ///< of the job, beside others
  bool is_private = false;  ///< the cluster is this driver's own, and ends with it
  /// Prints on stderr what its worker processes print.
  bool worker_output = false;
  bool worker_names = true;  ///< each line after the name of its process
  /// For a head to register it, in time that this process runs: a head that is gone closes the
  /// connection.
  std::chrono::milliseconds timeout{std::chrono::minutes{1}};
  std::chrono::milliseconds heartbeat{1000};
  /// A head that echoes no heartbeat is waited for so long: it may stand still, and go on.
  std::chrono::milliseconds head_silence{std::chrono::minutes{10}};
};

/// A driver's part in a cluster: its connection to the head, its listeners, its Process, and the
/// thread that runs them. The job lives as long as this object.
class Driver {
 public:
  /// Connects and registers, on the calling thread. Throws Disconnected or Refused with a text for
  /// people.
  explicit Driver(const DriverOptions& options);
  /// Sends what is queued, ends the job, joins the thread.
  ~Driver();

  /// Before its end: waits for the constructors of detached actors, as DetachedSpawns::finish().
  void finish_detached() noexcept;

  /// What `troupe status --json` prints. Throws TimedOut or Disconnected.
  std::string status_json(std::chrono::milliseconds timeout);

 private:
  struct AcceptPolicy;
  void register_job(const DriverOptions& options);
  void serve_program(const transport::ConnectionPtr& connection, wire::Message::Reader message);
  void on_message(wire::Message::Reader message);
  void on_lost(const std::string& why);
  void on_head_silent();
  void on_head_gone();
  void start_heartbeat();
  void send_heartbeat(std::uint64_t beat);
  /// The question is answered after those that were asked before. Any thread.
  detail::ObjectPtr ask(std::string question);
  void fail_questions(const std::string& why);
  void flush_output();
  void find_store(StoreLink::Connected connected);
  void connect_store(wire::Address::Reader store, const StoreLink::Connected& connected);

  boost::asio::io_context loop_{1};
  const std::string head_name_;
  const std::chrono::milliseconds head_silence_;
  transport::ConnectionPtr head_;
  Heartbeat heartbeat_;
  transport::ConnectionPtr store_;  // a node of this machine
  transport::Secret token_{};
  const bool is_private_;
  std::shared_ptr<Address> self_ = std::make_shared<Address>();
  Listeners listeners_;
  std::unique_ptr<node::ProgramImage> image_;
  std::string registration_failure_;
  bool refused_ = false;  // by the head, or by us: not to be tried again
  std::unique_ptr<Process> process_;
  std::string head_gone_;                    // why it cannot be asked any more; empty: it can
  std::deque<detail::ObjectPtr> questions_;  // to the head, in the order in which it answers
  const bool shows_output_;
  OutputPrinter printer_;
  detail::ObjectPtr output_flushed_;
  transport::SilenceTimer flush_limit_;
  std::thread thread_;
};

}  // namespace troupe::runtime
