#include "node/output/labelled_lines.hpp"

#include <string>
#include <tuple>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe::node {
namespace {

using Parts = std::vector<std::tuple<std::string, std::string, std::uint64_t>>;

Parts parts(LineCutter::Lines lines, const std::vector<runtime::LabelHistory::Span>& spans) {
  Parts out;
  for (auto& one : label_lines(std::move(lines), spans))
    out.emplace_back(one.label, one.text, one.left_out);
  return out;
}

TEST_CASE("each line belongs to what ran as it was begun", "[node][output]") {
  const LineCutter::Lines lines{.text = "a\nbb\nc\nd\n", .begins = {10, 12, 15, 17}, .left_out = 0};
  CHECK(parts(lines, {{8, "f"}, {13, "g"}, {15, "h"}}) ==
        Parts{{"f", "a\nbb\n", 0}, {"h", "c\nd\n", 0}});
  CHECK(parts(lines, {{12, "f"}, {17, ""}}) ==
        Parts{{"", "a\n", 0}, {"f", "bb\nc\n", 0}, {"", "d\n", 0}});
  CHECK(parts(lines, {}) == Parts{{"", "a\nbb\nc\nd\n", 0}});
}

TEST_CASE("what was left out has a label where all lines have the same", "[node][output]") {
  const LineCutter::Lines lines{.text = "a\nb\n", .begins = {10, 12}, .left_out = 5};
  CHECK(parts(lines, {{0, "f"}}) == Parts{{"f", "a\nb\n", 5}});
  CHECK(parts(lines, {{0, "f"}, {12, "g"}}) ==
        Parts{{"", "", 5}, {"f", "a\n", 0}, {"g", "b\n", 0}});
  CHECK(parts({.text = {}, .begins = {}, .left_out = 7}, {{0, "f"}}) == Parts{{"", "", 7}});
}

}  // namespace
}  // namespace troupe::node
