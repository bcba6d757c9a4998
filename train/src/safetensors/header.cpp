#include "safetensors/header.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/name.hpp"
#include "json/document.hpp"

namespace troupe::train::safetensors {
namespace {

using nlohmann::json;

constexpr const char* kMetadata = "__metadata__";
constexpr std::size_t kAlignment = 8;

struct TypeFacts {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array<TypeFacts, 19> kTypes{{
    {"BOOL", 1},    {"U8", 1},          {"I8", 1},          {"F8_E5M2", 1}, {"F8_E4M3", 1},
    {"F8_E8M0", 1}, {"F8_E4M3FNUZ", 1}, {"F8_E5M2FNUZ", 1}, {"I16", 2},     {"U16", 2},
    {"F16", 2},     {"BF16", 2},        {"I32", 4},         {"U32", 4},     {"F32", 4},
    {"C64", 8},     {"F64", 8},         {"I64", 8},         {"U64", 8},
}};

const TypeFacts& facts_of(DType type) { return kTypes.at(static_cast<std::size_t>(type)); }

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw FormatError(fmt::format("its tensor '{}' {}", config::printable(name), why));
}

DType read_type(const std::string& name, const json& entry) {
  const auto found = entry.find("dtype");
  if (found == entry.end() || !found->is_string()) refuse(name, "has no text as 'dtype'");
  const auto& text = found->get_ref<const std::string&>();
  const auto at = std::ranges::find(kTypes, text, &TypeFacts::name);
  if (at == kTypes.end())
    refuse(name, fmt::format("has the dtype '{}', which LibTorch has no type for",
                             config::printable(text)));
  return static_cast<DType>(at - kTypes.begin());
}

/// The whole numbers of a list. Each is at most what std::int64_t holds.
std::vector<std::int64_t> read_numbers(const std::string& name, const json& entry,
                                       const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array())
    refuse(name, fmt::format("has no list as '{}'", key));
  std::vector<std::int64_t> numbers;
  for (const auto& item : *found) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() > kMost)
      refuse(name,
             fmt::format("has something else than whole numbers from 0 to {} in '{}'", kMost, key));
    numbers.push_back(item.get<std::int64_t>());
  }
  return numbers;
}

Entry read_entry(const std::string& name, const json& entry) {
  if (!entry.is_object()) refuse(name, "has no object, {\"dtype\": ...}, as its entry");
  Entry read{.type = read_type(name, entry), .shape = read_numbers(name, entry, "shape")};
  const auto offsets = read_numbers(name, entry, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    refuse(name, "has 'data_offsets' that are not [begin, end]");
  read.begin = static_cast<std::uint64_t>(offsets[0]);
  read.end = static_cast<std::uint64_t>(offsets[1]);
  const auto bytes = bytes_of(read.type, read.shape);
  if (!bytes) refuse(name, "has a 'shape' of more bytes than there can be");
  if (*bytes != read.bytes())
    refuse(name, fmt::format("has {} bytes by its 'data_offsets' and {} by its 'shape'",
                             read.bytes(), *bytes));
  return read;
}

std::map<std::string, std::string> read_metadata(const json& metadata) {
  if (metadata.is_null()) return {};
  if (!metadata.is_object()) throw FormatError("its __metadata__ is no object");
  std::map<std::string, std::string> read;
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string())
      throw FormatError(
          fmt::format("its __metadata__ has no text as '{}'", config::printable(key)));
    read.emplace(key, value.get<std::string>());
  }
  return read;
}

/// Throws unless each entry begins where the one before it ends, and the last one ends the file.
void check_places(const std::map<std::string, Entry>& entries, std::uint64_t value_bytes) {
  std::vector<std::pair<const Entry*, const std::string*>> in_order;
  for (const auto& [name, entry] : entries) in_order.emplace_back(&entry, &name);
  std::ranges::sort(in_order, {},
                    [](const auto& item) { return std::pair(item.first->begin, item.first->end); });
  std::uint64_t end = 0;
  for (const auto& [entry, name] : in_order) {
    if (entry->begin != end)
      refuse(*name, fmt::format("begins at {} of the values, where the one before it ends at {}",
                                entry->begin, end));
    end = entry->end;
  }
  if (end > value_bytes)
    throw FormatError(
        fmt::format("it is cut off: it has {} of {} bytes of values", value_bytes, end));
  if (end < value_bytes)
    throw FormatError(
        fmt::format("it is longer than it should be: it has {} bytes of values, "
                    "and its tensors have {}",
                    value_bytes, end));
}

