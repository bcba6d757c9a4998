#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calls/output/label_history.hpp"
#include "node/output/line_cutter.hpp"

namespace troupe::node {

/// Lines of a process, one after the other, with what printed them.
struct LabelledLines {
  std::string label;           ///< empty: not known
  std::string text;            ///< whole lines, each with its end; may be none
  std::uint64_t left_out = 0;  ///< bytes, before the text or within it
};

/// A line belongs to what ran as it was begun. Lines of one label that follow each other stay
/// together. What was left out comes first: with a label where all lines have the same. Pure.
std::vector<LabelledLines> label_lines(LineCutter::Lines lines,
                                       const std::vector<runtime::LabelHistory::Span>& spans);

}  // namespace troupe::node
