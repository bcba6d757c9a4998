#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The head of a file of safetensors: 8 bytes that say how long the following JSON is,
/// little-endian, then the JSON, which says where in the rest of the file each tensor's values are.
/// Pure functions.
namespace troupe::train::safetensors {

/// In the order of the reference implementation: files have tensors of a later type first.
enum class DType : std::uint8_t {
  Bool,
  U8,
  I8,
  F8E5M2,
  F8E4M3,
  F8E8M0,
  F8E4M3Fnuz,
  F8E5M2Fnuz,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64,
};

std::string_view name_of(DType type);  ///< "BF16"
std::uint64_t size_of(DType type);     ///< bytes of one value

/// A tensor whose values are the bytes [begin, end) of what follows the head.
struct Entry {
  DType type = DType::F32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t bytes() const { return end - begin; }
};

struct Header {
  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> metadata;
};

/// The bytes before the JSON, and the most that the JSON may have.
inline constexpr std::size_t kLengthBytes = 8;
inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;

/// What is wrong with a file, without the file's name.
class FormatError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The length that `bytes`, 8 of them, say. Throws FormatError where no file of `file_bytes` bytes
/// can begin so.
std::uint64_t header_length(std::string_view bytes, std::uint64_t file_bytes);

/// Throws FormatError unless the entries lie one behind the other, without a hole, from the first
/// to the last of the `value_bytes` bytes that follow the head, and each has as many as its type
/// and shape say.
Header parse_header(std::string_view json, std::uint64_t value_bytes);

/// A name and its entry, in the order in which the values stand in the file.
using Placed = std::vector<std::pair<std::string, Entry>>;
/// Gives each entry its place: those of large types first, so that all are aligned, then by name.
Placed place(const std::map<std::string, Entry>& entries);
/// The head of a file: the length, and the JSON, filled with spaces to a multiple of 8 bytes.
/// Throws std::invalid_argument for names and metadata that are not UTF-8, for an entry of the name
/// "__metadata__", and where the JSON would be too long.
std::string print_header(const Placed& entries, const std::map<std::string, std::string>& metadata);

/// The bytes of a tensor. Empty: more than there can be.
std::optional<std::uint64_t> bytes_of(DType type, const std::vector<std::int64_t>& shape);

/// The names of tensors, and the files beside the index in which they are: the "weight_map" of the
/// index of several files. Throws FormatError; also for a name of a file that is a path.
std::map<std::string, std::string> parse_index(std::string_view json);

}  // namespace troupe::train::safetensors
