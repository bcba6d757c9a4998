#include "process/worker.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>
#include <boost/asio/executor_work_guard.hpp>

#include "process/codec.hpp"
#include "process/doorbell.hpp"
#include "process/listeners.hpp"
#include "process/process.hpp"

namespace troupe::process {
namespace {

/// The parts of a worker process; they live as long as it.
struct Worker {
  boost::asio::io_context loop{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard{loop.get_executor()};
  transport::ConnectionPtr link;
  Listeners listeners;
  std::unique_ptr<Process> process;
  std::atomic<bool> configured{false};

  void configure(wire::WorkerConfig::Reader config);
};

void Worker::configure(wire::WorkerConfig::Reader config) {
  auto self = std::make_shared<Address>();
  self->process = config.getProcess();
  self->node = config.getNode();
  self->machine = config.getMachine();
  listeners = open_listeners(loop, config.getHost(), *self,
                             [this](transport::Socket socket) { process->accept(std::move(socket)); });

  Identity identity{.self = self, .job = config.getJob(), .job_key = {}, .cluster = config.getCluster()};
  const auto key = config.getJobKey();
  std::copy_n(key.begin(), std::min(key.size(), identity.job_key.size()), identity.job_key.begin());

  Process::Strangers strangers;
  strangers.refuse = [](const transport::Caller&) { return "a worker process answers processes of its own job only"; };
  process = std::make_unique<Process>(loop, std::move(identity), link, std::move(strangers));

  transport::Outgoing ready;
  auto out = ready.root().initProcessReady();
  out.setProcess(self->process);
  out.setPid(static_cast<std::uint32_t>(getpid()));
  write_address(out.initAddress(), *self);
  link->send(ready);

  configured.store(true, std::memory_order_release);
  doorbell().ring();
}

}  // namespace

void run_worker(int fd) {
  renew_doorbell();
  auto& worker = *new Worker;  // for as long as the process: user code may use it until the last moment
  worker.link = transport::Connection::make(
      transport::Socket(worker.loop, transport::asio::generic::stream_protocol(AF_UNIX, 0), fd));
  worker.link->start(
      [&worker](wire::Message::Reader message) {
        if (message.isWorkerConfig() && !worker.process) {
          worker.configure(message.getWorkerConfig());
        } else if (worker.process) {
          worker.process->on_head_message(message);
        }
      },
      [](const std::string&) { _exit(0); });  // the node is gone, and this process with it
  std::thread([&worker] { worker.loop.run(); }).detach();
  wait([&worker] { return worker.configured.load(std::memory_order_acquire); }, std::nullopt);
  worker.process->executor().run();
}

}  // namespace troupe::process