json parsed(std::string_view text, const char* name) {
  try {
    return parse_document(text, name, Comments::Refused);
  } catch (const std::invalid_argument& error) {
    throw FormatError(error.what());
  }
}

}  // namespace

std::string_view name_of(DType type) { return facts_of(type).name; }
std::uint64_t size_of(DType type) { return facts_of(type).bytes; }

std::optional<std::uint64_t> bytes_of(DType type, const std::vector<std::int64_t>& shape) {
  auto bytes = static_cast<std::int64_t>(size_of(type));
  bool is_empty = false;
  for (const auto size : shape) {
    is_empty = is_empty || size == 0;
    // An empty tensor has strides too.
    if (size < 0 || __builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes))
      return std::nullopt;
  }
  return is_empty ? 0 : static_cast<std::uint64_t>(bytes);
}

std::uint64_t header_length(std::string_view bytes, std::uint64_t file_bytes) {
  if (bytes.size() < kLengthBytes || file_bytes < kLengthBytes)
    throw FormatError(
        fmt::format("it is cut off: it has {} bytes, and a file of safetensors has "
                    "at least {}",
                    bytes.size(), kLengthBytes));
  std::uint64_t length = 0;
  for (std::size_t at = kLengthBytes; at-- > 0;)
    length = length << 8 | static_cast<unsigned char>(bytes[at]);
  if (length > kMostHeaderBytes)
    throw FormatError(
        fmt::format("it is no file of safetensors: a header of {} bytes is too long", length));
  if (length > file_bytes - kLengthBytes)
    throw FormatError(fmt::format("it is cut off: it has {} of {} bytes of its header",
                                  file_bytes - kLengthBytes, length));
  return length;
}

Header parse_header(std::string_view text, std::uint64_t value_bytes) {
  if (!text.starts_with('{')) throw FormatError("its header does not begin with '{'");
  Header header;
  const auto document = parsed(text, "its header");
  for (const auto& [name, entry] : document.items()) {
    if (name == kMetadata)
      header.metadata = read_metadata(entry);
    else
      header.entries.emplace(name, read_entry(name, entry));
  }
  check_places(header.entries, value_bytes);
  return header;
}

Placed place(const std::map<std::string, Entry>& entries) {
  Placed placed(entries.begin(), entries.end());
  std::ranges::stable_sort(placed, std::greater{},
                           [](const auto& item) { return item.second.type; });
  std::uint64_t end = 0;
  for (auto& [name, entry] : placed) {
    const auto bytes = bytes_of(entry.type, entry.shape);
    if (!bytes || *bytes > std::numeric_limits<std::int64_t>::max() - end)
      throw std::invalid_argument(
          fmt::format("the tensor '{}' and those before it have more bytes "
                      "than a file can have",
                      config::printable(name)));
    entry.begin = end;
    entry.end = end += *bytes;
  }
  return placed;
}

std::string print_header(const Placed& entries,
                         const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  // Behind the others, and not by operator[], which looks at each of them.
  auto& object = header.get_ref<nlohmann::ordered_json::object_t&>();
  for (const auto& [name, entry] : entries) {
    if (name == kMetadata)
      throw std::invalid_argument("a tensor cannot have the name '__metadata__'");
    object.emplace_back(name, nlohmann::ordered_json{{"dtype", name_of(entry.type)},
                                                     {"shape", entry.shape},
                                                     {"data_offsets", {entry.begin, entry.end}}});
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    throw std::invalid_argument("names of tensors and metadata must be UTF-8");
  }
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  if (text.size() > kMostHeaderBytes)
    throw std::invalid_argument(
        fmt::format("names and metadata make a header of {} bytes; a file "
                    "has at most {}",
                    text.size(), kMostHeaderBytes));
  std::string head;
  for (std::size_t at = 0; at < kLengthBytes; ++at)
    head.push_back(static_cast<char>(text.size() >> (8 * at) & 0xff));
  return head + text;
}

std::map<std::string, std::string> parse_index(std::string_view text) {
  const auto document = parsed(text, "the index");
  const auto map = document.find("weight_map");
  if (map == document.end() || !map->is_object())
    throw FormatError("it has no object as 'weight_map', and so is no index of safetensors");
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : map->items()) {
    const bool is_name = file.is_string() && !file.get_ref<const std::string&>().empty();
    const auto text_of_file = is_name ? file.get<std::string>() : "";
    if (!is_name || text_of_file == "." || text_of_file == ".." ||
        text_of_file.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
      refuse(name, "is said to be in something else than a file beside the index");
    files.emplace(name, text_of_file);
  }
  return files;
}

}  // namespace troupe::train::safetensors
