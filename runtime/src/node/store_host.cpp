#include "node/store_host.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "log/log.hpp"
#include "process/codec.hpp"

namespace troupe::node {

StoreHost::StoreHost(Ways ways) : ways_(std::move(ways)) {
  address_.node = ways_.node;
  address_.machine = ways_.machine;
  listeners_ = process::open_listeners(ways_.loop, ways_.host, address_,
                                       [this](transport::Socket socket) { accept(std::move(socket)); });
}

StoreHost::~StoreHost() { close(); }

store::Service& StoreHost::service() {
  if (!service_) service_ = std::make_unique<store::Service>(ways_.loop, ways_.options);
  return *service_;
}

// ---- worker processes ------------------------------------------------------------------------------------------

bool StoreHost::on_message(std::uint64_t process, std::uint64_t job, const transport::ConnectionPtr& link,
                           wire::Message::Reader message, store::Service::OnViolation violated) {
  if (message.isObjectAttach()) {
    attach(process, job, link, std::move(violated));
    return true;
  }
  return service_ && service_->on_message(process, message);
}

void StoreHost::attach(std::uint64_t process, std::uint64_t job, const transport::ConnectionPtr& link,
                       store::Service::OnViolation violated) {
  transport::Outgoing message;
  auto answer = message.root().initObjectAttached();
  process::write_address(answer.initStore(), address_);
  auto send = [to = std::weak_ptr(link)](transport::Outgoing&& out) {
    if (auto open = to.lock()) open->send(out);
  };
  const auto attached = service().attach(process, job, std::move(send), std::move(violated));
  const auto* arena = std::get_if<int>(&attached);
  UniqueFd memory(arena ? ::fcntl(*arena, F_DUPFD_CLOEXEC, 0) : -1);
  if (memory) {
    std::vector<UniqueFd> descriptors;
    descriptors.push_back(std::move(memory));
    return link->send_with_descriptors(std::move(message), std::move(descriptors));
  }
  answer.setFailure(arena ? fmt::format("the node has no descriptor left for it: {}", std::strerror(errno))
                          : std::get<store::Refusal>(attached).message);
  link->send(message);
}

void StoreHost::ended(std::uint64_t process) {
  if (service_) service_->detach(process);
}

void StoreHost::job_ended(std::uint64_t job) {
  if (service_) service_->job_ended(job);
}

// ---- drivers ---------------------------------------------------------------------------------------------------

void StoreHost::accept(transport::Socket socket) {
  transport::ServerOptions options;
  options.cluster = ways_.cluster;
  options.timeout = std::chrono::seconds(10);
  options.refuse = [](const transport::Caller& caller) -> std::string {
    return caller.role == wire::Role::PROCESS ? "" : "the object store of a node answers processes and nodes only";
  };
  options.key = [token = ways_.token](const transport::Caller& caller) {
    return transport::job_key(token, caller.job);
  };
  transport::accept(
      std::move(socket), std::move(options),
      [this, alive = std::weak_ptr(alive_)](const transport::ConnectionPtr& connection,
                                            const transport::Accepted& accepted) {
        if (!alive.expired()) adopt(connection, accepted.caller);
      },
      [](const transport::Denied& denied) { log::warn("the object store refused a connection: " + denied.why); });
}

void StoreHost::adopt(const transport::ConnectionPtr& driver, const transport::Caller& caller) {
  const auto process = caller.process;
  drivers_[process] = driver;
  driver->hand_over(
      {},
      [this, process, job = caller.job, weak = std::weak_ptr(driver)](wire::Message::Reader message) {
        auto from = weak.lock();
        if (!from) return;
        on_message(process, job, from, message, [weak](const std::string&) {
          if (auto open = weak.lock()) open->close();
        });
      },
      [this, process, weak = std::weak_ptr(driver)](const std::string&) {
        const auto known = drivers_.find(process);
        if (known == drivers_.end() || known->second != weak.lock()) return;
        drivers_.erase(known);
        ended(process);
      });
}

void StoreHost::close() {
  listeners_ = {};
  for (auto& [process, driver] : std::exchange(drivers_, {})) driver->close();
  service_.reset();
}

}  // namespace troupe::node
