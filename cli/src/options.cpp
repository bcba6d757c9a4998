#include "options.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include <troupe/errors.hpp>

#include "config/name.hpp"
#include "config/token.hpp"
#include "node/limits/gpus.hpp"
#include "output.hpp"
#include "store/memory/spill.hpp"
#include "transport/find_token.hpp"
#include "words/shell_word.hpp"

namespace troupe::cli {
namespace {

constexpr double kLeastAmount = 0.5e-4;
constexpr double kLeastStore = 0x1p20, kMostStore = 0x1p50;

/// `option` takes the form; both parts of its value must be names.
std::pair<std::string, std::string> split(const std::string& text, const char* option,
                                          const char* form) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    raise({.kind = Failure::Kind::Refused,
           .message = fmt::format("{} '{}' is not of the form {}", option, config::printable(text),
                                  form)});
  }
  std::pair parts{text.substr(0, equals), text.substr(equals + 1)};
  for (const auto& part : {parts.first, parts.second}) config::require_name(option, part);
  return parts;
}

double amount(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !(value >= 0) || !std::isfinite(value)) {
    raise({.kind = Failure::Kind::Refused,
           .message =
               fmt::format("'{}' is not an amount: give a number that is not negative", text)});
  }
  if (const auto why = why_nothing(text, value); !why.empty())
    raise({.kind = Failure::Kind::Refused, .message = why});
  return value;
}

template <class Value>
void add(std::vector<std::pair<std::string, Value>>& to, const char* option, std::string name,
         Value value) {
  if (std::ranges::any_of(to, [&](const auto& there) { return there.first == name; })) {
    raise({.kind = Failure::Kind::Refused,
           .message = fmt::format("{} '{}' is given twice", option, name)});
  }
  to.emplace_back(std::move(name), std::move(value));
}

/// "500MB" and "1.5GB" are powers of ten, "4GiB" of two.
std::uint64_t bytes(const std::string& text) {
  constexpr std::pair<const char*, double> kUnits[] = {
      {"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
  };
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const auto* unit = std::ranges::find_if(
      kUnits, [end](const auto& known) { return std::strcmp(end, known.first) == 0; });
  if (end == text.c_str() || unit == std::end(kUnits) || !(value * unit->second >= kLeastStore) ||
      value * unit->second > kMostStore) {
    raise({.kind = Failure::Kind::Refused,
           .message = fmt::format("--object-store-memory '{}' is not a size from 1MiB to 1024TiB: "
                                  "give it as 500MB or 4GiB",
                                  text)});
  }
  return static_cast<std::uint64_t>(value * unit->second);
}

/// Where memory is full is too late to hear of it.
void check_spill_directory(const std::string& directory) {
  if (const auto why = store::why_no_spilling_to(directory)) {
    raise({.kind = Failure::Kind::Refused,
           .message = fmt::format("large values cannot be spilled to '{}' (--spill-directory): {}; "
                                  "name a directory that can be written",
                                  directory, *why)});
  }
}

}  // namespace

std::string why_nothing(const std::string& text, double amount) {
  if (amount == 0 || amount >= kLeastAmount) return {};
  return fmt::format("'{}' rounds to nothing: amounts are counted in ten-thousandths", text);
}

node::NodeOptions node_options(const NodeArguments& arguments, const transport::Endpoint& head,
                               const config::FoundToken& token) {
  node::NodeOptions options;
  options.head = head;
  options.token = token.secret;
  options.token_from = token.from;
  options.host = arguments.host;
  options.name = arguments.name;
  options.cpus = arguments.cpus;
  options.gpus = arguments.gpus;
  for (const auto& resource : arguments.resources) {
    const auto [name, units] = split(resource, "--resource", "NAME=AMOUNT");
    add(options.resources, "--resource", name, amount(units));
  }
  options.labels = labels_of(arguments.labels);
  const auto state = config::state_directory();
  options.log_directory = arguments.log_directory;
  if (options.log_directory.empty()) {
    options.log_parent = state + "/logs";
    options.log_directory = fmt::format("{}/node-{}", options.log_parent, getpid());
  }
  options.kept_logs = arguments.kept_logs;
  if (!arguments.object_store_memory.empty())
    options.store.cap_bytes = bytes(arguments.object_store_memory);
  if (!arguments.spill_directory.empty()) options.store.spill_directory = arguments.spill_directory;
  check_spill_directory(options.store.spill_directory);
  options.cache_directory = state + "/programs";
  return options;
}

