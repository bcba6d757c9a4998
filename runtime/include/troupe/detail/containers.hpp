#pragma once

#include <cereal/types/array.hpp>
#include <cereal/types/bitset.hpp>
#include <cereal/types/chrono.hpp>
#include <cereal/types/complex.hpp>
#include <cereal/types/deque.hpp>
#include <cereal/types/list.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>

#include <algorithm>
#include <filesystem>
#include <string>

#include <troupe/detail/archive.hpp>

/// The standard library in our archives: cereal's functions where they are safe on a peer's bytes,
/// ours where they are not (vectors are resized before an element is seen; a shared pointer is cast
/// to whatever type is asked for).
namespace cereal {

template <class T, class A>
requires(!std::is_same_v<T, bool>) void CEREAL_SAVE_FUNCTION_NAME(
    troupe::detail::OutArchive& archive, const std::vector<T, A>& values) {
  archive(make_size_tag(static_cast<size_type>(values.size())));
  if constexpr (troupe::detail::packed<T>) {
    archive.write(values.data(), values.size() * sizeof(T));
  } else {
    for (const auto& value : values) archive(value);
  }
}

template <class T, class A>
requires(!std::is_same_v<T, bool>) void CEREAL_LOAD_FUNCTION_NAME(
    troupe::detail::InArchive& archive, std::vector<T, A>& values) {
  size_type count = 0;
  archive(make_size_tag(count));
  values.clear();
  if constexpr (troupe::detail::packed<T>) {
    if (count > archive.remaining() / sizeof(T))
      throw troupe::DecodeError("it has a length beyond its end");
    values.resize(count);
    archive.read(values.data(), count * sizeof(T));
  } else {
    constexpr size_type chunk = 1024;  // memory follows the bytes that were there
    values.reserve(std::min(count, chunk));
    for (size_type i = 0; i < count; ++i) archive(values.emplace_back());
  }
}

/// The text of a path, which means what it does on the machine where it is used.
inline void CEREAL_SAVE_FUNCTION_NAME(troupe::detail::OutArchive& archive,
                                      const std::filesystem::path& path) {
  archive(path.native());
}
inline void CEREAL_LOAD_FUNCTION_NAME(troupe::detail::InArchive& archive,
                                      std::filesystem::path& path) {
  std::string text;
  archive(text);
  path = std::move(text);
}

template <class T>
void CEREAL_SAVE_FUNCTION_NAME(troupe::detail::OutArchive& archive,
                               const std::unique_ptr<T>& pointer) {
  archive(pointer != nullptr);
  if (pointer) archive(*pointer);
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(troupe::detail::InArchive& archive, std::unique_ptr<T>& pointer) {
  bool there = false;
  archive(there);
  pointer.reset();
  if (!there) return;
  archive.charge(sizeof(T));
  auto value = std::make_unique<std::remove_const_t<T>>();
  archive(*value);
  pointer = std::move(value);
}

/// Pointers that share a value within one message share it again when it arrives. 0: empty; 1: a
/// value follows; 2 + n: the n-th value of this message.
template <class T>
void CEREAL_SAVE_FUNCTION_NAME(troupe::detail::OutArchive& archive,
                               const std::shared_ptr<T>& pointer) {
  if (!pointer) {
    archive(std::uint32_t{0});
    return;
  }
  const auto number = archive.number_of(pointer.get(), typeid(std::remove_const_t<T>));
  archive(number == 0 ? std::uint32_t{1} : number + 1);
  if (number == 0) archive(*pointer);
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(troupe::detail::InArchive& archive, std::shared_ptr<T>& pointer) {
  using Value = std::remove_const_t<T>;
  std::uint32_t tag = 0;
  archive(tag);
  pointer.reset();
  if (tag == 0) return;
  if (tag > 1) {
    pointer = std::static_pointer_cast<Value>(archive.shared(tag - 1, typeid(Value)));
    return;
  }
  archive.charge(sizeof(T));
  auto value = std::make_shared<Value>();
  archive.add_shared(value, typeid(Value));
  archive(*value);
  pointer = std::move(value);
}

}  // namespace cereal
