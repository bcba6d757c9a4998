// The head of files of safetensors. The exact texts are what the reference implementation, 0.8,
// writes for the same tensors.
#include "safetensors/header.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

using namespace std::string_literals;
namespace safetensors = troupe::train::safetensors;
using safetensors::DType;

namespace {

/// A text that is to be refused, and words of the error.
struct RefusedHead {
  std::string json;
  std::uint64_t value_bytes;
  std::vector<std::string> words;
};

/// An entry that can be compared and printed.
using FlatEntry = std::tuple<std::string, std::vector<std::int64_t>, std::uint64_t, std::uint64_t>;
using FlatEntries = std::map<std::string, FlatEntry>;

FlatEntry flat_entry(const safetensors::Entry& entry) {
  return {std::string(safetensors::name_of(entry.type)), entry.shape, entry.begin, entry.end};
}

template <typename Entries>  // a Header's, or those that have their place
FlatEntries flat_entries(const Entries& entries) {
  FlatEntries flat;
  for (const auto& [name, entry] : entries) flat.emplace(name, flat_entry(entry));
  return flat;
}

safetensors::Entry entry_of(DType type, std::vector<std::int64_t> shape) {
  safetensors::Entry entry;
  entry.type = type;
  entry.shape = std::move(shape);
  return entry;
}

std::string length_bytes_of(std::uint64_t number) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(number >> shift));
  return bytes;
}

/// The head that the bytes of a whole file begin with.
safetensors::Header head_of_file(std::string_view file) {
  const auto length =
      safetensors::header_length(file.substr(0, safetensors::kLengthBytes), file.size());
  const auto rest = file.substr(safetensors::kLengthBytes);
  return safetensors::parse_header(rest.substr(0, length), rest.size() - length);
}

/// False where the file is refused as it should be. Whatever else is thrown ends the test.
bool is_readable_file(std::string_view file) {
  try {
    head_of_file(file);
    return true;
  } catch (const safetensors::FormatError& error) {
    if (std::string_view(error.what()).empty()) FAIL("an error without a text");
    return false;
  }
}

/// Where the values end.
std::uint64_t end_of_values(const safetensors::Placed& placed) {
  return placed.empty() ? 0 : placed.back().second.end;
}

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

void check_error_words(const std::string& error, const RefusedHead& refused) {
  CHECK(!error.empty());
  for (const auto& word : refused.words) CHECK_THAT(error, Catch::Contains(word));
}

void check_head_refused(const RefusedHead& refused) {
  CAPTURE(refused.json.substr(0, 300), refused.value_bytes);
  try {
    safetensors::parse_header(refused.json, refused.value_bytes);
    FAIL_CHECK("parsed");
  } catch (const safetensors::FormatError& error) {
    check_error_words(error.what(), refused);
  }
}

void check_index_refused(const RefusedHead& refused) {
  CAPTURE(refused.json);
  try {
    safetensors::parse_index(refused.json);
    FAIL_CHECK("parsed");
  } catch (const safetensors::FormatError& error) {
    check_error_words(error.what(), refused);
  }
}

/// A head of one tensor, "layer.weight", with the entry given.
std::string one_tensor(const std::string& entry) { return R"({"layer.weight":)" + entry + "}"; }

/// Likewise, of 24 bytes, with the values of its keys given.
std::string one_tensor_of(const std::string& dtype, const std::string& shape,
                          const std::string& offsets) {
  return one_tensor(R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" +
                    offsets + "}");
}