void note_missing_gpus(const NodeArguments& arguments) {
  const auto offered = static_cast<std::size_t>(std::max(0, arguments.gpus.value_or(0)));
  if (offered == 0) return;
  const auto found = node::find_gpus(std::getenv("CUDA_VISIBLE_DEVICES")).size();
  if (offered <= found) return;
  say(stderr,
      fmt::format(
          "note: --gpus {} offers more than NVIDIA's driver finds here, which is {}: what is "
          "placed on the others is told a number of a GPU that is not there\n",
          offered, found == 0 ? "none" : std::to_string(found)));
}

std::vector<std::pair<std::string, std::string>> labels_of(const std::vector<std::string>& given) {
  std::vector<std::pair<std::string, std::string>> labels;
  for (const auto& label : given) {
    const auto [key, value] = split(label, "--label", "KEY=VALUE");
    add(labels, "--label", key, value);
  }
  return labels;
}

std::vector<std::pair<std::string, std::string>> variables_of(
    const std::vector<std::string>& given) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const auto& text : given) {
    const auto equals = text.find('=');
    const auto name = text.substr(0, equals);
    const char* own = equals == std::string::npos ? std::getenv(name.c_str()) : nullptr;
    if (name.empty() || (equals == std::string::npos && own == nullptr)) {
      raise({.kind = Failure::Kind::Refused,
             .message = fmt::format("--env '{}' is neither NAME=VALUE nor a variable that is set "
                                    "here",
                                    config::printable(text))});
    }
    variables.emplace_back(name, equals == std::string::npos ? own : text.substr(equals + 1));
  }
  return variables;
}

std::string working_directory() {
  std::error_code failed;
  auto directory = std::filesystem::current_path(failed).string();
  if (!failed) return directory;
  raise(
      {.kind = Failure::Kind::Refused,
       .message = fmt::format("the working directory of this command cannot be found ({}): it may "
                              "have been removed; cd to one that is there",
                              failed.message())});
}

std::string FoundHead::origin() const {
  return file.empty() ? "" : fmt::format("; the address is from {}", file);
}

std::string FoundHead::advice() const {
  if (file.empty()) return {};
  return origin() +
         ", which a head that was killed leaves behind: start one with `troupe head`, or give "
         "--head HOST:PORT, or remove that file";
}

namespace {

/// That is given, else TROUPE_ADDRESS; empty: neither.
std::string named_address(const std::string& given) {
  const char* address = std::getenv("TROUPE_ADDRESS");
  return given.empty() && address ? address : given;
}

}  // namespace

bool is_private(const std::string& given) { return named_address(given).empty(); }

std::string asked_of(const std::string& address, const std::string& token_file) {
  std::string words;
  if (!address.empty()) words += " --address " + launch::shell_word(address);
  if (!token_file.empty())
    words += " --token-file " + launch::shell_word(std::filesystem::absolute(token_file).string());
  return words;
}

FoundHead find_head(const std::string& given) {
  if (const auto address = named_address(given); !address.empty())
    return {transport::parse_endpoint(address), {}};
  if (const auto head = config::known_head(); !head.empty())
    return {transport::parse_endpoint(head), config::address_file()};
  raise({.kind = Failure::Kind::Refused,
         .message = fmt::format("no head is known here: give --head HOST:PORT, or set "
                                "TROUPE_ADDRESS, or start one with `troupe head` (it writes {})",
                                config::address_file())});
}

config::FoundToken find_token(const FoundHead& head, const std::string& file) {
  try {
    return transport::find_token(head.at, file);
  } catch (const Disconnected& nobody) {
    raise({.kind = Failure::Kind::Disconnected, .message = nobody.what() + head.advice()});
  }
}

}  // namespace troupe::cli
