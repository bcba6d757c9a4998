#include "host/error_file.hpp"

#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "os/files/file_content.hpp"

namespace troupe::launch {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestFile = 4 << 20;
constexpr std::size_t kLongestTraceback = 64 << 10;

std::string text_at(const json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// A traceback of Python ends with the exception: its beginning is what is left out.
std::string end_of(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.size() <= kLongestTraceback) return text;
  text.erase(0, text.size() - kLongestTraceback);
  const auto line = text.find('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

}  // namespace

std::string traceback_in(const std::string& text) {
  const auto file = json::parse(text, nullptr, false);
  if (!file.is_object() || !file.contains("message")) return {};
  const auto& message = file.at("message");
  if (message.is_string()) return end_of(message.get<std::string>());
  if (!message.is_object()) return {};
  auto traceback =
      message.contains("extraInfo") ? text_at(message.at("extraInfo"), "py_callstack") : "";
  return end_of(traceback.empty() ? text_at(message, "message") : std::move(traceback));
}

std::string traceback_of(const std::string& file) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(file, failed)) return {};
  const auto size = std::filesystem::file_size(file, failed);
  if (failed || size > kLargestFile) return {};
  return traceback_in(os::read_file(file).bytes);
}

}  // namespace troupe::launch
