#include "sweep/scalar_events.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBetweenLooksMs = 500;
constexpr std::uint64_t kMostRecordBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMostSteps = 1000;  // whose other scalars are remembered
constexpr std::uint64_t kHeadBytes = 12;  // a length, and its checksum
constexpr std::uint64_t kTailBytes = 4;   // a checksum

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

template <class Value>
Value from_bytes(std::string_view bytes) {
  Value value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

/// The fields of a message in the encoding of Protocol Buffers, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  struct Field {
    std::uint64_t number = 0;
    std::uint64_t integer = 0;  // of a varint
    std::string_view bytes;     // of the others
  };
  /// None at the end, and where this is no message.
  std::optional<Field> next() {
    const auto key = varint();
    if (!key) return std::nullopt;
    Field field{.number = *key >> 3, .bytes = {}};
    switch (*key & 7) {
      case 0: {
        const auto value = varint();
        if (!value) return std::nullopt;
        field.integer = *value;
        return field;
      }
      case 1:
        return take(std::move(field), 8);
      case 2: {
        const auto size = varint();
        return size ? take(std::move(field), *size) : std::nullopt;
      }
      case 5:
        return take(std::move(field), 4);
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }
  std::optional<Field> take(Field field, std::uint64_t size) {
    if (size > rest_.size()) return std::nullopt;
    field.bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return field;
  }

  std::string_view rest_;
};

/// Of a TensorProto of one number.
std::optional<double> number_of_tensor(std::string_view tensor) {
  constexpr std::uint64_t kFloat = 1, kDouble = 2;
  std::uint64_t type = 0;
  std::string_view floats, doubles;
  Fields fields(tensor);
  while (const auto field = fields.next()) {
    if (field->number == 1) type = field->integer;
    if (field->number == 4) (type == kDouble ? doubles : floats) = field->bytes;  // tensor_content
    if (field->number == 5) floats = field->bytes;
    if (field->number == 6) doubles = field->bytes;
  }
  if (type == kFloat && floats.size() == 4) return from_bytes<float>(floats);
  if (type == kDouble && doubles.size() == 8) return from_bytes<double>(doubles);
  return std::nullopt;
}

std::optional<WrittenScalar> scalar_of(std::string_view value) {
  WrittenScalar scalar;
  std::optional<double> number;
  Fields fields(value);
  while (const auto field = fields.next()) {
    if (field->number == 1) scalar.tag = field->bytes;
    if (field->number == 2) number = from_bytes<float>(field->bytes);
    if (field->number == 8) number = number_of_tensor(field->bytes);
  }
  if (!number || scalar.tag.empty()) return std::nullopt;
  scalar.value = *number;
  return scalar;
}

bool is_event_file(const fs::path& path) {
  return path.filename().string().find("tfevents") != std::string::npos;
}

}  // namespace

std::vector<WrittenScalar> scalars_in(std::string_view event) {
  std::vector<WrittenScalar> scalars;
  std::int64_t step = 0;
  Fields fields(event);
  while (const auto field = fields.next()) {
    if (field->number == 2) step = static_cast<std::int64_t>(field->integer);
    if (field->number != 5) continue;
    Fields values(field->bytes);
    while (const auto value = values.next()) {
      if (value->number != 1) continue;
      if (auto scalar = scalar_of(value->bytes)) scalars.push_back(std::move(*scalar));
    }
  }
  for (auto& scalar : scalars) scalar.step = step;
  return scalars;
}

ScalarEvents::ScalarEvents(std::string folder) : folder_(std::move(folder)) {
  if (!folder_.empty()) look_for_files(true);
}

void ScalarEvents::look_for_files(bool skip) {
  std::error_code error;
  fs::recursive_directory_iterator entries(folder_, fs::directory_options::skip_permission_denied,
                                           error);
  for (const fs::recursive_directory_iterator end; !error && entries != end;
       entries.increment(error)) {
    if (!is_event_file(entries->path())) continue;
    std::error_code gone;
    const auto size = skip ? entries->file_size(gone) : 0;
    offsets_.try_emplace(entries->path().string(), gone ? 0 : size);
  }
}

void ScalarEvents::read_file(const std::string& path, std::uint64_t& offset,
                             std::vector<WrittenScalar>& into) const {
  std::error_code gone;
  const auto size = fs::file_size(path, gone);
  if (gone || size < offset + kHeadBytes) return;
  std::ifstream in(path, std::ios::binary);
  std::string record;
  while (size >= offset + kHeadBytes) {
    std::array<char, sizeof(std::uint64_t)> head{};
    in.seekg(static_cast<std::streamoff>(offset));
    if (!in.read(head.data(), head.size())) return;
    const auto length = from_bytes<std::uint64_t>({head.data(), head.size()});
    if (length > kMostRecordBytes) {
      offset = ~std::uint64_t{0} - kHeadBytes;  // no event file: it is read no more
      return;
    }
    if (size < offset + kHeadBytes + length + kTailBytes) return;  // it is being written
    record.resize(length);
    in.seekg(static_cast<std::streamoff>(offset + kHeadBytes));
    if (!in.read(record.data(), static_cast<std::streamsize>(length))) return;
    offset += kHeadBytes + length + kTailBytes;
    for (auto& scalar : scalars_in(record)) into.push_back(std::move(scalar));
  }
}

std::vector<Metrics> ScalarEvents::read(const std::string& metric, bool now) {
  if (folder_.empty()) return {};
  const auto at = now_ms();
  if (!now && at - looked_at_ms_ < kBetweenLooksMs) return {};
  looked_at_ms_ = at;
  look_for_files(false);
  std::vector<WrittenScalar> scalars;
  for (auto& [path, offset] : offsets_) read_file(path, offset, scalars);
  std::vector<Metrics> reports;
  for (const auto& [tag, value, step] : scalars) {
    auto& others = others_[step];
    if (tag != metric) {
      others.emplace_back(tag.c_str(), value);
      if (others_.size() > kMostSteps) others_.erase(others_.begin());
      continue;
    }
    auto report = std::exchange(others, {});
    report.emplace_back(tag.c_str(), value);
    report.emplace_back("step", step);
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace troupe::launch
