#include <unordered_map>

#include <dlfcn.h>

#include <fmt/format.h>

#include <troupe/detail/archive.hpp>
#include <troupe/detail/call.hpp>
#include <troupe/detail/core.hpp>

namespace troupe::detail {
namespace {

/// Written while static objects are constructed (also those of a library that is opened before
/// troupe::init), which one thread does at a time; only read after, by any thread: no lock.
using Table = std::unordered_multimap<std::uint64_t, Function>;

/// Local, so that it is there for the first static object that registers itself, in whatever order
/// they come.
Table& table() {
  static Table functions;
  return functions;
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo). Two names with one hash are told apart like two equal names,
/// by their offset.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const unsigned char c : text) value = (value ^ c) * 0x100000001b3;
  return value;
}

/// Of code from the start of its image, which is the same in every process that runs the same
/// program.
std::uint64_t offset_of(void* code) {
  Dl_info image{};
  if (dladdr(code, &image) == 0) return 0;
  return static_cast<std::uint64_t>(static_cast<char*>(code) - static_cast<char*>(image.dli_fbase));
}

}  // namespace

FunctionKey register_function(const char* mangled_tag, std::string_view label, Invoke invoke,
                              Construct construct) {
  auto* code =
      invoke != nullptr ? reinterpret_cast<void*>(invoke) : reinterpret_cast<void*>(construct);
  const FunctionKey key{hash(mangled_tag), offset_of(code), label};
  const auto [first, last] = table().equal_range(key.name);
  for (auto known = first; known != last; ++known) {
    if (known->second.key.offset == key.offset) return known->second.key;
  }
  table().emplace(key.name, Function{key, invoke, construct});
  return key;
}

const Function* find_function(std::uint64_t name, std::uint64_t offset) {
  const auto [first, last] = table().equal_range(name);
  if (first == last) return nullptr;
  for (auto known = first; known != last; ++known) {
    if (known->second.key.offset == offset) return &known->second;
  }
  return std::next(first) == last ? &first->second : nullptr;
}

void require_arguments(std::string_view function, std::size_t expected, std::size_t got) {
  if (expected == got) return;
  throw DecodeError(
      fmt::format("{} takes {} arguments, but {} arrived; do both sides run the same program?",
                  function, expected, got));
}

}  // namespace troupe::detail
