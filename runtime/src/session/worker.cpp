#include "session/worker.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <semaphore>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/steady_timer.hpp>

#include "objects/doorbell.hpp"
#include "os/library_threads.hpp"
#include "session/process.hpp"
#include "transport/socket/listeners.hpp"
#include "wire/codec.hpp"

namespace troupe::runtime {
namespace {

/// For the node to end a process that has given up.
constexpr std::chrono::seconds kPatience{1};

/// The parts of a worker process; they live as long as it.
struct Worker {
  boost::asio::io_context loop{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard{
      loop.get_executor()};
  transport::ConnectionPtr link;
  Listeners listeners;
  std::unique_ptr<Process> process;
  std::optional<ExecutionRecord> record;
  bool has_given_up = false;
  unsigned threads = 1;  // for libraries

  std::binary_semaphore has_work{0};  // the thread for its sockets waits for it

  boost::asio::steady_timer patience{loop};

  void begin(wire::WorkerConfig::Reader config);
  void configure(wire::WorkerConfig::Reader config);
  void take_record();
  void make_thread();
  void announce();
  void give_up(const std::string& why);
};

/// What goes wrong before this process is ready belongs to whoever waits for it, and not only into
/// its log.
void Worker::begin(wire::WorkerConfig::Reader config) try {
  configure(config);
  // On the thread that will run user code, while there is no other that could read the environment.
  os::set_library_threads(threads);
  make_thread();
} catch (const std::exception& error) {
  give_up(error.what());
} catch (...) {
  give_up("an exception that is no std::exception");
}

/// Tells the node, which ends this process once it has heard.
void Worker::give_up(const std::string& why) {
  has_given_up = true;
  std::fprintf(stderr, "troupe: this worker process cannot start: %s\n", why.c_str());
  listeners = {};
  transport::Outgoing last;
  auto out = last.root().initProcessExited();
  write_failure(out.initFailure(), {.kind = Failure::Kind::Program, .message = why});
  link->send(last);
  link->finish();
  patience.expires_after(kPatience);
  patience.async_wait([](const boost::system::error_code&) { _exit(1); });
}

void Worker::configure(wire::WorkerConfig::Reader config) {
  auto self = std::make_shared<Address>();
  self->process = ProcessId(config.getProcess());
  self->node = NodeId(config.getNode());
  self->machine = config.getMachine();
  listeners = open_listeners(loop, config.getHost(), *self, [this](transport::Socket socket) {
    process->accept(std::move(socket));
  });

  Identity identity{
      .self = self, .job = JobId(config.getJob()), .job_key = {}, .cluster = config.getCluster()};
  const auto key = config.getJobKey();
  std::copy_n(key.begin(), std::min(key.size(), identity.job_key.size()), identity.job_key.begin());

  Process::AcceptPolicy accept_policy;
  accept_policy.refuse = [](const transport::Caller&) {
    return "a worker process answers processes of its own job only";
  };
  take_record();
  threads = config.getThreads();
  process = std::make_unique<Process>(loop, std::move(identity), link, std::move(accept_policy),
                                      [this](const StoreLink::Connected& connected) {
                                        connected(StoreLink::Reached{.connection = link});
                                      });
}

/// Came with the configuration, where the node had memory for it.
void Worker::take_record() {
  const auto descriptors = link->take_descriptors();
  if (descriptors.empty()) return;
  auto adopted = ExecutionRecord::adopt(descriptors.front());
  if (auto* given = std::get_if<ExecutionRecord>(&adopted)) {
    record = std::move(*given);
    record->note_output(STDERR_FILENO);
  }
}

/// Before this process is ready: one that ends after that is started again, without an end where its
/// user may have no more threads. Up to its first call one thread does for both; then a loop that
/// stands still would hold up what others ask of it.
void Worker::make_thread() try {
  std::thread([this] {
    has_work.acquire();
    loop.run();
  }).detach();
} catch (const std::system_error& error) {
  throw std::runtime_error(std::string("it cannot have a thread for its sockets: ") + error.what());
}

void Worker::announce() {
  const auto& self = *process->identity().self;
  transport::Outgoing ready;
  auto out = ready.root().initProcessReady();
  out.setProcess(self.process.value());
  out.setPid(static_cast<std::uint32_t>(getpid()));
  write_address(out.initAddress(), self);
  link->send(ready);
}

}  // namespace

void run_worker(int fd) {
  renew_doorbell();
  // For as long as the process: user code may use it until the last moment.
  auto& worker = *new Worker;
  worker.link = transport::Connection::make(
      transport::Socket(worker.loop, transport::asio::generic::stream_protocol(AF_UNIX, 0), fd));
  worker.link->start(
      [&worker](wire::Message::Reader message) {
        if (message.isWorkerConfig() && !worker.process) {
          worker.begin(message.getWorkerConfig());
        } else if (worker.process) {
          worker.process->on_node_message(worker.link, message);
        }
      },
      [](const std::string& why) {  // the node is gone, and this process with it
        std::fprintf(stderr, "troupe: this worker process ends: its node is gone (%s)\n",
                     why.c_str());
        _exit(1);
      });
  while (!worker.process && !worker.has_given_up) worker.loop.run_one();
  if (worker.has_given_up) worker.loop.run();
  if (worker.record) worker.process->executor().keep_record(std::move(*worker.record));
  worker.announce();
  while (!worker.process->executor().has_work()) worker.loop.run_one();
  worker.has_work.release();
  worker.process->executor().run();
}

}  // namespace troupe::runtime