/// A head of two tensors of bytes.
std::string two_tensors(int first_begin, int first_end, int second_begin, int second_end) {
  const auto entry = [](int begin, int end) {
    return R"({"dtype":"U8","shape":[)" + std::to_string(end - begin) + R"(],"data_offsets":[)" +
           std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  return R"({"tensor.one":)" + entry(first_begin, first_end) + R"(,"tensor.two":)" +
         entry(second_begin, second_end) + "}";
}

/// What is no UTF-8: a byte alone, a character cut off, one longer than it need be, a surrogate.
const std::array<std::string, 5> kTextsNotUtf8{"\x80", "name\xff", "\xe2\x82", "\xc0\xaf",
                                               "\xed\xa0\x80"};

const std::vector<DType> kHeaderTypes{DType::Bool,   DType::U8,  DType::I8,  DType::F8E5M2,
                                      DType::F8E4M3, DType::I16, DType::U16, DType::F16,
                                      DType::BF16,   DType::I32, DType::U32, DType::F32,
                                      DType::C64,    DType::F64, DType::I64, DType::U64};

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

TEST_CASE("a head that is no object of JSON is refused", "[train][safetensors]") {
  const auto good = one_tensor_of(R"("F32")", "[2,3]", "[0,24]");
  REQUIRE_NOTHROW(safetensors::parse_header(good, 24));
  const std::vector<RefusedHead> all{
      {"", 0, {}},
      {" ", 0, {}},
      {"[]", 0, {}},
      {"null", 0, {}},
      {"1", 0, {}},
      {R"("{}")", 0, {}},
      {" {}", 0, {}},
      {"\n{}", 0, {}},
      {"\xef\xbb\xbf{}", 0, {}},
      {"{", 0, {}},
      {"{}}", 0, {}},
      {"{}{}", 0, {}},
      {"{} x", 0, {}},
      {"{,}", 0, {}},
      {"{/* a comment */}", 0, {}},
      {"{} // a comment", 0, {}},
      {"{'a':1}", 0, {}},
      {"\0"s, 0, {}},
      {"{}\0"s, 0, {}},
      {"{}\0\0\0\0\0\0"s, 0, {}},
      {good + '\0', 24, {}},
      {good.substr(0, 1) + '\0' + good.substr(1), 24, {}},
      {"{\"layer\0weight\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"s, 0, {}},
      {"{\"\xff\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, {}},
      {R"({"\ud800":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0, {}},
      {one_tensor_of(R"("U8")", "[0,]", "[0,0]"), 0, {}},
      {one_tensor_of(R"("U8")", "[00]", "[0,0]"), 0, {}},
      {one_tensor_of(R"("U8")", "[+0]", "[0,0]"), 0, {}},
      {one_tensor_of(R"("U8")", "[1e999]", "[0,0]"), 0, {}},
      {R"({"layer.weight":)" + std::string(100'000, '['), 0, {}},
  };
  for (const auto& each : all) check_head_refused(each);
}

TEST_CASE("a head with a key that stands twice is refused", "[train][safetensors]") {
  const auto bytes = R"("layer.weight":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})"s;
  const auto escaped = R"("l\u0061yer.weight":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})"s;
  const std::vector<RefusedHead> all{
      {"{" + bytes + "," + bytes + "}", 0, {"twice", "layer.weight"}},
      {"{" + bytes + "," + escaped + "}", 0, {"twice", "layer.weight"}},
      {one_tensor(R"({"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]})"),
       0,
       {"twice", "dtype"}},
      {one_tensor(R"({"dtype":"U8","shape":[0],"shape":[0],"data_offsets":[0,0]})"),
       0,
       {"twice", "shape"}},
      {one_tensor(R"({"dtype":"U8","shape":[0],"data_offsets":[0,0],"data_offsets":[0,0]})"),
       0,
       {"twice", "data_offsets"}},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, {"twice", "__metadata__"}},
      {R"({"__metadata__":{"producer":"a","producer":"a"}})", 0, {"twice", "producer"}},
  };
  for (const auto& each : all) check_head_refused(each);
}

TEST_CASE("an entry that lacks a key, or has another type there, is refused",
          "[train][safetensors]") {
  const std::vector<std::string> type{"layer.weight", "dtype"};
  const std::vector<std::string> shape{"layer.weight", "shape"};
  const std::vector<std::string> offsets{"layer.weight", "data_offsets"};
  std::vector<RefusedHead> all{
      {one_tensor("null"), 0, {"layer.weight"}},
      {one_tensor("[]"), 0, {"layer.weight"}},
      {one_tensor("\"F32\""), 0, {"layer.weight"}},
      {one_tensor("{}"), 0, {"layer.weight"}},
      {one_tensor(R"({"shape":[2,3],"data_offsets":[0,24]})"), 24, type},
      {one_tensor(R"({"dtype":"F32","data_offsets":[0,24]})"), 24, shape},
      {one_tensor(R"({"dtype":"F32","shape":[2,3]})"), 24, offsets},
      {one_tensor(R"({"DTYPE":"F32","shape":[2,3],"data_offsets":[0,24]})"), 24, type},
  };
  for (const auto* value : {"null", "true", "11", "[]", "[\"F32\"]", "{}"})
    all.push_back({one_tensor_of(value, "[2,3]", "[0,24]"), 24, type});
  for (const auto& each : all) check_head_refused(each);
}

TEST_CASE("a shape and offsets that are no lists of whole numbers are refused",
          "[train][safetensors]") {
  // The numbers would be right were they not of another kind.
  const std::vector<std::string> shape{"layer.weight", "shape"};
  const std::vector<std::string> offsets{"layer.weight", "data_offsets"};
  std::vector<RefusedHead> all{
      {one_tensor_of(R"("U8")", "[1e3]", "[0,1000]"), 1000, shape},
      {one_tensor_of(R"("U8")", "[1000]", "[0,1e3]"), 1000, offsets},
  };
  for (const auto* value :
       {"null", "6", "\"6\"", "{}", "{\"0\":6}", "[[6]]", "[-6]", "[-2,-3]", "[6.0]", "[6.5]",
        "[6e0]", "[\"6\"]", "[null,6]", "[true,6]", "[6,{}]", "[9223372036854775808]",
        "[18446744073709551615]", "[18446744073709551622]", "[100000000000000000000000000000]"})
    all.push_back({one_tensor_of(R"("F32")", value, "[0,24]"), 24, shape});
  for (const auto* value : {"null",
                            "24",
                            "\"0,24\"",
                            "{}",
                            "{\"begin\":0,\"end\":24}",
                            "[]",
                            "[24]",
                            "[0,12,24]",
                            "[[0,24]]",
                            "[\"0\",24]",
                            "[0,\"24\"]",
                            "[0,24.0]",
                            "[0.0,24]",
                            "[0,2.4e1]",
                            "[null,24]",
                            "[false,24]",
                            "[-1,23]",
                            "[-24,0]",
                            "[0,-24]",
                            "[0,18446744073709551640]",
                            "[9223372036854775808,9223372036854775832]"})
    all.push_back({one_tensor_of(R"("F32")", "[2,3]", value), 24, offsets});
  for (const auto& each : all) check_head_refused(each);
}

TEST_CASE("a dtype that is not known is named with its tensor", "[train][safetensors]") {
  for (const std::string name :
       {"F4", "F6_E2M3", "F8_E9M9", "F128", "f32", "F32 ", "float32", "C128", "BFLOAT16"}) {
    check_head_refused(
        {one_tensor_of('"' + name + '"', "[2,3]", "[0,24]"), 24, {"layer.weight", name}});
  }
  check_head_refused({one_tensor_of(R"("")", "[2,3]", "[0,24]"), 24, {"layer.weight"}});
  check_head_refused({one_tensor_of(R"("F32\u0000")", "[2,3]", "[0,24]"), 24, {"layer.weight"}});
}

TEST_CASE("values that overlap, have holes, or do not fill the file are refused",
          "[train][safetensors]") {
  REQUIRE_NOTHROW(safetensors::parse_header(two_tensors(0, 8, 8, 16), 16));
  REQUIRE_NOTHROW(safetensors::parse_header(two_tensors(8, 16, 0, 8), 16));
  const std::vector<RefusedHead> all{
      {one_tensor_of(R"("U8")", "[8]", "[8,0]"), 8, {"layer.weight"}},
      {one_tensor_of(R"("U8")", "[0]", "[8,0]"), 8, {"layer.weight"}},
      // In the order of the file the second one of two, whichever name it has.
      {two_tensors(0, 8, 7, 15), 15, {"tensor.two"}},
      {two_tensors(7, 15, 0, 8), 15, {"tensor.one"}},
      {two_tensors(0, 8, 2, 4), 8, {"tensor.two"}},
      {two_tensors(0, 8, 4, 4), 8, {"tensor.two"}},
      {two_tensors(0, 8, 0, 8), 8, {"tensor."}},
      {two_tensors(0, 4, 0, 8), 8, {"tensor.two"}},
      {two_tensors(0, 8, 9, 17), 17, {"tensor.two"}},
      {two_tensors(9, 17, 0, 8), 17, {"tensor.one"}},
      {two_tensors(1, 8, 8, 16), 16, {"tensor.one"}},
      {two_tensors(8, 16, 1, 8), 16, {"tensor.two"}},
      {one_tensor_of(R"("U8")", "[0]", "[8,8]"), 8, {"layer.weight"}},
      {two_tensors(0, 8, 8, 16), 17, {"longer"}},
      {two_tensors(0, 8, 8, 16), 1'000'000, {"longer"}},
      {two_tensors(8, 16, 0, 8), 17, {"longer"}},
      {"{}", 1, {"longer"}},
      {one_tensor_of(R"("U8")", "[0]", "[0,0]"), 8, {"longer"}},
      {two_tensors(0, 8, 8, 16), 15, {"cut off"}},
      {two_tensors(0, 8, 8, 16), 8, {"cut off"}},
      {two_tensors(8, 16, 0, 8), 15, {"cut off"}},
      {two_tensors(0, 8, 8, 16), 0, {"cut off"}},
      {one_tensor_of(R"("U8")", "[9223372036854775807]", "[0,9223372036854775807]"),
       10,
       {"cut off"}},
  };
  for (const auto& each : all) check_head_refused(each);
}

TEST_CASE("a tensor whose bytes are not those of its shape is refused", "[train][safetensors]") {
  const auto entry = [](const char* dtype, const char* shape, const char* offsets) {
    return one_tensor_of('"' + std::string(dtype) + '"', shape, offsets);
  };
  const std::vector<std::string> name{"layer.weight"};
  const std::vector<RefusedHead> all{
      {entry("F32", "[2,3]", "[0,23]"), 23, name},
      {entry("F32", "[2,3]", "[0,25]"), 25, name},
      {entry("F32", "[2,3]", "[0,6]"), 6, name},
      {entry("F32", "[2,3]", "[0,0]"), 0, name},
      {entry("F32", "[3]", "[0,8]"), 8, name},
      {entry("F64", "[2,3]", "[0,24]"), 24, name},
      {entry("F16", "[2,3]", "[0,24]"), 24, name},
      {entry("F32", "[]", "[0,0]"), 0, name},
      {entry("F32", "[0]", "[0,4]"), 4, name},
      {entry("F32", "[2,0]", "[0,8]"), 8, name},
      // Products that would be right modulo 2^64.
      {entry("U8", "[4294967296,4294967296]", "[0,0]"), 0, name},
      {entry("F32", "[4294967296,4294967296]", "[0,0]"), 0, name},
      {entry("F64", "[2305843009213693952]", "[0,0]"), 0, name},
      {entry("F64", "[2305843009213693953]", "[0,8]"), 8, name},
      {entry("U8", "[9223372036854775807,9223372036854775807]", "[0,1]"), 1, name},
  };
  for (const auto& each : all) check_head_refused(each);
}

TEST_CASE("metadata that are not texts are refused", "[train][safetensors]") {
  for (const auto* value : {"1", "true", "null", "[]", "[\"a\"]", "{}", "{\"a\":\"b\"}"}) {
    const auto metadata = R"({"__metadata__":{"fine":"yes","producer":)"s + value + "}}";
    check_head_refused({metadata, 0, {"producer"}});
  }
  for (const auto* value : {"1", "\"pt\"", "[]", "[\"a\"]", "true"})
    check_head_refused({R"({"__metadata__":)"s + value + "}", 0, {"__metadata__"}});
  // No tensor can have that name: its entry has a list where a text is expected.
  check_head_refused(
      {R"({"__metadata__":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0, {"__metadata__"}});
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

TEST_CASE("a file that ends too early, or with a byte changed, is read or refused",
          "[train][safetensors]") {
  const auto placed = safetensors::place(
      {{"w", entry_of(DType::F32, {2, 3})}, {"\u00e9", entry_of(DType::BF16, {})}});
  const auto head = safetensors::print_header(placed, {{"k", "v"}});
  const auto file = head + std::string(end_of_values(placed), '\0');
  REQUIRE(is_readable_file(file));
  for (std::size_t length = 0; length < file.size(); ++length) {
    CAPTURE(length);
    CHECK(!is_readable_file(std::string_view(file).substr(0, length)));
  }
  const auto json = std::string_view(head).substr(safetensors::kLengthBytes);
  const auto json_end = json.rfind('}') + 1;
  for (std::size_t length = 0; length <= json.size(); ++length) {
    CAPTURE(length);
    const auto cut =
        length_bytes_of(length) + std::string(json.substr(0, length)) + file.substr(head.size());
    CHECK(is_readable_file(cut) == (length >= json_end));  // the spaces may lack
  }
  std::size_t readable = 0;
  for (std::size_t at = 0; at < head.size(); ++at) {
    CAPTURE(at);
    for (int change = 1; change < 256; ++change) {
      auto changed = file;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const bool read = is_readable_file(changed);
      if (at < safetensors::kLengthBytes && read) FAIL_CHECK("read with the length changed");
      if (read) ++readable;
    }
  }
  CHECK(readable > 100);  // as with other letters in the name
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

TEST_CASE("what is no index of several files is refused", "[train][safetensors]") {
  const auto index = [](const std::string& map) {
    return R"({"metadata":{"total_size":8},"weight_map":)" + map + "}";
  };
  std::vector<RefusedHead> all{
      {"", 0, {}},
      {"null", 0, {}},
      {"[]", 0, {}},
      {"{", 0, {}},
      {R"("weight_map")", 0, {}},
      {index(R"({"layer.weight":"a.safetensors"})") + '\0', 0, {}},
      {index(R"({"layer.weight":"a.safetensors"})") + "}", 0, {}},
      {"{}", 0, {"weight_map"}},
      {R"({"metadata":{"weight_map":{}}})", 0, {"weight_map"}},
      {index("null"), 0, {"weight_map"}},
      {index("[]"), 0, {"weight_map"}},
      {index(R"(["a.safetensors"])"), 0, {"weight_map"}},
      {index(R"("a.safetensors")"), 0, {"weight_map"}},
      {R"({"weight_map":{"a":"b"},"weight_map":{"a":"b"}})", 0, {"twice", "weight_map"}},
      {index(R"({"layer.weight":"a","layer.weight":"b"})"), 0, {"twice", "layer.weight"}},
  };
  for (const auto* file :
       {"null", "1", "true", "[]", "[\"a.safetensors\"]", "{}", R"("")", R"(".")", R"("..")",
        R"("/")", R"("/a.safetensors")", R"("../a.safetensors")", R"("b/a.safetensors")",
        R"("./a.safetensors")", R"("a.safetensors/")", R"("b\/a.safetensors")",
        R"("..\u002fa.safetensors")"})
    all.push_back(
        {index(R"({"fine":"a.safetensors","layer.weight":)"s + file + "}"), 0, {"layer.weight"}});
  for (const auto& each : all) check_index_refused(each);
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

TEST_CASE("levels without end are refused", "[train][safetensors]") {
  for (const std::string open : {"[", "{\"\":"}) {
    std::string json = "{\"layer.weight\":";
    for (int i = 0; i < 1'000'000; ++i) json += open;
    check_head_refused({json, 0, {"more than 64 levels"}});
  }
  check_head_refused({one_tensor(std::string(63, '[') + std::string(63, ']')), 0, {"object"}});
}

TEST_CASE("metadata may be null", "[train][safetensors]") {
  CHECK(safetensors::parse_header(R"({"__metadata__":null})", 0).metadata.empty());
}
