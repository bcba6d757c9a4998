#include "api/signature.hpp"

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include <cxxabi.h>
#include <dlfcn.h>

#include <fmt/format.h>

#include <troupe/detail/archive.hpp>
#include <troupe/detail/call.hpp>
#include <troupe/detail/core.hpp>
#include <troupe/detail/narrowing.hpp>

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

/// The arguments of a template, as its name writes them from `begin` on.
std::vector<std::string> template_arguments(const std::string& name, std::size_t begin) {
  std::vector<std::string> parts(1);
  int open = 0;
  for (auto at = begin; at < name.size(); ++at) {
    const char c = name[at];
    open += c == '<' || c == '(' ? 1 : c == '>' || c == ')' ? -1 : 0;
    if (open < 0) break;
    if (c == ',' && open == 0) {
      parts.emplace_back();
    } else if (!parts.back().empty() || c != ' ') {
      parts.back() += c;
    }
  }
  return parts;
}

/// "int (std::string, int)" of the mangled name of an Invoker, whose Signature<result, actor,
/// parameters...> says it; all of the name where it is something else.
std::string signature_in(const char* mangled_tag) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(mangled_tag, nullptr, nullptr, &status), &std::free);
  if (status != 0 || !text) return mangled_tag;
  std::string name = text.get();
  constexpr std::string_view kString =
      "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
  for (auto at = name.find(kString); at != std::string::npos; at = name.find(kString))
    name.replace(at, kString.size(), "std::string");
  constexpr std::string_view kSignature = "detail::Signature<";
  const auto found = name.rfind(kSignature);
  if (found == std::string::npos) return name;
  const auto parts = template_arguments(name, found + kSignature.size());
  std::string parameters;
  for (std::size_t i = 2; i < parts.size(); ++i)
    parameters += (parameters.empty() ? "" : ", ") + parts[i];
  const bool is_const = parts.size() > 1 && parts[1].ends_with(" const");
  return fmt::format("{} ({}){}", parts[0], parameters, is_const ? " const" : "");
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
  table().emplace(key.name, Function{key, invoke, construct, mangled_tag});
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

std::string why_no_function(std::string_view label) {
  for (const auto& [name, function] : table()) {
    if (function.key.label != label) continue;
    return fmt::format(
        "the program of that process has a '{}' with another signature, {}: give both programs the "
        "same arguments, result and const",
        label, signature_in(function.mangled_tag));
  }
  return fmt::format(
      "the program of that process has no function '{}' that the runtime knows of: only what it "
      "names itself, in a call of its own, can be called from another program. Compile a source "
      "with such a call, which need not run, into both programs",
      label);
}

std::string signature_of(const FunctionKey& function) {
  const auto* known = find_function(function.name, function.offset);
  return known ? signature_in(known->mangled_tag) : std::string();
}

void require_arguments(std::string_view function, std::size_t expected, std::size_t got) {
  if (expected == got) return;
  throw DecodeError(
      fmt::format("{} takes {} arguments, but {} arrived; do both sides run the same program?",
                  function, expected, got));
}

void refuse_number(const FunctionKey& function, std::size_t place, AnyNumber number,
                   std::string_view type) {
  throw std::invalid_argument(fmt::format(
      "{}: argument {} is {}, which its parameter, of type {}, cannot hold: give a number that it "
      "can, or the parameter another type",
      function.label, place + 1,
      std::visit([](auto value) { return fmt::format("{}", value); }, number), type));
}

}  // namespace troupe::detail
