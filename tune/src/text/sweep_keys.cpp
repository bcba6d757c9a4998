#include <troupe/tune/detail/sweep_keys.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace troupe::tune::detail {
namespace {

/// Of options whose key is not their name. All others are called there as they are in C++.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kKeys{
    {{"each", "gang"},
     {"each.each", "gang"},
     {"each.workers", "gang.ranks"},
     {"mlflow.url", "mlflow"},
     {"stop_grace", "grace"}}};

/// Before names of other kinds, which a sweep's file calls as they are without it.
constexpr std::array<std::string_view, 2> kScopes{"tune::", "Options::"};

bool is_small_letter(char letter) { return letter >= 'a' && letter <= 'z'; }
bool is_of_word(char letter) {
  return is_small_letter(letter) || letter == '_' || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9');
}

/// "each.workers" of "each.workers. And"; empty: no name begins there.
std::string_view name_at(std::string_view text) {
  if (text.empty() || !is_small_letter(text.front())) return {};
  std::size_t end = 0;
  while (end < text.size() &&
         (is_of_word(text[end]) ||
          (text[end] == '.' && end + 1 < text.size() && is_small_letter(text[end + 1]))))
    ++end;
  const bool is_path = end < text.size() && text[end] == '/';
  return is_path ? std::string_view() : text.substr(0, end);
}

std::string_view key_of(std::string_view name) {
  const auto* const known =
      std::ranges::find(kKeys, name, &std::pair<std::string_view, std::string_view>::first);
  return known == kKeys.end() ? name : known->second;
}

/// Of what stands there and is left away: "." or a scope. 0: nothing is.
std::size_t prefix_of(std::string_view text) {
  if (text.starts_with('.')) return name_at(text.substr(1)).empty() ? 0 : 1;
  for (const auto scope : kScopes) {
    if (text.starts_with(scope) && !name_at(text.substr(scope.size())).empty()) return scope.size();
  }
  return 0;
}

/// The bytes of somebody's own text that begins there; 0: none does.
std::size_t own_text_at(std::string_view text, const std::vector<std::string>& given) {
  if (text.starts_with('\'')) {
    const auto end = text.find('\'', 1);
    if (end != std::string_view::npos) return end + 1;
  }
  std::size_t longest = 0;
  for (const auto& own : given) {
    if (text.starts_with(own)) longest = std::max(longest, own.size());
  }
  return longest;
}

}  // namespace

std::string with_sweep_keys(const std::string& text, const std::vector<std::string>& given) {
  constexpr std::string_view before_names = " (`[";
  std::string result;
  for (std::string_view rest = text; !rest.empty();) {
    const bool begins =
        result.empty() || before_names.find(result.back()) != std::string_view::npos;
    if (const auto own = begins ? own_text_at(rest, given) : 0; own > 0) {
      result += rest.substr(0, own);
      rest.remove_prefix(own);
      continue;
    }
    const auto prefix = begins ? prefix_of(rest) : 0;
    const auto name = prefix > 0 ? name_at(rest.substr(prefix)) : std::string_view();
    result += name.empty() ? rest.substr(0, 1) : key_of(name);
    rest.remove_prefix(std::max<std::size_t>(1, prefix + name.size()));
  }
  return result;
}

}  // namespace troupe::tune::detail
