// A libFuzzer target: arbitrary bytes as a file of safetensors, as the head of one, and as the
// index of several. Not part of the build. To run it, from the root of the tree:
//
//   clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
//     -I train/src -I runtime/src -I runtime/include tests/train/safetensors/fuzz_header.cpp \
//     train/src/safetensors/header.cpp train/src/json/document.cpp runtime/src/config/name.cpp \
//     runtime/src/api/errors.cpp -lfmt -o /tmp/fuzz_header
//   mkdir -p /tmp/corpus && /tmp/fuzz_header -max_total_time=60 -max_len=4096 /tmp/corpus
//
// What can be read must be printed so that it is read again as the same; else the target aborts.
// Errors of other kinds than the functions name end it too. It starts from a few valid files, of
// which it writes the missing ones into the corpus folder.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "safetensors/header.hpp"

namespace {

namespace safetensors = troupe::train::safetensors;
using safetensors::DType;

void expect(bool holds) {
  if (!holds) std::abort();
}

std::uint64_t number_of(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t at = bytes.size(); at-- > 0;)
    number = number << 8 | static_cast<unsigned char>(bytes[at]);
  return number;
}

std::string bytes_of_number(std::uint64_t number) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(number >> shift));
  return bytes;
}

/// What holds of each head that can be read, beside the values that follow it.
void check_entries(const safetensors::Header& header, std::uint64_t value_bytes) {
  std::uint64_t sum = 0;
  for (const auto& [name, entry] : header.entries) {
    expect(name != "__metadata__");
    expect(entry.begin <= entry.end && entry.end <= value_bytes);
    expect(safetensors::bytes_of(entry.type, entry.shape) == entry.bytes());
    sum += entry.bytes();
  }
  expect(sum == value_bytes);
}

/// The head, with the entries at their places, is read as what was printed.
void print_again(const safetensors::Header& header, std::uint64_t value_bytes) {
  const auto placed = safetensors::place(header.entries);
  expect(placed.size() == header.entries.size());
  expect(placed.empty() || placed.back().second.end == value_bytes);
  std::string head;
  try {
    head = safetensors::print_header(placed, header.metadata);
  } catch (const std::invalid_argument&) {
    return;
  }
  const auto length = safetensors::header_length(head.substr(0, safetensors::kLengthBytes),
                                                 head.size() + value_bytes);
  expect(length % 8 == 0 && head.size() == safetensors::kLengthBytes + length);
  // Not caught: a FormatError here is one of print_header.
  const auto again = safetensors::parse_header(
      std::string_view(head).substr(safetensors::kLengthBytes), value_bytes);
  expect(again.metadata == header.metadata && again.entries.size() == placed.size());
  for (const auto& [name, entry] : placed) {
    const auto found = again.entries.find(name);
    const auto& before = header.entries.at(name);
    expect(found != again.entries.end());
    expect(found->second.type == before.type && found->second.shape == before.shape);
    expect(found->second.begin == entry.begin && found->second.end == entry.end);
  }
}

void visit_head(std::string_view json, std::uint64_t value_bytes) {
  std::optional<safetensors::Header> header;
  try {
    header = safetensors::parse_header(json, value_bytes);
  } catch (const safetensors::FormatError&) {
    return;
  }
  check_entries(*header, value_bytes);
  print_again(*header, value_bytes);
}

void visit_file(std::string_view file) {
  std::uint64_t length = 0;
  try {
    length = safetensors::header_length(file.substr(0, safetensors::kLengthBytes), file.size());
  } catch (const safetensors::FormatError&) {
    return;
  }
  const auto rest = file.substr(safetensors::kLengthBytes);
  expect(length <= rest.size());
  visit_head(rest.substr(0, length), rest.size() - length);
}

/// A head without its file: 8 bytes that say how long the values would be, then the JSON, which
/// can have any length.
void visit_head_alone(std::string_view bytes) {
  if (bytes.size() < safetensors::kLengthBytes) return;
  visit_head(bytes.substr(safetensors::kLengthBytes),
             number_of(bytes.substr(0, safetensors::kLengthBytes)));
}

void visit_index(std::string_view json) {
  try {
    for (const auto& [name, file] : safetensors::parse_index(json)) {
      expect(!file.empty() && file != "." && file != "..");
      expect(file.find('/') == std::string::npos);
    }
  } catch (const safetensors::FormatError&) {
  }
}

safetensors::Entry sample_entry(DType type, std::vector<std::int64_t> shape) {
  safetensors::Entry entry;
  entry.type = type;
  entry.shape = std::move(shape);
  return entry;
}

/// Whole files, the same heads as visit_head_alone takes them, and an index.
std::vector<std::string> sample_inputs() {
  std::vector<std::string> inputs;
  const auto add = [&](const std::map<std::string, safetensors::Entry>& entries,
                       const std::map<std::string, std::string>& metadata) {
    const auto placed = safetensors::place(entries);
    const auto head = safetensors::print_header(placed, metadata);
    const auto value_bytes = placed.empty() ? 0 : placed.back().second.end;
    inputs.push_back(head + std::string(value_bytes, '\0'));
    inputs.push_back(bytes_of_number(value_bytes) + head.substr(safetensors::kLengthBytes));
  };
  add({}, {});
  add({{"w", sample_entry(DType::F32, {2, 3})}}, {});
  add({{"scalar", sample_entry(DType::BF16, {})}, {"none", sample_entry(DType::I64, {4, 0})}},
      {{"format", "pt"}});
  add({{"a\n\"\\", sample_entry(DType::U8, {3})},
       {"\u00e9", sample_entry(DType::Bool, {1, 1, 1})},
       {"b", sample_entry(DType::F8E4M3, {2})}},
      {{"", "\u6f22"}, {"k", "\x01"}});
  inputs.push_back(
      R"({"metadata":{"total_size":8},"weight_map":{"w":"model-00001-of-00001.safetensors"}})");
  return inputs;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::filesystem::path corpus((*argv)[*argc - 1]);
  if (!std::filesystem::is_directory(corpus)) return 0;
  int number = 0;
  for (const auto& input : sample_inputs()) {
    std::ofstream(corpus / ("sample-" + std::to_string(number++)), std::ios::binary) << input;
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  visit_file(bytes);
  visit_head_alone(bytes);
  visit_index(bytes);
  return 0;
}
