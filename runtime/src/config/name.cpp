#include "config/name.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "config/json.hpp"

namespace troupe::config {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";
constexpr std::size_t kMostQuoted = 64;  // in a message
constexpr std::string_view kLabelsOfHead = "troupe.";

bool is_plain(unsigned char c) { return c >= ' ' && c < 0x7f; }

/// Bytes of the control character that starts there; 0: none does. U+0080 to U+009F steer terminals
/// too.
std::size_t control_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(at) < ' ' || byte(at) == 0x7f) return 1;
  return byte(at) == 0xc2 && at + 1 < text.size() && byte(at + 1) >= 0x80 && byte(at + 1) <= 0x9f
             ? 2
             : 0;
}

bool has_control(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (control_at(text, i) > 0) return true;
  }
  return false;
}

std::string as_utf8(std::string_view text) {
  return nlohmann::json::parse(to_text(std::string(text))).get<std::string>();
}

}  // namespace

std::string why_no_name(std::string_view text) {
  if (text.size() <= kMostNameBytes && !text.empty() && std::ranges::all_of(text, is_plain))
    return {};
  std::string wrong;
  if (text.empty()) {
    wrong = "it is empty";
  } else if (text.size() > kMostNameBytes) {
    wrong = fmt::format("it has {} bytes", text.size());
  } else if (as_utf8(text) != text) {
    wrong = "it is not UTF-8";
  } else if (has_control(text)) {
    wrong = "it has a control character";
  } else {
    return {};
  }
  return fmt::format("{}; give 1 to {} bytes of UTF-8 without control characters", wrong,
                     kMostNameBytes);
}

std::string why_no_name(std::string_view field, std::string_view text) {
  const auto why = why_no_name(text);
  return why.empty() ? why : fmt::format("{} '{}': {}", field, printable(text, kMostQuoted), why);
}

void check_name(std::string_view field, std::string_view text) {
  if (const auto why = why_no_name(field, text); !why.empty()) throw std::invalid_argument(why);
}

void require_name(std::string_view field, std::string_view text) {
  if (const auto why = why_no_name(field, text); !why.empty())
    raise({.kind = Failure::Kind::Refused, .message = why});
}

std::string why_no_actor_name(std::string_view name) {
  const auto slash = name.find('/');
  if (slash == std::string_view::npos) return {};
  const auto own = name.substr(slash + 1);
  std::string wrong;
  if (slash == 0) {
    wrong = "nothing stands before its '/'";
  } else if (own.empty()) {
    wrong = "nothing stands behind its '/'";
  } else if (own.find('/') != std::string_view::npos) {
    wrong = "it has more than one '/'";
  } else {
    return {};
  }
  return wrong + "; give NAME or NAMESPACE/NAME, as \"counter\" or \"shared/counter\"";
}

void check_actor_name(std::string_view field, std::string_view name) {
  check_name(field, name);
  if (const auto why = why_no_actor_name(name); !why.empty()) {
    throw std::invalid_argument(
        fmt::format("{} '{}': {}", field, printable(name, kMostQuoted), why));
  }
}

std::string why_not_given(std::string_view key) {
  if (!key.starts_with(kLabelsOfHead)) return {};
  return fmt::format(
      "the label '{}': the head itself gives nodes the labels whose names begin with '{}'; choose "
      "another name",
      printable(key, kMostQuoted), kLabelsOfHead);
}

std::string printable(std::string_view text, std::size_t most) {
  // One byte more than fits is enough to see that it does not: a replacement is never shorter than
  // what it is for.
  const auto clean = as_utf8(text.substr(0, most + 1));
  std::string out;
  for (std::size_t i = 0; i < clean.size();) {
    const auto control = control_at(clean, i);
    out += control > 0 ? kReplacement : std::string_view(clean).substr(i, 1);
    i += std::max<std::size_t>(control, 1);
  }
  if (out.size() <= most) return out;
  auto end = most - kEllipsis.size();
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xc0) == 0x80) --end;
  return out.substr(0, end).append(kEllipsis);
}

}  // namespace troupe::config
