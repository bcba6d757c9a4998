#include "head/head.hpp"

#include <set>

#include <fmt/format.h>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <troupe/errors.hpp>

#include "config/json.hpp"
#include "config/name.hpp"
#include "head/control.hpp"
#include "head/output/log_query.hpp"
#include "head/output/log_requests.hpp"
#include "head/output/output_relay.hpp"
#include "head/returns/node_returns.hpp"
#include "transport/silence_timer.hpp"
#include "transport/socket/acceptor.hpp"

namespace troupe::head {
namespace {

constexpr std::chrono::seconds kStopPatience{3};  // with the nodes, in time that the head runs

std::function<void(const std::string&)> or_silent(std::function<void(const std::string&)> log) {
  return log ? std::move(log) : [](const std::string&) {};
}

}  // namespace

/// The head's sockets: who may connect, and which message goes to which function of Control.
struct Head::Impl {
  boost::asio::io_context& loop;
  const HeadOptions options;
  std::function<void(const std::string&)> log;
  // Before anything is written: a port that cannot be had leaves no files behind.
  std::unique_ptr<transport::Listener> listener;
  const Identity identity;
  Routes routes;
  Control control;
  OutputRelay output{routes};
  LogRequests logs{routes, LogRequests::Clock::now()};
  NodeReturns returns;
  transport::Acceptor acceptor;
  boost::asio::steady_timer timer;
  // Held until they hang up: they see the head's end by it.
  std::set<transport::ConnectionPtr> administrators;
  std::function<void()> stop_asked = [] {};
  std::function<void()> last_driver_gone = [] {};
  std::function<void()> stopped;
  transport::SilenceTimer stop_limit;
  bool nodes_are_late = false;

  Impl(boost::asio::io_context& io, HeadOptions given)
      : loop(io),
        options(std::move(given)),
        log(or_silent(options.log)),
        listener(listen([this](transport::Socket socket) { accept(std::move(socket)); })),
        identity(options.directory),
        control(io, identity, routes, {options.node_silence, options.driver_silence}, options.token,
                log, {.rejoin_patience = options.rejoin_patience}),
        returns(io, identity, routes, options.token, options.node_silence,
                {.node_gone = [this](NodeId node, scheduler::Incarnation incarnation,
                                     const std::string& why) { node_gone(node, incarnation, why); },
                 .log = log}),
        acceptor(io, "", {}, log),
        timer(io),
        stop_limit(io.get_executor()) {
    tick();
  }

  ~Impl() {
    for (auto& [id, node] : routes.nodes()) node.line->close();
    for (auto& [id, job] : routes.jobs()) {
      if (job.connection) job.connection->close();
    }
    for (const auto& connection : administrators) connection->close();
  }

  std::unique_ptr<transport::Listener> listen(transport::Listener::OnSocket on_socket) {
    if (!options.unix_name.empty())
      return transport::Listener::abstract_unix(loop, options.unix_name, std::move(on_socket));
    return transport::Listener::tcp(loop, options.host, options.port, std::move(on_socket));
  }

  void accept(transport::Socket socket) {
    transport::ServerOptions server;
    server.cluster = identity.cluster();
    server.refuse = [this](const transport::Caller& caller) -> std::string {
      if (stopped) return "the cluster is being stopped";
      const bool known = caller.role == wire::Role::NODE || caller.role == wire::Role::DRIVER ||
                         caller.role == wire::Role::ADMIN;
      return known ? "" : "a head answers nodes, drivers and administrators only";
    };
    server.key = [this](const transport::Caller&) { return options.token; };
    acceptor.accept(std::move(socket), std::move(server),
                    [this](transport::ConnectionPtr connection, const transport::Accepted& who) {
                      greet(std::move(connection), who.caller.role);
                    });
  }

  /// The first message says who this is; until then the connection is held by its own handlers.
  void greet(transport::ConnectionPtr connection, wire::Role role) {
    auto* raw = connection.get();
    if (role == wire::Role::ADMIN) administrators.insert(connection);
    raw->hand_over(
        {},
        [this, connection, role](wire::Message::Reader message) {
          const auto keep = connection;  // hand_over replaces this very handler
          if (role == wire::Role::NODE && message.isNodeJoin())
            return node_joins(keep, message.getNodeJoin());
          if (role == wire::Role::NODE && message.isNodeResume())
            return returns.on_resume(keep, message.getNodeResume());
          if (role == wire::Role::DRIVER && message.isRegister())
            return driver_registers(keep, message.getRegister());
          if (role == wire::Role::ADMIN && message.isAdminRequest())
            return administrate(keep, message.getAdminRequest(), true);
          keep->close();
        },
        [this, connection](const std::string&) {
          const auto keep = connection;
          administrators.erase(keep);
        });
  }

