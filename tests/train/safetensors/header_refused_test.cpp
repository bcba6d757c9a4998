// Heads of files of safetensors, and indexes of several, that are refused.
#include "safetensors/header.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "safetensors/heads.hpp"

using namespace std::string_literals;
using namespace troupe::testing;

namespace {

/// A text that is to be refused, and words of the error.
struct RefusedHead {
  std::string json;
  std::uint64_t value_bytes;
  std::vector<std::string> words;
};

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

}  // namespace

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

TEST_CASE("levels without end are refused", "[train][safetensors]") {
  for (const std::string open : {"[", "{\"\":"}) {
    std::string json = "{\"layer.weight\":";
    for (int i = 0; i < 1'000'000; ++i) json += open;
    check_head_refused({json, 0, {"more than 64 levels"}});
  }
  check_head_refused({one_tensor(std::string(63, '[') + std::string(63, ']')), 0, {"object"}});
}
