#include "sweep/fields.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/name.hpp"
#include "config/nearest.hpp"

namespace troupe::launch {
namespace {

Field path_field(const std::string& name, const std::string& path) {
  // Of a folder whose name is not UTF-8 the text has all bytes, and JSON can have no others.
  return {name, path,
          nlohmann::json(path).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

/// `text`: where the name stands, for people.
const Field& field_of(const std::string& name, const std::string& text,
                      const std::vector<Field>& fields) {
  const auto field = std::ranges::find(fields, name, &Field::name);
  if (field != fields.end()) return *field;
  std::vector<std::string> names;
  for (const auto& known : fields) names.push_back(known.name);
  throw std::invalid_argument(fmt::format(
      "{{{}}} in '{}' is no field of the space{}; write {{{{ for a brace", config::printable(name),
      config::printable(text), config::did_you_mean(name, names)));
}

/// The text with what `of_name` gives in place of each "{name}".
template <class OfName>
std::string replaced(const std::string& text, const OfName& of_name) {
  std::string filled;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool doubled = i + 1 < text.size() && text[i + 1] == text[i];
    if ((text[i] == '{' || text[i] == '}') && doubled) {
      filled += text[i++];
      continue;
    }
    const auto end = text[i] == '{' ? text.find('}', i) : std::string::npos;
    if (end == std::string::npos) {
      filled += text[i];
      continue;
    }
    filled += of_name(text.substr(i + 1, end - i - 1));
    i = end;
  }
  return filled;
}

}  // namespace

std::string json_of(const std::vector<Field>& fields) {
  std::string text = "{";
  for (const auto& field : fields) {
    if (text.size() > 1) text += ", ";
    text += nlohmann::json(field.name).dump() + ": " + field.json;
  }
  return text + "}";
}

std::string config_file_in(const std::string& folder) {
  return folder.empty() ? "" : folder + "/config.json";
}

std::vector<Field> with_paths(std::vector<Field> fields, const std::string& folder) {
  fields.push_back(path_field("checkpoint_dir", folder));
  fields.push_back(path_field("config_file", config_file_in(folder)));
  return fields;
}

std::string filled_in(const std::string& text, const std::vector<Field>& fields) {
  return replaced(text, [&](const std::string& name) { return field_of(name, text, fields).text; });
}

bool names_any(const std::string& text, const std::vector<std::string>& names) {
  bool found = false;
  replaced(text, [&](const std::string& name) {
    found = found || std::ranges::count(names, name) > 0;
    return std::string();
  });
  return found;
}

std::vector<std::string> filled_in(const std::vector<std::string>& texts,
                                   const std::vector<Field>& fields,
                                   const std::vector<std::string>& left_out) {
  std::vector<std::string> filled;
  for (const auto& text : texts) {
    if (!names_any(text, left_out)) filled.push_back(filled_in(text, fields));
  }
  return filled;
}

Variables filled_in(const Variables& variables, const std::vector<Field>& fields,
                    const std::vector<std::string>& left_out) {
  Variables filled;
  for (const auto& [name, value] : variables) {
    if (!names_any(value, left_out)) filled.emplace_back(name, filled_in(value, fields));
  }
  return filled;
}

}  // namespace troupe::launch
