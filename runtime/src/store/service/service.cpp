#include "store/service/service.hpp"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "log/log.hpp"
#include "store/codec.hpp"
#include "store/memory/memory_room.hpp"

namespace troupe::store {
namespace {

CatalogOptions catalog_options(const ServiceOptions& options) {
  CatalogOptions catalog;
  // More than there is, whatever was asked for.
  constexpr std::uint64_t kMost = std::uint64_t{1} << 56;
  const auto cap = options.cap_bytes != 0 ? options.cap_bytes : memory_room().limit / 10 * 3;
  catalog.cap_bytes = whole_pages(std::clamp(cap, kPageBytes, kMost));
  catalog.keep_bytes = options.keep_bytes;
  return catalog;
}

}  // namespace

Service::Service(boost::asio::io_context& loop, ServiceOptions options)
    : loop_(loop),
      options_(std::move(options)),
      catalog_(catalog_options(options_)),
      deadline_timer_(loop),
      recall_timer_(loop),
      growth_timer_(loop),
      memory_lane_(loop),
      disk_lane_(loop) {
  if (options_.spill_bytes == 0) {
    no_spilling_ = {Refusal::Kind::Full, "spilling is switched off (spill_bytes is 0)"};
    return;
  }
  auto opened = SpillDirectory::open(options_.spill_directory, options_.spill_bytes);
  if (auto* refusal = std::get_if<Refusal>(&opened)) {
    log::warn(fmt::format("the object store cannot spill: {}", refusal->message));
    no_spilling_ = std::move(*refusal);
  } else {
    spill_ = std::make_shared<SpillDirectory>(std::move(std::get<SpillDirectory>(opened)));
  }
}

Service::~Service() = default;

// ---- processes ----------------------------------------------------------------------------------

std::variant<int, Refusal> Service::attach(ProcessId process, JobId job, Send send,
                                           OnViolation violated) {
  if (auto refusal = catalog_.why_not_attach(process, job)) return std::move(*refusal);
  auto& arena = arenas_[job];
  if (!arena) {
    auto made = Arena::make(catalog_.space_bytes());
    if (auto* refusal = std::get_if<Refusal>(&made)) {
      arenas_.erase(job);
      return std::move(*refusal);
    }
    arena = std::make_shared<Arena>(std::move(std::get<Arena>(made)));
  }
  processes_[process] = {std::move(send), std::move(violated)};
  catalog_.attach(process, job);
  return arena->fd();
}

void Service::detach(ProcessId process) {
  processes_.erase(process);
  perform(catalog_.process_ended(process));
}

void Service::owner_ended(ProcessId owner) { perform(catalog_.owner_ended(owner)); }
void Service::job_ended(JobId job) { perform(catalog_.job_ended(job)); }

bool Service::on_message(ProcessId from, wire::Message::Reader message) {
  switch (message.which()) {
    case wire::Message::OBJECT_CREATE:
      on_create(from, message.getObjectCreate());
      return true;
    case wire::Message::OBJECT_SEAL: {
      const auto seal = message.getObjectSeal();
      perform(catalog_.seal(from, read_object(seal.getObject()), seal.getPin()));
      return true;
    }
    case wire::Message::OBJECT_GET:
      on_get(from, message.getObjectGet());
      return true;
    case wire::Message::OBJECT_UNPIN: {
      const auto unpin = message.getObjectUnpin();
      perform(catalog_.unpin(from, read_object(unpin.getObject()), unpin.getCount()));
      return true;
    }
    case wire::Message::OBJECT_FREE:
      on_free(from, message.getObjectFree());
      return true;
    case wire::Message::OBJECT_RETURN:
      on_return(from, message.getObjectReturn());
      return true;
    default:
      return false;
  }
}

void Service::on_create(ProcessId from, wire::ObjectCreate::Reader create) {
  const auto object = read_object(create.getObject());
  watch_owner(ProcessId(create.getOwner()));
  if (!create.getKept()) {
    perform(catalog_.create(from, RequestId(create.getRequest()), object,
                            ProcessId(create.getOwner()), create.getBytes()));
    return watch(from, RequestId(create.getRequest()));
  }
  const auto made = catalog_.create_in_kept(from, object, ProcessId(create.getOwner()),
                                            create.getBytes(), create.getOffset());
  if (const auto* refusal = std::get_if<Refusal>(&made)) return violation(from, refusal->message);
  perform(std::get<Effects>(made));
}

void Service::on_return(ProcessId from, wire::ObjectReturn::Reader returned) {
  std::vector<std::uint64_t> offsets;
  for (const auto offset : returned.getOffsets()) offsets.push_back(offset);
  perform(catalog_.returned(from, returned.getRound(), offsets));
}

void Service::violation(ProcessId from, const std::string& why) {
  const auto process = processes_.find(from);
  if (process == processes_.end()) return;
  log::error(why);
  if (const auto violated = process->second.violated) violated(why);
}

// ---- what the catalog wants done ----------------------------------------------------------------

void Service::perform(const Effects& effects) {
  checks_.on_event([this] { catalog_.check(); });
  for (const auto& effect : effects) {
    std::visit([this](const auto& one) { perform(one); }, effect);
  }
}

void Service::send(ProcessId to, transport::Outgoing&& message) {
  const auto process = processes_.find(to);
  if (process != processes_.end()) process->second.send(std::move(message));
}

void Service::perform(const Created& effect) {
  if (Catalog::is_node(effect.to)) return granted(effect);
  transport::Outgoing message;
  auto created = message.root().initObjectCreated();
  created.setRequest(effect.request.value());
  write_extent(created.initExtent(), effect.extent);
  created.setWarm(effect.warm);
  send(effect.to, std::move(message));
}

void Service::perform(const Got& effect) {
  if (Catalog::is_node(effect.to)) return granted(effect);
  transport::Outgoing message;
  auto got = message.root().initObjectGot();
  got.setRequest(effect.request.value());
  write_extent(got.initExtent(), effect.extent);
  got.setBytes(effect.bytes);
  send(effect.to, std::move(message));
}

void Service::perform(const Declined& effect) {
  if (Catalog::is_node(effect.to)) return declined(effect);
  transport::Outgoing message;
  auto declined = message.root().initObjectDeclined();
  declined.setRequest(effect.request.value());
  declined.setKind(static_cast<std::uint16_t>(effect.refusal.kind));
  declined.setMessage(effect.refusal.message.c_str());
  send(effect.to, std::move(message));
}

void Service::perform(const Kept& effect) {
  transport::Outgoing message;
  write_extent(message.root().initObjectKept(), effect.extent);
  send(effect.to, std::move(message));
}

void Service::perform(const Recall& effect) {
  transport::Outgoing message;
  auto recall = message.root().initObjectRecall();
  recall.setRound(effect.round);
  if (effect.view) {
    write_object(recall.initFreed(), *effect.view);
  } else {
    recall.setAll();
  }
  send(effect.from, std::move(message));
  if (effect.round != 0) after(recall_timer_, options_.recall_patience, &Service::end_recall);
}

void Service::perform(const Orphans& effect) {
  if (!processes_.contains(effect.to)) {
    if (remote_client_ != nullptr) remote_client_->orphaned(effect.to, effect.objects);
    return;
  }
  transport::Outgoing message;
  auto orphans =
      message.root().initObjectRecall().initOrphans(static_cast<unsigned>(effect.objects.size()));
  for (unsigned i = 0; i < orphans.size(); ++i) write_object(orphans[i], effect.objects[i]);
  send(effect.to, std::move(message));
}

void Service::perform(const Punch& effect) {
  memory_lane_.run(
      [arena = arenas_.at(effect.job), extent = effect.extent] { return arena->punch(extent); },
      [this](const std::optional<Refusal>& failure) {
        if (failure && !std::exchange(told_of_punch_, true)) log::warn(failure->message);
      });
}

void Service::perform(const Commit& effect) {
  memory_lane_.run([arena = arenas_.at(effect.job), extent = effect.extent,
                    spare = options_.spare_bytes] { return arena->commit(extent, spare); },
                   [this, object = effect.object](const std::optional<Refusal>& failure) {
                     if (failure) retry_growth();
                     perform(catalog_.committed(object, failure));
                   });
}

void Service::perform(const WriteOut& effect) {
  disk_lane_.run(
      [arena = arenas_.at(effect.job), effect, spill = spill_,
       none = no_spilling_]() -> std::optional<Refusal> {
        if (!spill) return none;
        auto window = Window::open(*arena, effect.extent);
        if (auto* refusal = std::get_if<Refusal>(&window)) return std::move(*refusal);
        return spill->write(effect.object, std::get<Window>(window).bytes().first(effect.bytes));
      },
      [this, object = effect.object](const std::optional<Refusal>& failure) {
        perform(catalog_.written(object, failure));
      });
}

void Service::perform(const ReadBack& effect) {
  disk_lane_.run(
      [arena = arenas_.at(effect.job), effect, spill = spill_]() -> std::optional<Refusal> {
        auto window = Window::open(*arena, effect.extent);
        if (auto* refusal = std::get_if<Refusal>(&window)) return std::move(*refusal);
        const auto into = std::get<Window>(window).bytes().first(effect.bytes);
        prepare_to_write(into);
        return spill->read(effect.object, into);
      },
      [this, object = effect.object](const std::optional<Refusal>& failure) {
        perform(catalog_.restored(object, failure));
      });
}

void Service::perform(const Erase& effect) {
  disk_lane_.run(
      [object = effect.object, spill = spill_] {
        spill->remove(object);
        return true;
      },
      [](bool) {});
}

/// Work that is on its way holds the arena until it is done.
void Service::perform(const CloseArena& effect) { arenas_.erase(effect.job); }

// ---- time ---------------------------------------------------------------------------------------

void Service::after(boost::asio::steady_timer& timer, std::chrono::milliseconds time,
                    void (Service::*then)()) {
  timer.expires_after(time);
  timer.async_wait([this, then, alive = std::weak_ptr(alive_)](boost::system::error_code error) {
    if (!error && !alive.expired()) (this->*then)();
  });
}

void Service::end_recall() { perform(catalog_.recall_over()); }

void Service::retry_growth() {
  if (!std::exchange(retrying_, true))
    after(growth_timer_, options_.growth_retry, &Service::grow_again);
}

void Service::grow_again() {
  retrying_ = false;
  perform(catalog_.memory_may_grow());
}

/// All requests have the same patience, so the deadlines are in order.
void Service::watch(ProcessId process, RequestId request) {
  if (!catalog_.waits(process, request)) return;
  const auto now = Clock::now();
  deadlines_.push_back({now + options_.patience, process, request, catalog_.moves(), now});
  if (!expiring_) expire_at(deadlines_.back().at);
}

void Service::expire_at(Clock::time_point time) {
  stall_detector_.expect(time);
  expiring_ = true;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now());
  after(deadline_timer_, std::max(left, std::chrono::milliseconds(0)), &Service::expire);
}

