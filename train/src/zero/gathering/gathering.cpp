#include "zero/gathering/gathering.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "collective/gather_all.hpp"
#include "parallel/torch_error.hpp"

namespace troupe::train {
namespace {

constexpr std::int64_t kNone = -1;                          // the number of no unit
constexpr std::uint64_t kMultiplier = 6364136223846793005;  // of Knuth's MMIX

}  // namespace

class Gathering::Unit final : public MemoryOwner {
 public:
  Unit(Gathering& gathering, std::int64_t number, std::shared_ptr<Flat> its)
      : number(number), flat(std::move(its)), gathering_(gathering) {}

  void before_use() override {
    gathering_.use(*this);
    flat->add_holders(1);
  }
  void after_use() noexcept override { flat->add_holders(-1); }

  const std::int64_t number;
  const std::shared_ptr<Flat> flat;

 private:
  Gathering& gathering_;
};

/// What a rank says in a round.
struct Gathering::Request {
  std::int64_t needed;    // the number of a unit, or kNone
  std::int64_t expected;  // the one that the rank will need next, or kNone
  std::int64_t steps;     // that the rank has made: as steps() has it
};

/// Memory for the bucket that this rank needs, until its parts have come.
class Gathering::Taken {
 public:
  explicit Taken(Flat& flat) : flat_(flat), call_(flat.begin_gather()) {}
  ~Taken() {
    if (!has_come_) flat_.end_gather(false);
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

  /// A collective, after which the bucket is here.
  void gather(Communicator& communicator) {
    const auto [in, out, count, type] = call_;
    if (count > 0) communicator.all_gather(in, out, count, type);
    has_come_ = true;
    flat_.end_gather(true);
  }

 private:
  Flat& flat_;
  const Flat::AllGather call_;
  bool has_come_ = false;
};

Gathering::Gathering(Communicator& communicator, Communicator& control, bool prefetches)
    : communicator_(communicator),
      control_(control),
      prefetches_{prefetches},
      prefetch_(communicator) {}

Gathering::~Gathering() = default;

void Gathering::add(const std::vector<std::shared_ptr<Flat>>& flats) {
  for (const auto& flat : flats) {
    units_.push_back(std::make_shared<Unit>(*this, static_cast<std::int64_t>(units_.size()), flat));
    flat->set_owner(units_.back());
    flat->release();
  }
}

void Gathering::dissolve(const std::vector<std::shared_ptr<Flat>>& flats) {
  meet();
  for (const auto& flat : flats) {
    auto& unit = unit_of(*flat);
    bring(*flat);
    flat->dissolve();
    std::erase(used_, &unit);
    units_[static_cast<std::size_t>(unit.number)].reset();
  }
}

void Gathering::bring(Flat& flat) {
  auto& unit = unit_of(flat);
  bring(unit, LooksAhead::No);
  note_used(unit);
}

void Gathering::hold(const std::vector<std::shared_ptr<Flat>>& flats) {
  meet();
  std::size_t held = 0;
  try {
    for (; held < flats.size(); ++held) {
      bring(*flats[held]);
      flats[held]->add_holders(1);
      flats[held]->set_writes_are_free(true);
    }
    meet();
  } catch (...) {
    release_held({flats.begin(), flats.begin() + static_cast<std::ptrdiff_t>(held)});
    throw;
  }
}

void Gathering::release_held(const std::vector<std::shared_ptr<Flat>>& flats) noexcept {
  for (const auto& flat : flats) {
    flat->set_writes_are_free(false);
    flat->add_holders(-1);
    try {
      flat->release();
    } catch (const std::exception&) {
      // Its memory stays until it is given back by a step.
    }
  }
}

void Gathering::meet() {
  while (!round(kNone, LooksAhead::No)) continue;
  for (const auto* unit : std::exchange(used_, {})) unit->flat->release();
  order_.begin_anew();
}

void Gathering::settle() {
  prefetch_.wait();
  prefetch_.drop();
}

void Gathering::end() noexcept {
  ended_ = true;
  prefetch_.stop();
  used_.clear();
  units_.clear();
}

Gathering::Unit& Gathering::unit_of(const Flat& flat) {
  return **std::ranges::find_if(units_,
                                [&](auto& unit) { return unit && unit->flat.get() == &flat; });
}

void Gathering::use(Unit& unit) {
  order_.note(unit.number);
  if (!unit.flat->is_whole()) bring(unit, prefetches_);
  note_used(unit);
}

void Gathering::bring(Unit& unit, LooksAhead looks_ahead) {
  std::erase(used_, &unit);
  give_back_oldest();
  round(unit.number, looks_ahead);
}

void Gathering::note_used(Unit& unit) {
  if (!used_.empty() && used_.back() == &unit) return;
  std::erase(used_, &unit);
  used_.push_back(&unit);
}

void Gathering::give_back_oldest() {
  std::erase_if(used_, [](const Unit* unit) { return !unit->flat->is_whole(); });
  const auto too_many = used_.size() - std::min(used_.size(), kKept - 1);  // one comes in addition
  for (std::size_t i = 0; i < too_many; ++i) used_[i]->flat->release();
}

/// -> whether no rank needed one.
bool Gathering::round(std::int64_t needed, LooksAhead looks_ahead) {
  if (ended_) {
    throw std::logic_error(
        "parameters of which each rank has a part are needed after their Context has ended: use "
        "the model and its optimizers while the Context lives");
  }
  prefetch_.wait();
  prefetch_.drop_prepared();  // of a round that threw
  std::optional<Taken> taken;
  auto* const flat = flat_of(needed);
  if (flat != nullptr && flat != prefetch_.come() && !flat->is_whole())
    or_abort([&] { taken.emplace(*flat); });
  const Request own{.needed = needed,
                    .expected = looks_ahead == LooksAhead::Yes ? prepare_next(needed) : kNone,
                    .steps = steps()};
  const auto requests = gather_all(control_, own);
  check_steps(requests);
  or_abort([&] { serve(own, requests, taken ? &*taken : nullptr); });
  return std::ranges::all_of(requests, [](const auto& each) { return each.needed == kNone; });
}

/// What throws may have thrown before a collective, for which the others wait.
void Gathering::or_abort(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& failed) {
    const auto text = text_of(failed);
    communicator_.abort(text);
    if (&control_ != &communicator_) control_.abort(text);
    throw;
  }
}

/// Takes memory for the bucket that this rank will need next, of those that are not here; but not
/// while what came before for nothing has its memory.
std::int64_t Gathering::prepare_next(std::int64_t needed) {
  const auto is_not_here = [&](std::int64_t number) {
    const auto& unit = units_[static_cast<std::size_t>(number)];
    return number != needed && unit && !unit->flat->is_whole();
  };
  const auto next = order_.next(is_not_here);
  if (!next) return kNone;
  const auto* const come = prefetch_.come();
  if (come != nullptr && come != flat_of(needed) && come != flat_of(*next)) return kNone;
  return prefetch_.prepare(units_[static_cast<std::size_t>(*next)]->flat) ? *next : kNone;
}

void Gathering::check_steps(const std::vector<Request>& requests) const {
  for (std::size_t rank = 1; rank < requests.size(); ++rank) {
    if (requests[rank].steps == requests[0].steps) continue;
    throw std::logic_error(fmt::format(
        "rank {} has made other steps of the optimizers than rank 0, prepared other models again, "
        "or written to other parameters, when a rank needs parameters, of which with "
        "ContextOptions::zero.stage 3 each has a part: all ranks call step() as often, use the "
        "model between backward() and step() alike, prepare it at the same places, and write to "
        "parameters alike. What one rank writes for a while, as averaged weights to evaluate, it "
        "writes and takes back under ctx.gathered(model)",
        rank));
  }
}

std::set<std::int64_t> Gathering::wanted_by(const std::vector<Request>& requests) {
  std::set<std::int64_t> wanted;
  for (const auto& request : requests) {
    if (request.needed != kNone) wanted.insert(request.needed);
  }
  return wanted;
}

/// What has come, on all ranks, and is not used now gives its memory back before others' buckets
/// need some. `taken`: nullptr where this rank needs none, or one that has come or is here.
void Gathering::serve(const Request& own, const std::vector<Request>& requests, Taken* taken) {
  const auto wanted = wanted_by(requests);
  const bool brings_next =
      own.expected != kNone && std::ranges::all_of(requests, [&](const Request& each) {
        return each.needed == own.needed && each.expected == own.expected;
      });
  if (!brings_next) prefetch_.drop_prepared();
  const auto* const come = prefetch_.come();
  const bool stays = come != nullptr && (come == flat_of(own.needed) ||
                                         (brings_next && come == flat_of(own.expected)));
  if (!stays) prefetch_.drop();
  for (const auto number : wanted) {
    auto& flat = *flat_of(number);
    if (&flat == come) continue;
    if (number == own.needed && taken != nullptr)
      taken->gather(communicator_);
    else
      gather_for_others(flat);
  }
  if (stays && come == flat_of(own.needed)) prefetch_.deliver();
  if (brings_next) prefetch_.begin();
}

/// nullptr for kNone.
Flat* Gathering::flat_of(std::int64_t number) const {
  return number == kNone ? nullptr : units_[static_cast<std::size_t>(number)]->flat.get();
}

void Gathering::gather_for_others(Flat& flat) {
  const bool was_here = flat.is_whole();
  flat.gather(communicator_);
  if (!was_here) flat.release();
}

/// A number that says how many updates and writes each unit has had.
std::int64_t Gathering::steps() const {
  std::uint64_t hash = units_.size();
  for (const auto& unit : units_) {
    // A dissolved unit counts as -1, which no living one does: ranks dissolve alike.
    for (const auto count : {unit ? unit->flat->updates() : -1, unit ? unit->flat->writes() : -1})
      hash = hash * kMultiplier + static_cast<std::uint64_t>(count);
  }
  return static_cast<std::int64_t>(hash);
}

}  // namespace troupe::train