  void node_joins(const transport::ConnectionPtr& connection, wire::NodeJoin::Reader join) {
    scheduler::NodeId node{};
    try {
      node = control.node_joined(join, connection);
    } catch (const std::invalid_argument& error) {  // an amount or a name that no node can have
      log(fmt::format("refused node '{}': {}", config::printable(std::string(join.getName())),
                      error.what()));
      transport::Outgoing message;
      message.root().setShutdown(error.what());
      connection->send(message);
      return connection->finish();
    }
    const auto& joined = *routes.node(node);
    joined.line->start([this, node](wire::Message::Reader message) { from_node(node, message); },
                       [this, node, incarnation = joined.incarnation](const std::string& why) {
                         returns.on_broken(node, incarnation, why);
                       });
  }

  void node_gone(NodeId node, scheduler::Incarnation incarnation, const std::string& why) {
    control.node_lost(node, incarnation, why);
    output.node_gone(node);
    logs.node_gone(node);
    finish_stopping();
  }

  void from_node(scheduler::NodeId id, wire::Message::Reader message) {
    auto* node = routes.node(id);
    if (!node) return;
    node->heard = std::chrono::steady_clock::now();
    switch (message.which()) {
      case wire::Message::PROCESS_READY:
        return control.process_ready(id, message.getProcessReady());
      case wire::Message::PROCESS_EXITED:
        return control.process_exited(id, message.getProcessExited());
      case wire::Message::RELAY: {
        const auto relay = message.getRelay();
        const ProcessId asker{relay.getProcess()};
        const auto* process = routes.process(asker);
        if (process && process->node == id && relay.isRequest())
          control.asked(asker, relay.getRequest());
        return;
      }
      case wire::Message::OWNER_WATCH:
        return control.owner_watched(id, ProcessId(message.getOwnerWatch()));
      case wire::Message::NODE_WATCH:
        return control.node_watched(id, NodeId(message.getNodeWatch()));
      case wire::Message::WORKER_OUTPUT:
        return output.on_output(id, message.getWorkerOutput());
      case wire::Message::OUTPUT_FLUSHED:
        return output.on_flushed(id, JobId(message.getOutputFlushed()));
      case wire::Message::LOG_REPLY:
        return logs.on_reply(id, message.getLogReply());
      case wire::Message::ORPHANED:
        return control.orphaned(id, message.getOrphaned());
      case wire::Message::STORE_USAGE: {
        const auto usage = message.getStoreUsage();
        node->usage = {.capacity = usage.getCapacity(),
                       .used = usage.getUsed(),
                       .pinned = usage.getPinned(),
                       .kept = usage.getKept(),
                       .spilled = usage.getSpilled(),
                       .objects = usage.getObjects()};
        return;
      }
      case wire::Message::HEARTBEAT:
        node->beat = node->heard;
        node->returned = false;
        return echo(message.getHeartbeat(), *node->line);
      case wire::Message::NODE_STOOD_STILL:
        return control.node_stood_still(id, message.getNodeStoodStill());
      case wire::Message::NODE_LEAVES:
        node->leaves = true;
        return;
      default:
        return;
    }
  }

  static void echo(std::uint64_t beat, auto& way) {
    transport::Outgoing message;
    message.root().setHeartbeat(beat);
    way.send(message);
  }

  void driver_registers(const transport::ConnectionPtr& connection,
                        wire::RegisterDriver::Reader driver) {
    const auto [job, process] = control.driver_registered(driver, connection);
    transport::Outgoing message;
    auto registered = message.root().initRegistered();
    registered.setJob(job.value());
    registered.setProcess(process.value());
    registered.setCluster(identity.cluster());
    connection->send(message);
    connection->hand_over(
        {},
        [this, job = job, process = process](wire::Message::Reader message) {
          control.driver_spoke(job);
          if (message.isHeadRequest()) return control.asked(process, message.getHeadRequest());
          if (message.isOutputFlush()) return output.flush(job);
          if (message.isShutdown()) return control.driver_leaves(job);
          auto known = routes.jobs().find(job);
          if (message.isHeartbeat() && known != routes.jobs().end()) {
            return echo(message.getHeartbeat(), *known->second.connection);
          }
          if (message.isAdminRequest() && known != routes.jobs().end()) {
            administrate(known->second.connection, message.getAdminRequest(), false);
          }
        },
        [this, job = job](const std::string& why) {
          control.driver_gone(job, why);
          output.job_gone(job);
          if (control.drivers() == 0) last_driver_gone();
        });
  }

