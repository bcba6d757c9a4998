#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "safetensors/header.hpp"

/// What the tests of heads of safetensors have alike.
namespace troupe::testing {

namespace safetensors = train::safetensors;
using safetensors::DType;

/// An entry that can be compared and printed.
using FlatEntry = std::tuple<std::string, std::vector<std::int64_t>, std::uint64_t, std::uint64_t>;
using FlatEntries = std::map<std::string, FlatEntry>;

inline FlatEntry flat_entry(const safetensors::Entry& entry) {
  return {std::string(safetensors::name_of(entry.type)), entry.shape, entry.begin, entry.end};
}

template <typename Entries>  // a Header's, or those that have their place
FlatEntries flat_entries(const Entries& entries) {
  FlatEntries flat;
  for (const auto& [name, entry] : entries) flat.emplace(name, flat_entry(entry));
  return flat;
}

inline safetensors::Entry entry_of(DType type, std::vector<std::int64_t> shape) {
  safetensors::Entry entry;
  entry.type = type;
  entry.shape = std::move(shape);
  return entry;
}

inline std::string length_bytes_of(std::uint64_t number) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(number >> shift));
  return bytes;
}

/// The head that the bytes of a whole file begin with.
inline safetensors::Header head_of_file(std::string_view file) {
  const auto length =
      safetensors::header_length(file.substr(0, safetensors::kLengthBytes), file.size());
  const auto rest = file.substr(safetensors::kLengthBytes);
  return safetensors::parse_header(rest.substr(0, length), rest.size() - length);
}

/// Where the values end.
inline std::uint64_t end_of_values(const safetensors::Placed& placed) {
  return placed.empty() ? 0 : placed.back().second.end;
}

/// A head of one tensor, "layer.weight", with the entry given.
inline std::string one_tensor(const std::string& entry) {
  return R"({"layer.weight":)" + entry + "}";
}

/// A head of the same tensor, with the values of the keys of its entry given.
inline std::string one_tensor_of(const std::string& dtype, const std::string& shape,
                                 const std::string& offsets) {
  return one_tensor(R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" +
                    offsets + "}");
}

/// A head of two tensors of bytes.
inline std::string two_tensors(int first_begin, int first_end, int second_begin, int second_end) {
  const auto entry = [](int begin, int end) {
    return R"({"dtype":"U8","shape":[)" + std::to_string(end - begin) + R"(],"data_offsets":[)" +
           std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  return R"({"tensor.one":)" + entry(first_begin, first_end) + R"(,"tensor.two":)" +
         entry(second_begin, second_end) + "}";
}

inline const std::vector<DType> kHeaderTypes{DType::Bool,   DType::U8,  DType::I8,  DType::F8E5M2,
                                             DType::F8E4M3, DType::I16, DType::U16, DType::F16,
                                             DType::BF16,   DType::I32, DType::U32, DType::F32,
                                             DType::C64,    DType::F64, DType::I64, DType::U64};

}  // namespace troupe::testing
