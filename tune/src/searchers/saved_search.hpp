#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/tune/searcher.hpp>

#include "text/json.hpp"

namespace troupe::tune {

/// What tells a search from others: {"searcher", "seed", "trials", "metric", "mode", "space"}, and
/// "objectives" where there are several. A searcher adds its options to it, and its state behind them.
Json search_identity(std::string_view searcher, const SearchSetup& setup);

/// Takes out of a searcher's state how many trials it may suggest, and then how many the searches
/// in it may.
std::vector<std::uint64_t> take_trials(Json& state);

/// The parsed state. Throws std::invalid_argument, naming the first value that differs, unless it
/// has all that `identity` has; its "trials" may be fewer.
Json parse_saved_search(std::string_view saved, const Json& identity);

/// Calls take_up with the parsed state; a state whose parts are missing or of another type is
/// refused with std::invalid_argument. The caller changes nothing of itself before it has read all.
template <class TakeUp>
void load_search(std::string_view saved, const Json& identity, TakeUp&& take_up) {
  const auto json = parse_saved_search(saved, identity);
  try {
    std::forward<TakeUp>(take_up)(json);
  } catch (const Json::exception& broken) {
    throw std::invalid_argument(std::string("not a searcher's state: ") + broken.what());
  }
}

/// For searchers that have no grid to walk. Throws std::invalid_argument where `trials` is 0, with
/// the searcher's name as a program writes it: "tune::tpe".
void require_trials(std::string_view searcher, const SearchSetup& setup);

}  // namespace troupe::tune
