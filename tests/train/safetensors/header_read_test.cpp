// Heads of files of safetensors, and indexes of several, that are read.
#include "safetensors/header.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "safetensors/heads.hpp"

using namespace std::string_literals;
using namespace troupe::testing;

TEST_CASE("types of safetensors have their names and sizes", "[train][safetensors]") {
  std::vector<std::pair<std::string, std::uint64_t>> found;
  for (const auto type : kHeaderTypes)
    found.emplace_back(safetensors::name_of(type), safetensors::size_of(type));
  CHECK(found == std::vector<std::pair<std::string, std::uint64_t>>{{"BOOL", 1},
                                                                    {"U8", 1},
                                                                    {"I8", 1},
                                                                    {"F8_E5M2", 1},
                                                                    {"F8_E4M3", 1},
                                                                    {"I16", 2},
                                                                    {"U16", 2},
                                                                    {"F16", 2},
                                                                    {"BF16", 2},
                                                                    {"I32", 4},
                                                                    {"U32", 4},
                                                                    {"F32", 4},
                                                                    {"C64", 8},
                                                                    {"F64", 8},
                                                                    {"I64", 8},
                                                                    {"U64", 8}});
}

TEST_CASE("the bytes of a tensor are counted, or are too many", "[train][safetensors]") {
  using safetensors::bytes_of;
  CHECK(bytes_of(DType::F32, {}) == 4u);
  CHECK(bytes_of(DType::BF16, {3, 5}) == 30u);
  CHECK(bytes_of(DType::F64, {0}) == 0u);
  CHECK(bytes_of(DType::F64, {7, 0}) == 0u);
  CHECK(bytes_of(DType::F64, {0, 7}) == 0u);
  CHECK(bytes_of(DType::U8, {std::int64_t{1} << 62}) == std::uint64_t{1} << 62);
  CHECK(bytes_of(DType::U8, {std::int64_t{1} << 32, std::int64_t{1} << 32}) == std::nullopt);
  CHECK(bytes_of(DType::F64, {std::int64_t{1} << 61}) == std::nullopt);
  CHECK(bytes_of(DType::F64, {(std::int64_t{1} << 61) + 1}) == std::nullopt);
}

