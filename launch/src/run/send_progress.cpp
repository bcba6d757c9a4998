#include "run/send_progress.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "store/types.hpp"

namespace troupe::launch {

void SendProgress::on_piece(std::size_t node, Clock::time_point now) {
  ++taken_.at(node);
  last_ = now;
}

std::size_t SendProgress::nodes_that_have_it() const {
  return static_cast<std::size_t>(std::ranges::count(taken_, pieces_));
}

std::string SendProgress::in_words() const {
  const auto have_it = nodes_that_have_it();
  const auto least = taken_.empty() ? pieces_ : *std::ranges::min_element(taken_);
  return fmt::format("{} of {} nodes {} the working directory ({}), the slowest {} % of it",
                     have_it, taken_.size(), have_it == 1 ? "has" : "have",
                     store::format_bytes(bytes_), pieces_ == 0 ? 100 : least * 100 / pieces_);
}

std::string SendProgress::line(Clock::time_point now) {
  if (now - begun_ < next_line_) return {};
  next_line_ = std::chrono::floor<std::chrono::seconds>(now - begun_) + kNextLine;
  return in_words();
}

}  // namespace troupe::launch
