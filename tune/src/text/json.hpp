#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <troupe/tune/scheduler.hpp>

/// How tune's values are written as JSON. Objects keep their order. A number that is not finite,
/// which JSON lacks, is the string "nan", "inf" or "-inf". Names of metrics are as name_in_utf8()
/// has them, and are read back as they were.
namespace troupe::tune {

using Json = nlohmann::ordered_json;

Json to_json(double number);
Json to_json(const Scalar& scalar);
Json to_json(const Configuration& configuration);
Json to_json(const Metrics& metrics);
Json to_json(const SearchSpace& space);
/// [{"metric": "loss", "mode": "min"}, ...]
Json to_json(const std::vector<Objective>& objectives);
Json to_json(const std::vector<Constraint>& constraints);

/// These throw std::invalid_argument, naming the text, where it is something else.
double number_from(const Json& json);
Scalar scalar_from(const Json& json);
Configuration configuration_from(const Json& json);
Metrics metrics_from(const Json& json);

/// Parses one text; throws std::invalid_argument with `what` it should have been.
Json parse(std::string_view text, std::string_view what);
/// The JSON in a file; where the file can not be read or is no JSON, a value whose is_discarded() is true.
Json json_in(const std::filesystem::path& file);
/// One line, with what is not UTF-8 replaced: a text may be anything.
std::string dump(const Json& json);

}  // namespace troupe::tune
