#include <troupe/tune/searchers/quasi_random.hpp>

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "searchers/axis.hpp"
#include "searchers/quasi_random/sequences.hpp"
#include "searchers/saved_search.hpp"

namespace troupe::tune {
namespace {

template <class Sequence>
class SequenceSearcher final : public Searcher {
 public:
  SequenceSearcher(std::string_view name, const SearchSetup& setup, bool scramble)
      : axes_{setup.space},
        trials_{setup.trials},
        seed_{setup.seed},
        identity_(search_identity(name, setup)),  // braces would make it an array
        sequence_{checked_dimensions(name), scramble ? std::optional(setup.seed) : std::nullopt} {
    require_trials(fmt::format("tune::{}", name), setup);
    identity_["scramble"] = scramble;
  }

  Suggestion suggest(TrialId trial) override {
    if (trial >= trials_) return NoMore{};
    return axes_.configuration(sequence_.point(trial), seed_, trial);
  }
  std::optional<std::uint64_t> size() const override { return trials_; }

  /// A trial's point is a function of what the identity says: there is no more to keep.
  std::string save() const override { return dump(identity_); }
  void load(std::string_view saved) override { parse_saved_search(saved, identity_); }

 private:
  std::size_t checked_dimensions(std::string_view name) const {
    if (axes_.size() <= Sequence::kMostDimensions) return axes_.size();
    throw std::invalid_argument(fmt::format("tune::{} searches at most {} fields; the space has {}",
                                            name, Sequence::kMostDimensions, axes_.size()));
  }

  Axes axes_;
  std::uint64_t trials_;
  std::uint64_t seed_;
  Json identity_;
  Sequence sequence_;
};

}  // namespace

SearcherFactory sobol(SobolOptions options) {
  return [=](const SearchSetup& setup) {
    return std::make_unique<SequenceSearcher<SobolSequence>>("sobol", setup, options.scramble);
  };
}

SearcherFactory halton(HaltonOptions options) {
  return [=](const SearchSetup& setup) {
    return std::make_unique<SequenceSearcher<HaltonSequence>>("halton", setup, options.scramble);
  };
}

}  // namespace troupe::tune