void Service::expire() {
  forgive_standstill();
  expiring_ = false;
  const auto now = Clock::now();
  while (!deadlines_.empty()) {
    auto next = deadlines_.front();
    if (catalog_.waits(next.process, next.request) && next.at > now) return expire_at(next.at);
    deadlines_.pop_front();
    if (is_to_wait(next)) {
      next.at = now + options_.patience;
      deadlines_.push_back(next);
    } else {
      perform(catalog_.expired(next.process, next.request));
    }
  }
}

/// What requests wait for stood still too, and what came meanwhile is read after the timers.
void Service::forgive_standstill() {
  const auto now = Clock::now();
  const auto stood = stall_detector_.came(now);
  if (stood == Clock::duration{}) return;
  const auto readable = now + std::min<Clock::duration>(options_.patience, kStandstill);
  for (auto& deadline : deadlines_) {
    deadline.at = std::max(deadline.at + stood, readable);
    deadline.moved += stood;
  }
}

/// Memory is there for whoever is in line, as long as the line moves.
bool Service::is_to_wait(Deadline& deadline) const {
  if (!catalog_.waits_in_line(deadline.process, deadline.request)) return false;
  const auto now = Clock::now();
  const auto moves = catalog_.moves();
  if (std::exchange(deadline.moves, moves) != moves) deadline.moved = now;
  return now - deadline.moved <
         (catalog_.disk_works() ? options_.disk_patience : options_.patience);
}

}  // namespace troupe::store
