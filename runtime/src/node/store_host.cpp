#include "node/store_host.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "log/log.hpp"
#include "store/codec.hpp"
#include "wire/codec.hpp"

namespace troupe::node {
namespace {

void write_view(wire::HeldObject::Builder into, const store::ObjectView& view) {
  store::write_object(into.initObject(), view.object);
  into.setJob(view.job.value());
  into.setOwner(view.owner.value());
  into.setBytes(view.bytes);
  into.setState(static_cast<std::uint8_t>(view.state));
  into.setIsCopy(view.is_copy);
  auto pins = into.initPinnedBy(static_cast<unsigned>(view.pinned_by.size()));
  for (unsigned i = 0; i < pins.size(); ++i) pins.set(i, view.pinned_by[i].value());
}

}  // namespace

StoreHost::StoreHost(Callbacks callbacks) : callbacks_(std::move(callbacks)) {
  address_.machine = callbacks_.machine;
  acceptor_.emplace(callbacks_.loop, "the object store ", transport::AcceptLimits{},
                    [](const std::string& line) { log::warn(line); });
  const auto on_socket = [this](transport::Socket socket) { accept(std::move(socket)); };
  listeners_ = runtime::open_listeners(callbacks_.loop, callbacks_.host, address_, on_socket);
  if (listeners_.tcp) return;
  // For other nodes of this machine.
  listeners_.tcp = transport::Listener::tcp(callbacks_.loop, callbacks_.host, 0, on_socket);
  address_.port = listeners_.tcp->port();
}

StoreHost::~StoreHost() { close(); }

store::Service& StoreHost::service() {
  if (service_) return *service_;
  service_ = std::make_unique<store::Service>(callbacks_.loop, callbacks_.options);
  transfer::ExchangeOptions options;
  options.cluster = callbacks_.cluster;
  options.token = callbacks_.token;
  options.self = {.node = address_.node, .host = address_.host, .port = address_.port};
  exchange_ = std::make_unique<transfer::Exchange>(callbacks_.loop, *service_, std::move(options),
                                                   callbacks_.to_head);
  return *service_;
}

transfer::Exchange& StoreHost::exchange() {
  service();
  return *exchange_;
}

bool StoreHost::on_head_message(wire::Message::Reader message) {
  return exchange_ && exchange_->on_head_message(message);
}

// ---- worker processes ---------------------------------------------------------------------------

bool StoreHost::on_message(ProcessId process, JobId job, const transport::ConnectionPtr& link,
                           wire::Message::Reader message, store::Service::OnViolation violated) {
  if (message.isObjectAttach()) {
    drop_driver(process);  // which has taken the number of a worker process
    attach(process, job, link, std::move(violated));
    return true;
  }
  return service_ && service_->on_message(process, message);
}

void StoreHost::attach(ProcessId process, JobId job, const transport::ConnectionPtr& link,
                       store::Service::OnViolation violated) {
  transport::Outgoing message;
  auto answer = message.root().initObjectAttached();
  runtime::write_address(answer.initStore(), address_);
  auto send = [to = std::weak_ptr(link)](transport::Outgoing&& out) {
    if (auto open = to.lock()) open->send(out);
  };
  const auto attached = service().attach(process, job, std::move(send), std::move(violated));
  const auto* arena = std::get_if<int>(&attached);
  os::UniqueFd memory(arena ? ::fcntl(*arena, F_DUPFD_CLOEXEC, 0) : -1);
  if (memory) {
    std::vector<os::UniqueFd> descriptors;
    descriptors.push_back(std::move(memory));
    return link->send_with_descriptors(std::move(message), std::move(descriptors));
  }
  decline(*link,
          arena ? fmt::format("the node has no descriptor left for it: {}", std::strerror(errno))
                : std::get<store::Refusal>(attached).message);
}

void StoreHost::decline(transport::Connection& link, const std::string& why) {
  transport::Outgoing message;
  message.root().initObjectAttached().setFailure(why);
  link.send(message);
}

void StoreHost::ended(ProcessId process) {
  if (service_) service_->detach(process);
}

void StoreHost::job_ended(JobId job) {
  if (service_) service_->job_ended(job);
  if (exchange_) exchange_->job_ended(job);
}

void StoreHost::list_objects(std::uint64_t most, wire::LogReply::Builder reply) const {
  if (!service_) return;
  const auto views = service_->largest(
      static_cast<std::size_t>(std::min<std::uint64_t>(most, store::kMostListed)));
  reply.setObjectsInAll(service_->statistics().objects);
  auto list = reply.initObjects(static_cast<unsigned>(views.size()));
  for (unsigned i = 0; i < list.size(); ++i) write_view(list[i], views[i]);
}

std::optional<store::Statistics> StoreHost::statistics() const {
  if (!service_) return std::nullopt;
  return service_->statistics();
}

// ---- drivers ------------------------------------------------------------------------------------

void StoreHost::accept(transport::Socket socket) {
  transport::ServerOptions options;
  options.cluster = callbacks_.cluster;
  options.timeout = std::chrono::seconds(10);
  options.refuse = [](const transport::Caller& caller) -> std::string {
    const bool welcome = caller.role == wire::Role::PROCESS || caller.role == wire::Role::NODE ||
                         caller.role == wire::Role::DRIVER || caller.role == wire::Role::HEAD;
    return welcome ? "" : "this is the object store of a node, and no head";
  };
  options.key = [token = callbacks_.token](const transport::Caller& caller) {
    return caller.role == wire::Role::PROCESS ? transport::job_key(token, caller.job) : token;
  };
  acceptor_->accept(
      std::move(socket), std::move(options),
      [this](const transport::ConnectionPtr& connection, const transport::Accepted& accepted) {
        if (accepted.caller.role == wire::Role::PROCESS) return adopt(connection, accepted.caller);
        if (accepted.caller.role == wire::Role::HEAD) return hold(connection);
        exchange().accept(connection, accepted.caller);
      });
}

/// The head says nothing: it sees by the end of the connection that this process has ended.
void StoreHost::hold(const transport::ConnectionPtr& head) {
  callers_.insert(head);
  head->hand_over(
      {}, [](wire::Message::Reader) {},
      [this, weak = std::weak_ptr(head)](const std::string&) { callers_.erase(weak.lock()); });
}

/// A driver of this machine attaches; one of a machine without a node asks for bytes, once a
/// connection.
void StoreHost::adopt(const transport::ConnectionPtr& driver, const transport::Caller& caller) {
  const auto process = caller.process;
  callers_.insert(driver);
  driver->hand_over(
      {},
      [this, caller, weak = std::weak_ptr(driver)](wire::Message::Reader message) {
        if (auto from = weak.lock()) on_driver_message(from, caller, message);
      },
      [this, process, weak = std::weak_ptr(driver)](const std::string&) {
        const auto closed = weak.lock();
        callers_.erase(closed);
        const auto attached = drivers_.find(process);
        if (attached == drivers_.end() || attached->second != closed) return;
        drivers_.erase(attached);
        ended(process);
      });
}

void StoreHost::on_driver_message(const transport::ConnectionPtr& from,
                                  const transport::Caller& caller, wire::Message::Reader message) {
  if (message.isTransferRequest() || message.isTransferFree()) {
    if (message.isTransferRequest()) callers_.erase(from);  // the bytes take it over
    return exchange().on_message(from, caller, message);
  }
  if (message.isObjectAttach()) return attach_driver(from, caller);
  const auto attached = drivers_.find(caller.process);
  if (attached != drivers_.end() && attached->second == from)
    service().on_message(caller.process, message);
}

/// What it says of itself is proven only as far as its job: nobody gets what is another job's, or a
/// worker process's.
void StoreHost::attach_driver(const transport::ConnectionPtr& from,
                              const transport::Caller& caller) {
  const auto known = drivers_.find(caller.process);
  const auto job = service().job_of(caller.process);
  if (job && (*job != caller.job || known == drivers_.end())) {
    return decline(*from,
                   fmt::format("process {} is another one, of job {}", caller.process, *job));
  }
  // The connection before this one broke, and the node has not seen that yet.
  if (known != drivers_.end() && known->second != from) drop_driver(caller.process);
  attach(caller.process, caller.job, from, [weak = std::weak_ptr(from)](const std::string&) {
    if (auto open = weak.lock()) open->close();
  });
  if (service().job_of(caller.process)) drivers_[caller.process] = from;
}

void StoreHost::drop_driver(ProcessId process) {
  const auto attached = drivers_.extract(process);
  if (!attached) return;
  const auto connection = attached.mapped();
  callers_.erase(connection);
  connection->close();
  ended(process);
}

void StoreHost::close() {
  listeners_ = {};
  acceptor_.reset();
  drivers_.clear();
  for (const auto& caller : std::exchange(callers_, {})) caller->close();
  exchange_.reset();
  service_.reset();
}

}  // namespace troupe::node
