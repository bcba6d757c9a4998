#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "store/codec.hpp"
#include "store/service/service.hpp"

namespace troupe::store {

void Service::set_remote_client(RemoteStoreClient* elsewhere, NodeId self) {
  remote_client_ = elsewhere;
  self_ = self;
}

void Service::later(std::function<void()> piece) {
  boost::asio::post(loop_, [alive = std::weak_ptr(alive_), piece = std::move(piece)] {
    if (!alive.expired()) piece();
  });
}

// ---- processes ask for what is not here ---------------------------------------------------------

void Service::on_get(ProcessId from, wire::ObjectGet::Reader get) {
  const auto object = read_object(get.getObject());
  const auto request = get.getRequest();
  auto at = read_node(get.getAt());
  const auto job = catalog_.job_of(from);
  // No job names what another's process here is about to write.
  const auto writer = catalog_.job_of(object.process);
  const bool fetched = job && is_elsewhere(at) && !catalog_.knows(object) &&
                       (!writer || writer == job) && !catalog_.waits(from, RequestId(request));
  perform(catalog_.get(from, RequestId(request), object, fetched));
  if (fetched && catalog_.waits(from, RequestId(request)))
    fetch(*job, object, ProcessId(get.getOwner()), get.getBytes(), std::move(at));
  // A copy has deadlines of its own, of its memory and of each byte.
  if (!catalog_.is_coming(object)) watch(from, RequestId(request));
}

void Service::fetch(JobId job, ObjectId object, ProcessId owner, std::uint64_t bytes,
                    NodeAddress at) {
  const auto request = ++last_own_request_;
  own_requests_.emplace(request, Copy{object, job, std::move(at), {nullptr, {}, bytes}, false});
  perform(catalog_.create(Catalog::node_of(job), request, object, owner, bytes));
  watch(Catalog::node_of(job), request);
  watch_owner(owner);
}

void Service::on_free(ProcessId from, wire::ObjectFree::Reader free) {
  const auto object = read_object(free.getObject());
  const auto at = read_node(free.getAt());
  const auto job = catalog_.job_of(from);
  if (job && is_elsewhere(at)) remote_client_->free(*job, object, at);
  perform(catalog_.free(from, object, free.getKeep()));
}

void Service::watch_owner(ProcessId owner) {
  if (remote_client_ != nullptr && !processes_.contains(owner)) remote_client_->watch(owner);
}

// ---- the node itself ----------------------------------------------------------------------------

void Service::hold(JobId job, ObjectId object, OnHeld done) {
  const auto node = Catalog::node_of(job);
  if (!catalog_.job_of(node)) {
    const auto why =
        fmt::format("object {} is not in the object store of this node, nor is any other of job {}",
                    to_string(object), job);
    return later([done = std::move(done), why] { done(Refusal{Refusal::Kind::Unknown, why}); });
  }
  const auto request = ++last_own_request_;
  own_requests_.emplace(request, std::move(done));
  perform(catalog_.get(node, request, object));
  watch(node, request);
}

void Service::release(JobId job, ObjectId object) {
  perform(catalog_.unpin(Catalog::node_of(job), object, 1));
}
void Service::copied(ObjectId object, const std::optional<Refusal>& failure) {
  perform(catalog_.copied(object, failure));
}
void Service::free(JobId job, ObjectId object) {
  // The writer's create comes by another way, and may be later.
  const auto of =
      catalog_.knows(object) ? catalog_.job_of(object) : catalog_.job_of(object.process);
  if (of == job) perform(catalog_.free({}, object, false));
}

/// Memory for a copy.
void Service::granted(const Created& effect) {
  auto copy = std::get<Copy>(std::move(own_requests_.extract(effect.request).mapped()));
  copy.into.arena = arenas_.at(copy.job);
  copy.into.extent = effect.extent;
  copy.warm = effect.warm;
  later([this, copy = std::move(copy)]() mutable {
    if (remote_client_ != nullptr) return remote_client_->fetch(std::move(copy));
    copied(copy.object, Refusal{Refusal::Kind::Stopped, "this node is stopping"});
  });
}

void Service::granted(const Got& effect) {
  auto done = std::get<OnHeld>(std::move(own_requests_.extract(effect.request).mapped()));
  const Held held{arenas_.at(*catalog_.job_of(effect.to)), effect.extent, effect.bytes};
  later([done = std::move(done), held] { done(held); });
}

/// Who waits for a copy is told by the catalog.
void Service::declined(const Declined& effect) {
  auto request = own_requests_.extract(effect.request);
  if (!request) return;
  auto* done = std::get_if<OnHeld>(&request.mapped());
  if (done != nullptr) later([done = std::move(*done), why = effect.refusal] { done(why); });
}

void Service::perform(const Gone& effect) {
  later([this, effect] {
    if (remote_client_ != nullptr) remote_client_->freed(effect.job, effect.object, effect.copy);
  });
}

}  // namespace troupe::store
