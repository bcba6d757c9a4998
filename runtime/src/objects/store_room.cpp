// The object store's part of detail/core.hpp: memory for values that are encoded.
#include <troupe/detail/core.hpp>

#include <utility>

#include "objects/blocking.hpp"
#include "objects/store_link.hpp"
#include "objects/stored.hpp"

namespace troupe::detail {
namespace {

class StoreRoom : public Room {
 public:
  StoreRoom(store::Writable memory, runtime::ProcessId owner, bool own, runtime::AddressPtr at)
      : memory_(std::move(memory)), owner_(owner), own_(own), at_(std::move(at)) {}

  std::span<char> bytes() override {
    const auto bytes = memory_.bytes();
    return {reinterpret_cast<char*>(bytes.data()), bytes.size()};
  }

  StoredPtr seal() override {
    store::Wanted place{
        .object = memory_.object(), .bytes = memory_.bytes().size(), .owner = owner_, .at = at_};
    if (own_)
      return std::make_shared<StoredValue>(std::move(place), true,
                                           std::move(memory_).seal_and_view());
    std::move(memory_).seal();
    return std::make_shared<StoredValue>(std::move(place), false);
  }

 private:
  store::Writable memory_;
  runtime::ProcessId owner_;
  bool own_;
  runtime::AddressPtr at_;
};

}  // namespace

bool has_store() {
  auto* process = runtime::ProcessContext::maybe();
  return process && process->store().may_be();
}

std::unique_ptr<Room> store_room(std::uint64_t bytes, Owner owner) {
  auto* process = runtime::ProcessContext::maybe();
  auto* client = process ? process->store().client() : nullptr;
  if (!client) return nullptr;
  const auto self = process->id();
  const bool is_own = owner == Owner::Self || !process->caller();
  const auto owning = is_own ? self : process->caller();

  struct Answer {
    std::optional<std::variant<store::Writable, store::Refusal>> made;
    ObjectPtr here = Object::pending(0);
  };
  const auto answer = std::make_shared<Answer>();
  client->create(bytes, owning, [answer](auto made) {
    answer->made.emplace(std::move(made));
    answer->here->complete(Payload{});
  });
  runtime::wait_giving_cpu_back(
      *process, [&] { return answer->here->ready(); }, std::nullopt);
  if (const auto* refusal = std::get_if<store::Refusal>(&*answer->made))
    raise(runtime::failure_of(*refusal));
  auto& memory = std::get<store::Writable>(*answer->made);
  memory.prepare();
  return std::make_unique<StoreRoom>(std::move(memory), owning, is_own,
                                     process->store().address_of(*client));
}

}  // namespace troupe::detail