TEST_CASE("the length of a head is read, or no file can have it", "[train][safetensors]") {
  using safetensors::FormatError;
  using safetensors::header_length;
  CHECK(header_length("\x08\0\0\0\0\0\0\0"s, 16) == 8);
  CHECK(header_length("\x04\x03\x02\x01\0\0\0\0"s, 1'000'000'000) == 0x01020304);
  CHECK(header_length("\xff\x80\0\0\0\0\0\0"s, 1'000'000) == 0x80ff);
  CHECK(header_length(length_bytes_of(safetensors::kMostHeaderBytes), 1'000'000'000) ==
        safetensors::kMostHeaderBytes);
  CHECK_THROWS_AS(header_length(length_bytes_of(safetensors::kMostHeaderBytes + 1), 1'000'000'000),
                  FormatError);
  for (std::uint64_t bytes = 0; bytes < 8; ++bytes) {
    CAPTURE(bytes);
    CHECK_THROWS_AS(header_length(std::string(bytes, '\0'), bytes), FormatError);
    CHECK_THROWS_AS(header_length(length_bytes_of(2), bytes), FormatError);
  }
  CHECK(header_length(length_bytes_of(100), 108) == 100);
  CHECK_THROWS_AS(header_length(length_bytes_of(100), 107), FormatError);
  CHECK_THROWS_AS(header_length(length_bytes_of(2), 8), FormatError);
  // Where a sum of the lengths would be small again.
  const auto most = ~std::uint64_t{0};
  for (const auto length : {most, most - 7, most / 2 + 1, std::uint64_t{1} << 32}) {
    CHECK_THROWS_AS(header_length(length_bytes_of(length), 1000), FormatError);
  }
}

TEST_CASE("a head may have scalars, tensors without values, and nothing at all",
          "[train][safetensors]") {
  CHECK(safetensors::parse_header("{}", 0).entries.empty());
  CHECK(safetensors::parse_header("{}      ", 0).entries.empty());
  CHECK(safetensors::parse_header(R"({"__metadata__":{}})", 0).metadata.empty());
  CHECK(flat_entries(
            safetensors::parse_header(one_tensor_of(R"("F16")", "[]", "[0,2]"), 2).entries) ==
        FlatEntries{{"layer.weight", {"F16", {}, 0, 2}}});
  CHECK(flat_entries(
            safetensors::parse_header(one_tensor_of(R"("F16")", "[4,0]", "[0,0]"), 0).entries) ==
        FlatEntries{{"layer.weight", {"F16", {4, 0}, 0, 0}}});
  // One without values at each place there can be, whatever the names are.
  for (const auto& head : {two_tensors(0, 8, 0, 0), two_tensors(0, 0, 0, 8),
                           two_tensors(0, 8, 8, 8), two_tensors(8, 8, 0, 8)}) {
    CAPTURE(head);
    CHECK(safetensors::parse_header(head, 8).entries.size() == 2);
  }
  CHECK(safetensors::parse_header(two_tensors(0, 0, 0, 0), 0).entries.size() == 2);
}

TEST_CASE("a head is read with spaces, escapes, and keys that are not known",
          "[train][safetensors]") {
  const auto parsed = safetensors::parse_header(
      "{ \"\\u00e9\\ud83d\\ude00\\n\" : {\n\t\"data_offsets\" : [ 4 , 28 ] , \"more\" : "
      "{\"x\":[null,-1.5e3]}, \"shape\":[2,3], \"dtype\":\"F32\"},\r\n"
      "\"\\/\":{\"dtype\":\"I\\u00332\",\"shape\":[1],\"data_offsets\":[0,4],\"other\":[]},"
      "\"__metadata__\":{\"b\":\"\\u0000\",\"\":\"\\\"\"}} \n ",
      28);
  CHECK(flat_entries(parsed.entries) ==
        FlatEntries{{"/", {"I32", {1}, 0, 4}}, {"\u00e9\U0001F600\n", {"F32", {2, 3}, 4, 28}}});
  CHECK(parsed.metadata == std::map<std::string, std::string>{{"", "\""}, {"b", "\0"s}});
  for (const auto type : kHeaderTypes) {
    const auto bytes = safetensors::size_of(type);
    const auto head = one_tensor_of('"' + std::string(safetensors::name_of(type)) + '"', "[]",
                                    "[0," + std::to_string(bytes) + "]");
    CHECK(safetensors::parse_header(head, bytes).entries.at("layer.weight").type == type);
  }
}

TEST_CASE("the index of several files says where each tensor is", "[train][safetensors]") {
  using Files = std::map<std::string, std::string>;
  CHECK(safetensors::parse_index(
            R"({"metadata":{"total_size":48,"more":[1.5]},"weight_map":{)"
            R"("b":"model-00002-of-00002.safetensors","a":"model-00001-of-00002.safetensors",)"
            R"("\u00e9\n\"":"model-00001-of-00002.safetensors"}})") ==
        Files{{"a", "model-00001-of-00002.safetensors"},
              {"b", "model-00002-of-00002.safetensors"},
              {"\u00e9\n\"", "model-00001-of-00002.safetensors"}});
  CHECK(
      safetensors::parse_index(R"({"metadata":{},"weight_map":{"a":"..a","b":"...","c":".b"}})") ==
      Files{{"a", "..a"}, {"b", "..."}, {"c", ".b"}});
}

TEST_CASE("a head of many tensors is read as fast as it is long", "[train][safetensors]") {
  constexpr int kTensors = 100'000;  // minutes, were the time to grow by the square
  std::map<std::string, safetensors::Entry> entries;
  for (int i = 0; i < kTensors; ++i)
    entries.emplace("layer." + std::to_string(i), entry_of(DType::F32, {2, 3}));
  const auto placed = safetensors::place(entries);
  const auto file = safetensors::print_header(placed, {}) + std::string(24 * kTensors, '\0');
  CHECK(head_of_file(file).entries.size() == kTensors);
}

TEST_CASE("metadata may be null", "[train][safetensors]") {
  CHECK(safetensors::parse_header(R"({"__metadata__":null})", 0).metadata.empty());
}