  void administrate(const transport::ConnectionPtr& connection, capnp::Text::Reader text,
                    bool may_stop) {
    const auto request = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
    const auto what = request.is_object() && request.contains("do") && request["do"].is_string()
                          ? request["do"].get<std::string>()
                          : "";
    control.carry_out_effects();
    nlohmann::json answer;
    if (is_of_nodes(what) && may_stop) return ask_nodes(connection, request, what);
    if (what == "status") {
      answer = control.status();
    } else if (what == "nodes") {
      answer = control.nodes_and_totals();
    } else if (what == "forget") {
      const auto name = request.find("actor");
      const bool is_name = name != request.end() && name->is_string();
      answer = {
          {"forgotten", is_name && control.forget_lost_actor(name->get_ref<const std::string&>())}};
    } else if (what == "stop" && may_stop) {
      answer = {{"nodes", control.nodes()}, {"ends", control.ends_with_cluster()}};
    } else {
      answer = {{"error", fmt::format("'{}' is nothing that the head does here", what)}};
    }
    reply(connection, answer);
    if (what == "stop" && may_stop) stop_asked();
  }

  static bool is_of_nodes(const std::string& what) {
    return what == "logs" || what == "timeline" || what == "running" || what == "objects";
  }

  /// The administrator may have hung up by then.
  void ask_nodes(const transport::ConnectionPtr& connection, const nlohmann::json& request,
                 const std::string& what) {
    try {
      logs.ask(
          what == "timeline"  ? read_timeline_query(request)
          : what == "running" ? read_running_query(request)
          : what == "objects" ? read_objects_query(request)
                              : read_log_query(request, control),
          [weak = std::weak_ptr(connection)](const nlohmann::json& answer) {
            if (const auto asker = weak.lock()) reply(asker, answer);
          },
          LogRequests::Clock::now());
    } catch (const std::invalid_argument& error) {
      reply(connection, {{"error", error.what()}});
    }
  }

  static void reply(const transport::ConnectionPtr& connection, const nlohmann::json& answer) {
    transport::Outgoing message;
    message.root().setAdminReply(config::to_text(answer));
    connection->send(message);
  }

  void tick() {
    static_assert(LogRequests::kTick == Control::kTick);
    timer.expires_after(Control::kTick);
    timer.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      control.tick();
      logs.tick(LogRequests::Clock::now());
      output.tick();
      returns.tick();
      finish_stopping();
      tick();
    });
  }

  void stop(const std::string& why, std::function<void()> done) {
    stopped = std::move(done);
    stop_limit.start(kStopPatience, [this] {
      nodes_are_late = true;
      finish_stopping();
    });
    listener.reset();
    routes.shutdown(why);
    returns.give_up();
    finish_stopping();
  }

  void finish_stopping() {
    if (!stopped) return;
    if (!routes.nodes().empty() && !nodes_are_late) return;
    // Posted: this is called by whoever noticed that a node has gone.
    if (auto done = std::exchange(stopped, [] {})) boost::asio::post(loop, std::move(done));
  }
};

Head::Head(boost::asio::io_context& loop, HeadOptions options)
    : impl_(std::make_unique<Impl>(loop, std::move(options))) {}
Head::~Head() = default;

std::uint16_t Head::port() const { return impl_->listener->port(); }
const std::string& Head::cluster() const { return impl_->identity.cluster(); }
void Head::on_stop_asked(std::function<void()> asked) { impl_->stop_asked = std::move(asked); }
void Head::on_last_driver_gone(std::function<void()> gone) {
  impl_->last_driver_gone = std::move(gone);
}
void Head::stop(const std::string& why, std::function<void()> stopped) {
  impl_->stop(why, std::move(stopped));
}

}  // namespace troupe::head
