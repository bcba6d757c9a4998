#include "node/output/labelled_lines.hpp"

#include <string_view>
#include <utility>

namespace troupe::node {

std::vector<LabelledLines> label_lines(LineCutter::Lines lines,
                                       const std::vector<runtime::LabelHistory::Span>& spans) {
  std::vector<LabelledLines> out;
  std::string_view rest = lines.text;
  auto next = spans.begin();
  std::string_view label;
  for (const auto begin : lines.begins) {
    for (; next != spans.end() && next->begin <= begin; ++next) label = next->label;
    if (out.empty() || out.back().label != label)
      out.push_back({.label = std::string(label), .text = {}});
    const auto bytes = rest.find('\n') + 1;
    out.back().text += rest.substr(0, bytes);
    rest.remove_prefix(bytes);
  }
  if (lines.left_out == 0) return out;
  if (out.size() != 1) out.insert(out.begin(), LabelledLines{});
  out.front().left_out = lines.left_out;
  return out;
}

}  // namespace troupe::node
