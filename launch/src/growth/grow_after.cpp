#include "growth/grow_after.hpp"

#include "words/refuse.hpp"

namespace troupe::launch {

std::optional<double> grow_after_s(const std::string& text, const GangSize& size,
                                   int max_restarts) {
  if (text.empty()) return kGrowAfterS;
  const std::string what = "--grow-after says when a gang is formed anew with more ranks, and ";
  if (!size.is_elastic()) {
    refuse(
        what +
        "this one has a fixed number of them: give a range, as -n 2:8, or leave --grow-after out");
  }
  if (max_restarts == 0) {
    refuse(what +
           "this one is never formed anew: give --max-restarts 1 or more, if the program goes on "
           "from its checkpoint, or leave --grow-after out");
  }
  if (text == kNever) return std::nullopt;
  return std::stod(text);
}

}  // namespace troupe::launch
