#include "store/client/client.hpp"

#include <cassert>
#include <future>
#include <utility>

#include "store/client/client_core.hpp"

namespace troupe::store {

// ---- View, Writable -----------------------------------------------------------------------------

View::~View() { core_->release(object_); }

Writable::~Writable() {
  if (core_) core_->give_up(object_);
}

void Writable::prepare() {
  if (!std::exchange(warm_, true)) core_->arena().prepare_to_write(bytes_);
}

ObjectId Writable::seal() && {
  const auto core = std::exchange(core_, nullptr);
  assert(core);
  core->seal(object_, false, bytes_);
  return object_;
}

ViewPtr Writable::seal_and_view() && {
  const auto core = std::exchange(core_, nullptr);
  assert(core);
  core->seal(object_, true, bytes_);
  return core->make_view(object_, core->arena().as_readable(bytes_));
}

// ---- Client -------------------------------------------------------------------------------------

Client::Client(boost::asio::io_context& loop, ProcessId self, Mapping arena, Send send,
               ClientOptions options)
    : core_(std::make_shared<ClientCore>(loop, self, std::move(arena), std::move(send), options)) {}
Client::~Client() { closed("this process is leaving its cluster"); }

void Client::create(std::uint64_t bytes, ProcessId owner, OnCreated done) {
  core_->create(bytes, owner, std::move(done));
}
void Client::view(const Wanted& wanted, OnView done) { core_->view(wanted, std::move(done)); }

std::variant<Writable, Refusal> Client::create(std::uint64_t bytes, ProcessId owner) {
  assert(!core_->is_on_loop());
  // Shared: the promise is done with only after the thread that waits for it goes on.
  const auto promise = std::make_shared<std::promise<std::variant<Writable, Refusal>>>();
  core_->create(bytes, owner, [promise](std::variant<Writable, Refusal> made) {
    promise->set_value(std::move(made));
  });
  auto made = promise->get_future().get();
  if (auto* writable = std::get_if<Writable>(&made)) writable->prepare();
  return made;
}

std::variant<ViewPtr, Refusal> Client::view(ObjectId object) {
  assert(!core_->is_on_loop());
  const auto promise = std::make_shared<std::promise<std::variant<ViewPtr, Refusal>>>();
  core_->view(Wanted{.object = object}, [promise](std::variant<ViewPtr, Refusal> view) {
    promise->set_value(std::move(view));
  });
  return promise->get_future().get();
}

void Client::free(const Wanted& place) { core_->free(place); }
bool Client::on_message(wire::Message::Reader message) { return core_->on_message(message); }
void Client::closed(const std::string& why) { core_->closed(why); }
std::uint64_t Client::last_object() const { return core_->last_object(); }

}  // namespace troupe::store
