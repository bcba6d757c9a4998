#include "output/tensorboard/event_records.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "output/tensorboard/protobuf.hpp"
#include "text/checksum.hpp"
#include "text/names.hpp"

namespace troupe::tune {
namespace {

std::uint32_t masked_crc(std::string_view data) {
  const auto sum = crc32c(data);
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
}

ProtoMessage event_at(WallTime wall, std::int64_t step) {
  ProtoMessage event;
  event.real(1, wall.time_since_epoch().count());
  event.number(2, step);
  return event;
}

std::string record_of(const ProtoMessage& event) { return tf_record(event.encoded()); }

/// What a float cannot hold becomes infinite.
float single(double value) {
  if (std::abs(value) > std::numeric_limits<float>::max())
    return std::copysign(std::numeric_limits<float>::infinity(), value > 0 ? 1.0f : -1.0f);
  return static_cast<float>(value);
}

// ---- the HParams plugin -------------------------------------------------------------------------

enum class DataType : std::uint8_t { Text = 1, Truth = 2, Number = 3 };

DataType type_of(const Scalar& scalar) {
  if (std::holds_alternative<std::string>(scalar.value())) return DataType::Text;
  return std::holds_alternative<bool>(scalar.value()) ? DataType::Truth : DataType::Number;
}

/// As a google.protobuf.Value, which has one kind of number. `as_text`: where the field's values
/// are of several types.
ProtoMessage value_of(const Scalar& scalar, bool as_text = false) {
  ProtoMessage value;
  if (as_text) return value.text(3, to_string(scalar));
  if (const auto* real = std::get_if<double>(&scalar.value())) return value.real(2, *real);
  if (const auto* whole = std::get_if<std::int64_t>(&scalar.value()))
    return value.real(2, static_cast<double>(*whole));
  if (const auto* truth = std::get_if<bool>(&scalar.value())) return value.number(4, *truth);
  return value.text(3, std::get<std::string>(scalar.value()));
}

/// As an HParamInfo.
ProtoMessage info_of(const Dimension& dimension) {
  ProtoMessage info;
  info.text(1, dimension.name);
  const auto range = dimension.domain.range();
  const auto& values = dimension.domain.values();
  if (range || values.empty()) {
    info.number(4, static_cast<int>(DataType::Number));
    if (range && std::isfinite(range->low))
      info.message(6, ProtoMessage().real(1, range->low).real(2, range->high));
    return info;
  }
  const auto type = type_of(values.front());
  const bool is_mixed =
      std::ranges::any_of(values, [&](const auto& value) { return type_of(value) != type; });
  ProtoMessage list;
  for (const auto& value : values) list.message(1, value_of(value, is_mixed));
  info.number(4, static_cast<int>(is_mixed ? DataType::Text : type));
  return info.message(5, list);
}

/// A summary that says something to the plugin and has no value: an empty vector of floats.
std::string plugin_record(WallTime wall, std::string_view tag, const ProtoMessage& data) {
  constexpr int kFloat = 1;
  ProtoMessage dimension;
  dimension.number(1, 0);
  const auto shape = ProtoMessage().message(2, dimension);
  const auto plugin = ProtoMessage().text(1, "hparams").bytes(2, data.encoded());
  const auto value = ProtoMessage()
                         .text(1, tag)
                         .message(8, ProtoMessage().number(1, kFloat).message(2, shape))
                         .message(9, ProtoMessage().message(1, plugin));
  return record_of(event_at(wall, 0).message(5, ProtoMessage().message(1, value)));
}

}  // namespace

std::string tf_record(std::string_view data) {
  const auto length = little_endian(std::uint64_t{data.size()});
  return length + little_endian(masked_crc(length)) + std::string(data) +
         little_endian(masked_crc(data));
}

std::string version_record(WallTime wall) {
  return record_of(event_at(wall, 0).text(3, "brain.Event:2"));
}

std::string restart_record(WallTime wall, std::int64_t step) {
  constexpr int kStart = 1;
  return record_of(event_at(wall, step).message(7, ProtoMessage().number(1, kStart)));
}

std::string scalars_record(WallTime wall, std::int64_t step, const Metrics& metrics) {
  ProtoMessage summary;
  for (const auto& [name, value] : metrics)
    summary.message(1, ProtoMessage().text(1, name_in_utf8(name)).real32(2, single(value)));
  return record_of(event_at(wall, step).message(5, summary));
}

std::string experiment_record(WallTime wall, std::string_view title, const SearchSpace& space,
                              const std::vector<std::string>& metrics) {
  ProtoMessage experiment;
  experiment.text(6, title).real(3, wall.time_since_epoch().count());
  for (const auto& dimension : space) experiment.message(4, info_of(dimension));
  for (const auto& metric : metrics)
    experiment.message(5, ProtoMessage().message(1, ProtoMessage().text(2, name_in_utf8(metric))));
  return plugin_record(wall, "_hparams_/experiment", ProtoMessage().message(2, experiment));
}

std::string session_start_record(WallTime wall, const Configuration& configuration) {
  ProtoMessage session;
  for (const auto& [name, value] : configuration)
    session.message(1, ProtoMessage().text(1, name).message(2, value_of(value)));
  session.real(5, wall.time_since_epoch().count());
  return plugin_record(wall, "_hparams_/session_start_info", ProtoMessage().message(3, session));
}

std::string session_end_record(WallTime wall, SessionEnd status) {
  const auto session =
      ProtoMessage().number(1, static_cast<int>(status)).real(2, wall.time_since_epoch().count());
  return plugin_record(wall, "_hparams_/session_end_info", ProtoMessage().message(4, session));
}

}  // namespace troupe::tune
