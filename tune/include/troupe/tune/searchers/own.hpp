#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <troupe/tune/searcher.hpp>

namespace troupe::tune {

/// A searcher of the user's own, by ask and tell, in fewer words than a Searcher: it has no state to
/// save. Lives in the driver, used by one thread. Made with the SearchSetup of the run, it has to be
/// a function of that, of the order of the calls and of the random numbers that it is given: a run
/// that is resumed makes the same calls to a new one.
class OwnSearch {
 public:
  virtual ~OwnSearch() = default;

  /// The configuration of the next trial: a value for each field of SearchSetup::space, in its order.
  /// Or Later, where it waits for trials that run, or NoMore; a call that answers one of these two leaves the search as
  /// it was. `random` is the trial's own, from the seed of the run. It is asked for no more than SearchSetup::trials.
  virtual Suggestion ask(Random& random) = 0;
  /// A trial is over that ran with this configuration, which may be one that the user gave
  /// (Options::first, Options::known) and was not asked for. Trials may end in any order.
  virtual void tell(const Configuration& configuration, const TrialEnd& end) = 0;
};

using MakeOwnSearch = std::function<std::unique_ptr<OwnSearch>(const SearchSetup& setup)>;

/// For Options::searcher. The run's state has the calls to the search, and a run that is resumed
/// makes them again: memory and time O(trials). `name` tells it from other searchers: another one
/// does not take up the run. The factory throws std::invalid_argument where `.trials` is 0. The run
/// throws std::logic_error for a configuration that is not one of the space, and
/// std::invalid_argument where the search is resumed and asks for another configuration than before,
/// as one may that goes by SearchSetup::trials and gets more of them. What the search throws
/// comes out of the run nested in a std::runtime_error that names the search and the call, also a
/// troupe::Error: std::rethrow_if_nested gives it.
/// Before that the run ends as by an interrupt, with its summary: resume it with a search that is mended.
SearcherFactory own_searcher(std::string name, MakeOwnSearch make);

/// The same for a type that is made from a SearchSetup: own_searcher<HillClimb>("hill climb").
template <class Search>
SearcherFactory own_searcher(std::string name) {
  return own_searcher(std::move(name), [](const SearchSetup& setup) {
    return std::unique_ptr<OwnSearch>(std::make_unique<Search>(setup));
  });
}

}  // namespace troupe::tune
