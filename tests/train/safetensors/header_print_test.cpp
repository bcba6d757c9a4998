// Heads of files of safetensors that are printed. The exact texts are what the reference
// implementation, 0.8, writes for the same tensors.
#include "safetensors/header.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "safetensors/heads.hpp"

using namespace std::string_literals;
using namespace troupe::testing;

namespace {

/// The entries are what the file has that is printed of them, and the metadata.
void check_printed_parses(const std::map<std::string, safetensors::Entry>& entries,
                          const std::map<std::string, std::string>& metadata) {
  const auto placed = safetensors::place(entries);
  const auto head = safetensors::print_header(placed, metadata);
  CHECK(head.size() % 8 == 0);
  REQUIRE(placed.size() == entries.size());
  const auto parsed = head_of_file(head + std::string(end_of_values(placed), '\0'));
  CHECK(flat_entries(parsed.entries) == flat_entries(placed));
  CHECK(parsed.metadata == metadata);
  for (const auto& [name, entry] : entries) {
    CAPTURE(name);
    REQUIRE(parsed.entries.count(name) == 1);
    CHECK(parsed.entries.at(name).type == entry.type);
    CHECK(parsed.entries.at(name).shape == entry.shape);
  }
}

/// What is no UTF-8: a byte alone, a character cut off, one longer than it need be, a surrogate.
const std::array<std::string, 5> kTextsNotUtf8{"\x80", "name\xff", "\xe2\x82", "\xc0\xaf",
                                               "\xed\xa0\x80"};

const std::vector<std::string> kOddTensorNames{"",
                                               " ",
                                               "a \"quoted\" name",
                                               R"(back\slash\\)",
                                               "line\nreturn\rtab\t\b\f",
                                               "\x01\x1f\x7f",
                                               "nul\0inside"s,
                                               "/",
                                               "\u00e9\u6f22\U0001F600",
                                               "\ufeff\u2028",
                                               "{\"dtype\":[,",
                                               "__metadata",
                                               "__metadata__ ",
                                               std::string(5000, 'x')};

}  // namespace

TEST_CASE("a head is printed byte by byte as the reference does", "[train][safetensors]") {
  using safetensors::place;
  using safetensors::print_header;
  CHECK(print_header({}, {}) == "\x08\0\0\0\0\0\0\0{}      "s);
  CHECK(print_header(place({{"a", entry_of(DType::F32, {2, 3})},
                            {"b", entry_of(DType::I64, {2})},
                            {"c", entry_of(DType::Bool, {})}}),
                     {{"format", "pt"}}) ==
        "\xc8\0\0\0\0\0\0\0"s
        R"({"__metadata__":{"format":"pt"},)"
        R"("b":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
        R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[16,40]},)"
        R"("c":{"dtype":"BOOL","shape":[],"data_offsets":[40,41]}}  )");
  CHECK(print_header(place({{"quote\" back\\slash", entry_of(DType::U8, {1})},
                            {"tab\t nl\n \x01\x1f\x7f \b\f\r /", entry_of(DType::U8, {1})},
                            {"\u00e9\u6f22\U0001F600", entry_of(DType::U8, {0})}}),
                     {}) ==
        "\xd8\0\0\0\0\0\0\0"s
        R"({"quote\" back\\slash":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
        R"("tab\t nl\n \u0001\u001f)"
        "\x7f"
        R"( \b\f\r /":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
        "\"\u00e9\u6f22\U0001F600\""
        R"(:{"dtype":"U8","shape":[0],"data_offsets":[2,2]}} )");
}

TEST_CASE("a head has each length, filled to a multiple of 8 bytes", "[train][safetensors]") {
  for (std::size_t length = 0; length < 16; ++length) {
    const std::string text(length, 'x');
    const auto json = R"({"__metadata__":{"k":")" + text + R"("}})";
    const auto filled = (json.size() + 7) / 8 * 8;
    CHECK(safetensors::print_header({}, {{"k", text}}) ==
          length_bytes_of(filled) + json + std::string(filled - json.size(), ' '));
  }
}

