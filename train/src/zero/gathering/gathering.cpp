#include "zero/gathering/gathering.hpp"

#include <algorithm>
#include <exception>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "collective/gather_all.hpp"

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
  std::int64_t needed;  // the number of a unit, or kNone
  std::int64_t steps;   // that the rank has made: as steps() has it
};

Gathering::Gathering(Communicator& communicator, Communicator& control)
    : communicator_(communicator), control_(control) {}

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
  bring(unit);
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
  while (!round(kNone)) continue;
  for (const auto* unit : std::exchange(used_, {})) unit->flat->release();
}

Gathering::Unit& Gathering::unit_of(const Flat& flat) {
  return **std::ranges::find_if(units_,
                                [&](auto& unit) { return unit && unit->flat.get() == &flat; });
}

void Gathering::use(Unit& unit) {
  if (!unit.flat->is_whole()) bring(unit);
  note_used(unit);
}

void Gathering::bring(Unit& unit) {
  std::erase(used_, &unit);
  round(unit.number);
  give_back_oldest();
}

void Gathering::note_used(Unit& unit) {
  std::erase(used_, &unit);
  used_.push_back(&unit);
}

void Gathering::give_back_oldest() {
  std::erase_if(used_, [](const Unit* unit) { return !unit->flat->is_whole(); });
  const auto too_many = used_.size() - std::min(used_.size(), kKept - 1);  // one comes in addition
  for (std::size_t i = 0; i < too_many; ++i) used_[i]->flat->release();
}

/// -> whether no rank needed one.
bool Gathering::round(std::int64_t needed) {
  const auto requests = gather_all(control_, Request{.needed = needed, .steps = steps()});
  for (std::size_t rank = 1; rank < requests.size(); ++rank) {
    if (requests[rank].steps == requests[0].steps) continue;
    throw std::logic_error(fmt::format(
        "rank {} has made other steps of the optimizers than rank 0, or written to other "
        "parameters, when a rank needs parameters, of which with ContextOptions::zero.stage 3 each "
        "has a part: all ranks call step() as often, use the model between backward() and step() "
        "alike, and write to parameters alike. What one rank writes for a while, as averaged "
        "weights "
        "to evaluate, it writes and takes back under ctx.gathered(model)",
        rank));
  }
  std::set<std::int64_t> wanted;
  for (const auto& request : requests) {
    if (request.needed == kNone) continue;
    if (!units_.at(static_cast<std::size_t>(request.needed)))
      throw std::logic_error(
          "a rank uses parameters of a model that others have prepared again: all ranks prepare a "
          "model at the same place");
    wanted.insert(request.needed);
  }
  for (const auto unit : wanted) {
    auto& flat = *units_[static_cast<std::size_t>(unit)]->flat;
    const bool is_for_others = unit != needed && !flat.is_whole();
    gather(flat);
    if (is_for_others) flat.release();
  }
  return wanted.empty();
}

void Gathering::gather(Flat& flat) {
  try {
    flat.gather(communicator_);
  } catch (const std::exception& failed) {
    // It may have been thrown before the collective, for which the others wait.
    communicator_.abort(failed.what());
    throw;
  }
}

/// A number that says how many updates and writes each unit has had.
std::int64_t Gathering::steps() const {
  std::uint64_t hash = units_.size();
  for (const auto& unit : units_) {
    for (const auto count : {unit ? unit->flat->updates() : 0, unit ? unit->flat->writes() : 0})
      hash = hash * kMultiplier + static_cast<std::uint64_t>(count);
  }
  return static_cast<std::int64_t>(hash);
}

}  // namespace troupe::train
