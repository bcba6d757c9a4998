#include "session/driver.hpp"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "config/token.hpp"
#include "node/node.hpp"
#include "objects/doorbell.hpp"
#include "os/machine.hpp"
#include "os/running_time.hpp"
#include "transport/find_token.hpp"
#include "transport/patience.hpp"
#include "transport/silence_timer.hpp"
#include "transport/socket/dial.hpp"
#include "wire/codec.hpp"

namespace troupe::runtime {
namespace {

/// At the end, for what worker processes have printed to come and to be printed.
constexpr std::chrono::milliseconds kOutputPatience{1000};
/// For the last lines, which come from all nodes and through the head: each may stand still. In
/// time that this process runs, and longer than a silent node takes to be lost: others have lines.
constexpr std::chrono::seconds kFlushPatience{15};
/// For other threads that waited and were told, and have yet to leave. Each has run meanwhile.
constexpr std::chrono::seconds kLeavePatience{60};

/// A program's own standard error is where its user looks.
void say(const std::string& line) { std::fprintf(stderr, "troupe: %s\n", line.c_str()); }

transport::Patience patience() {
  return {.again = [](const std::string& line) {
    say(line);
    return true;
  }};
}

}  // namespace

Driver::Driver(const DriverOptions& options)
    : head_name_("the head at " + transport::name_of(options.head)),
      head_silence_(options.head_silence),
      heartbeat_(loop_, options.heartbeat, transport::kSilenceNotice, options.head_silence,
                 {.send = [this](std::uint64_t beat) { send_heartbeat(beat); },
                  .fell_silent = [this] { on_head_silent(); },
                  .speaks_again = [this] { say(head_name_ + " goes on"); },
                  .gone = [this] { on_head_gone(); }}),
      token_(options.token),
      is_private_(options.is_private),
      shows_output_(options.worker_output),
      printer_(STDERR_FILENO, options.worker_names, options.is_private),
      flush_limit_(loop_.get_executor()) {
  self_->machine = os::machine_id();
  transport::ClientOptions client;
  client.self.role = wire::Role::DRIVER;
  client.key = token_;
  client.key_from = options.token_from;
  transport::connect_patiently(
      loop_, options.head, client, patience(),
      [this, &options](transport::ConnectionPtr connection, const transport::Accepted&) {
        head_ = std::move(connection);
        register_job(options);
      },
      [this, &options](const transport::Denied& denied) {
        registration_failure_ = denied.why + transport::about_other_head(options.head);
        refused_ = denied.refused;
      });

  transport::run_until(loop_, options.timeout,
                       [this] { return process_ || !registration_failure_.empty(); });
  if (!process_) {
    raise(
        {.kind = refused_ ? Failure::Kind::Refused : Failure::Kind::Disconnected,
         .message = !registration_failure_.empty()
                        ? registration_failure_
                        : fmt::format("the head at {} did not register this program within {} ms",
                                      transport::name_of(options.head), options.timeout.count())});
  }
  thread_ = std::thread([this] {
    const auto work = boost::asio::make_work_guard(loop_);
    loop_.restart();
    loop_.run();
  });
}

void Driver::register_job(const DriverOptions& options) {
  // Empty: of a unix socket, so all that there is is on this machine.
  const auto host = head_->local_host();
  listeners_ = open_listeners(loop_, host.empty() ? "127.0.0.1" : host, *self_,
                              [this](transport::Socket socket) {
                                if (process_) process_->accept(std::move(socket));
                              });
  head_->hand_over(
      {}, [this](wire::Message::Reader message) { on_message(message); },
      [this](const std::string& why) { on_lost(why); });
  transport::Outgoing message;
  auto out = message.root().initRegister();
  node::write_program(out.initProgram(), options.program);
  write_address(out.initAddress(), *self_);
  out.setPid(static_cast<std::uint32_t>(getpid()));
  out.setName(options.name);
  out.setWeight(options.weight);
  out.setWorkerOutput(shows_output_);
  head_->send(message);
}

void Driver::on_message(wire::Message::Reader message) {
  if (message.isRegistered() && !process_) {
    const auto registered = message.getRegistered();
    self_->process = ProcessId(registered.getProcess());
    const JobId job{registered.getJob()};
    Identity identity{.self = self_,
                      .job = job,
                      .job_key = transport::job_key(token_, job),
                      .cluster = registered.getCluster(),
                      .is_private = is_private_};
    Process::AcceptPolicy accept_policy;
    accept_policy.key = token_;
    accept_policy.refuse = [](const transport::Caller& caller) -> std::string {
      return caller.role == wire::Role::NODE
                 ? ""
                 : "a driver answers nodes and the processes of its job only";
    };
    accept_policy.serve = [this](const transport::ConnectionPtr& connection,
                                 wire::Message::Reader request) {
      serve_program(connection, request);
      return true;
    };
    process_ = std::make_unique<Process>(
        loop_, std::move(identity), head_, std::move(accept_policy),
        [this](StoreLink::Connected connected) { find_store(std::move(connected)); });
    process_->set_ask_head([this](std::string question) { return ask(std::move(question)); });
    process_->set_last_line_of(
        [this](ProcessId process) { return printer_.last_line_of(process); });
    start_heartbeat();
  } else if (message.isHeartbeat()) {
    heartbeat_.echoed();
  } else if (message.isWorkerOutput()) {
    printer_.take(message.getWorkerOutput());
  } else if (message.isOutputFlushed()) {
    if (output_flushed_) output_flushed_->complete(detail::Payload{});
  } else if (message.isAdminReply() && !questions_.empty()) {
    questions_.front()->complete(detail::Payload{.bytes = message.getAdminReply(), .refs = {}});
    questions_.pop_front();
  } else if (message.isShutdown()) {
    if (!process_) return on_lost(message.getShutdown());
    process_->on_cluster_stopped(message.getShutdown());
    fail_questions("the cluster was stopped: " + std::string(message.getShutdown()));
  } else if (process_) {
    process_->on_head_message(message);
  }
}

/// The head knows which node is on this machine.
void Driver::find_store(StoreLink::Connected connected) {
  process_->head().request([this](wire::HeadRequest::Builder ask) { ask.setStore(self_->machine); },
                           [this, connected](wire::HeadNotice::Reader tell) {
                             connect_store(tell.getStore(), connected);
                           },
                           [connected](const Failure& refused) { connected(refused); });
}

void Driver::connect_store(wire::Address::Reader store, const StoreLink::Connected& connected) {
  if (store.getUnixName().size() == 0) {
    return connected(Failure{
        .kind = Failure::Kind::Disconnected,
        .message =
            "there is no node on this machine; start one: `troupe worker --head HOST:PORT`"});
  }
  transport::ClientOptions options;
  options.self = {.role = wire::Role::PROCESS,
                  .cluster = process_->identity().cluster,
                  .job = process_->identity().job,
                  .process = self_->process};
  options.key = process_->identity().job_key;
  options.timeout = kPeerHandshake;
  transport::connect(
      loop_, {.host = {}, .port = 0, .unix_name = store.getUnixName()}, options,
      [this, connected, node = NodeId(store.getNode())](transport::ConnectionPtr connection,
                                                        const transport::Accepted&) {
        connection->hand_over(
            {},
            [this, weak = std::weak_ptr(connection)](wire::Message::Reader message) {
              if (auto from = weak.lock()) process_->store().on_message(from, message);
            },
            [this](const std::string& why) {
              process_->store().closed("the node of this machine is gone: " + why);
            });
        store_ = connection;
        connected(StoreLink::Reached{.connection = std::move(connection), .node = node});
      },
      [connected](const transport::Denied& denied) {
        connected(Failure{.kind = Failure::Kind::Disconnected, .message = denied.why});
      });
}

void Driver::on_lost(const std::string& why) {
  if (!process_) {
    registration_failure_ = why;
  } else {
    heartbeat_.stop();
    process_->on_head_lost(head_name_ + ": " + why);
    fail_questions(head_name_ + ": " + why);
  }
}

/// On this machine, through a unix socket, the end of the head is seen at once; and a private
/// cluster that stands in the debugger of its driver is none the worse for it.
void Driver::start_heartbeat() {
  if (!head_->local_host().empty()) heartbeat_.start();
}

void Driver::send_heartbeat(std::uint64_t beat) {
  transport::Outgoing message;
  message.root().setHeartbeat(beat);
  head_->send(message);
}

void Driver::on_head_silent() {
  say(fmt::format(
      "{} has said nothing for {} s: it stands still, stopped or starved, or is cut off. Nothing "
      "new starts meanwhile; this program waits for {} s of silence",
      head_name_, transport::kSilenceNotice.count(),
      std::chrono::duration_cast<std::chrono::seconds>(head_silence_).count()));
}

void Driver::on_head_gone() {
  const auto why = fmt::format("{}: no sign of life for {} ms", head_name_, head_silence_.count());
  head_->close();
  process_->on_head_silent(why);
  fail_questions(why);
}

void Driver::fail_questions(const std::string& why) {
  if (head_gone_.empty()) head_gone_ = why;  // what follows is only a consequence
  for (const auto& question : std::exchange(questions_, {}))
    question->complete(Failure{.kind = Failure::Kind::Disconnected, .message = why});
  if (output_flushed_) output_flushed_->complete(detail::Payload{});
}

void Driver::serve_program(const transport::ConnectionPtr& connection,
                           wire::Message::Reader message) {
  if (!message.isProgramRequest()) return;
  if (!image_) image_ = std::make_unique<node::ProgramImage>();
  transport::Outgoing reply;
  node::serve_program_request(*image_, message.getProgramRequest(),
                              reply.root().initProgramChunk());
  connection->send(reply);
}

detail::ObjectPtr Driver::ask(std::string question) {
  auto asked = detail::Object::pending(0);
  process_->post([this, asked, question = std::move(question)] {
    if (process_->head().is_gone() || !head_->is_open()) {
      const auto why = head_gone_.empty() ? head_name_ + ": the connection has ended" : head_gone_;
      return asked->complete(Failure{.kind = Failure::Kind::Disconnected, .message = why});
    }
    questions_.push_back(asked);
    transport::Outgoing request;
    request.root().setAdminRequest(question);
    head_->send(request);
  });
  return asked;
}

std::string Driver::status_json(std::chrono::milliseconds timeout) {
  const auto status = ask(R"({"do": "status"})");
  for (os::RunningTime time(timeout); !status->ready() && !time.is_over();) {
    time.pass([&](std::chrono::milliseconds slice) {
      wait([&] { return status->ready(); }, deadline_after(slice));
    });
  }
  if (!status->ready()) {
    raise({.kind = Failure::Kind::TimedOut,
           .message = fmt::format("the head did not answer within {} ms", timeout.count())});
  }
  if (const auto* failure = std::get_if<Failure>(&status->outcome())) raise(*failure);
  return std::get<detail::Payload>(status->outcome()).bytes;
}

/// What worker processes have printed by now is on its way to the head, or still in their files.
void Driver::flush_output() {
  if (!shows_output_) return;
  const auto flushed = detail::Object::pending(0);
  process_->post([this, flushed] {
    if (process_->head().is_gone() || !head_->is_open())
      return flushed->complete(detail::Payload{});
    output_flushed_ = flushed;
    flush_limit_.start(kFlushPatience, [flushed] { flushed->complete(detail::Payload{}); });
    transport::Outgoing request;
    request.root().setOutputFlush(process_->identity().job.value());
    head_->send(request);
  });
  wait([&] { return flushed->ready(); }, std::nullopt);
  printer_.finish(kOutputPatience);
}

void Driver::finish_detached() noexcept try {
  process_->finish_detached(say);
} catch (const std::exception& error) {  // no memory: no reason to end by it
  std::fprintf(stderr, "troupe: detached actors were not waited for: %s\n", error.what());
}

Driver::~Driver() {
  if (thread_.joinable()) {
    flush_output();
    boost::asio::post(loop_, [this] {
      heartbeat_.stop();
      flush_limit_.cancel();
      if (process_) {
        process_->peers().close();
        process_->end({.kind = Failure::Kind::Disconnected,
                       .message = "the program has ended its part in the cluster: the Cluster that "
                                  "troupe::init returned is gone; keep it for as long as refs and "
                                  "actors are used"});
      }
      transport::Outgoing leave;
      leave.root().setShutdown("the program has ended its part in the cluster");
      head_->send(leave);
      head_->finish();
      if (store_) store_->finish();
      listeners_ = {};
      // The loop ends once the last bytes are out: nothing else holds work, but a silent peer must
      // not hold it either.
      boost::asio::post(loop_, [this] { loop_.stop(); });
    });
    thread_.join();
  }
  // Other threads of the program that waited have been told; they must not find it gone while they
  // leave.
  os::RunningTime patience(kLeavePatience);
  while (process_ && process_->waiting_threads() != 0 && !patience.is_over()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    patience.passed(std::chrono::milliseconds(1));
  }
  process_.reset();
}

}  // namespace troupe::runtime