TEST_CASE("tensors are placed by type, then by name, and aligned", "[train][safetensors]") {
  std::map<std::string, safetensors::Entry> entries;
  std::vector<std::string> expected;
  for (std::size_t at = 0; at < kHeaderTypes.size(); ++at) {
    for (const auto* which : {".b", ".a", ".B"}) {
      // The smallest type has the first name.
      entries[std::string(1, static_cast<char>('a' + at)) + which] =
          entry_of(kHeaderTypes[at], {3});
    }
  }
  for (std::size_t at = kHeaderTypes.size(); at-- > 0;) {
    for (const auto* which : {".B", ".a", ".b"})
      expected.push_back(std::string(1, static_cast<char>('a' + at)) + which);
  }
  std::vector<std::string> found;
  std::uint64_t end = 0;
  for (const auto& [name, entry] : safetensors::place(entries)) {
    CAPTURE(name);
    found.push_back(name);
    CHECK(entry.type == entries.at(name).type);
    CHECK(entry.shape == entries.at(name).shape);
    CHECK(entry.begin == end);
    CHECK(entry.bytes() == 3 * safetensors::size_of(entry.type));
    CHECK(entry.begin % safetensors::size_of(entry.type) == 0);
    end = entry.end;
  }
  CHECK(found == expected);
  CHECK(safetensors::place({}).empty());
}

TEST_CASE("the entries of a file get places of their own when they are placed again",
          "[train][safetensors]") {
  const auto parsed =
      safetensors::parse_header(R"({"z":{"dtype":"F64","shape":[1],"data_offsets":[3,11]},)"
                                R"("a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
                                11);
  CHECK(flat_entries(parsed.entries) ==
        FlatEntries{{"a", {"U8", {3}, 0, 3}}, {"z", {"F64", {1}, 3, 11}}});
  const auto placed = safetensors::place(parsed.entries);
  REQUIRE(placed.size() == 2);
  CHECK(placed[0].first == "z");
  CHECK(flat_entries(placed) == FlatEntries{{"a", {"U8", {3}, 8, 11}}, {"z", {"F64", {1}, 0, 8}}});
}

TEST_CASE("names and metadata are read as they were printed", "[train][safetensors]") {
  std::map<std::string, safetensors::Entry> all;
  std::map<std::string, std::string> metadata;
  for (const auto& name : kOddTensorNames) {
    CAPTURE(name);
    check_printed_parses({{name, entry_of(DType::BF16, {3})}}, {});
    check_printed_parses({}, {{name, "text"}});
    check_printed_parses({}, {{"key", name}});
    all.emplace(name, entry_of(DType::I32, {2}));
    metadata.emplace(name, name);
  }
  metadata.emplace("__metadata__", "__metadata__");  // a key like others there
  check_printed_parses(all, metadata);
}

TEST_CASE("random heads are read as they were printed", "[train][safetensors]") {
  std::mt19937_64 random(20240229);
  const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random() % end); };
  const auto text = [&] {
    auto made = kOddTensorNames[below(kOddTensorNames.size() - 1)];
    for (auto left = below(12); left > 0; --left) made.push_back(static_cast<char>(below(128)));
    return made == "__metadata__" ? "other"s : made;
  };
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    std::map<std::string, safetensors::Entry> entries;
    for (auto left = below(20); left > 0; --left) {
      std::vector<std::int64_t> shape(below(5));
      for (auto& size : shape) size = static_cast<std::int64_t>(below(7));
      entries[text()] = entry_of(kHeaderTypes[below(kHeaderTypes.size())], shape);
    }
    std::map<std::string, std::string> metadata;
    for (auto left = below(4); left > 0; --left) metadata[text()] = text();
    check_printed_parses(entries, metadata);
  }
}

TEST_CASE("names and metadata that cannot be printed are refused", "[train][safetensors]") {
  using safetensors::print_header;
  const auto tensor = entry_of(DType::U8, {0});
  for (const auto& text : kTextsNotUtf8) {
    CAPTURE(text);
    CHECK_THROWS_AS(print_header({{text, tensor}}, {}), std::invalid_argument);
    CHECK_THROWS_AS(print_header({{"fine", tensor}, {"a" + text + "b", tensor}}, {}),
                    std::invalid_argument);
    CHECK_THROWS_AS(print_header({}, {{text, "fine"}}), std::invalid_argument);
    CHECK_THROWS_AS(print_header({}, {{"fine", text}}), std::invalid_argument);
  }
  CHECK_THROWS_AS(print_header({{"__metadata__", tensor}}, {}), std::invalid_argument);
  CHECK_THROWS_AS(print_header({{"__metadata__", tensor}}, {{"format", "pt"}}),
                  std::invalid_argument);
}

TEST_CASE("a head that no reader would take is not printed", "[train][safetensors]") {
  const std::string text(safetensors::kMostHeaderBytes, 'x');
  CHECK_THROWS_AS(safetensors::print_header({}, {{"k", text}}), std::invalid_argument);
}
