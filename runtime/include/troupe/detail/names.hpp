#pragma once

#include <cstddef>
#include <string_view>

/// Names for people, taken from what the compiler writes into __PRETTY_FUNCTION__. Not an identity:
/// two lambdas in one function have the same. All have static storage.
namespace troupe::detail {

/// What stands between `before` and the `;` or `]` that ends the first template argument.
constexpr std::string_view argument_in(std::string_view pretty, std::string_view before) {
  auto start = pretty.find(before);
  if (start == std::string_view::npos) return pretty;
  start += before.size();
  int depth = 0;
  for (auto at = start; at < pretty.size(); ++at) {
    const char c = pretty[at];
    if (depth == 0 && (c == ';' || c == ']')) return pretty.substr(start, at - start);
    if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
    if (c == ')' || c == ']' || c == '}' || c == '>') --depth;
  }
  return pretty.substr(start);
}

template <class T>
constexpr std::string_view pretty_type() {
  return argument_in(__PRETTY_FUNCTION__, "T = ");
}

template <auto F>
constexpr std::string_view pretty_function() {
  return argument_in(__PRETTY_FUNCTION__, "F = ");
}

/// "Counter", "shop::Basket<int>".
template <class T>
inline constexpr std::string_view type_name = pretty_type<T>();

/// "Counter::add", "fib". Of an overload with its type: "(int (Svc::*)(int))(&Svc::f)".
template <auto F>
inline constexpr std::string_view function_name = [] {
  auto name = pretty_function<F>();
  while (!name.empty() && (name.front() == '&' || name.front() == ' ')) name.remove_prefix(1);
  return name;
}();

/// What people see an actor of class T called: its type, or, where the class only runs a user's
/// function, the function that it names by a static `troupe_label`.
template <class T>
inline constexpr std::string_view actor_label = [] {
  if constexpr (requires { std::string_view(T::troupe_label); })
    return std::string_view(T::troupe_label);
  else
    return type_name<T>;
}();

}  // namespace troupe::detail
