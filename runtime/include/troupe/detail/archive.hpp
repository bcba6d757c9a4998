#pragma once

#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <cereal/cereal.hpp>

#include <troupe/detail/aggregate.hpp>
#include <troupe/detail/core.hpp>

namespace troupe {

/// Bytes that are not a value of the type that they should be. Bytes come from a peer, so this is
/// no bug of the reader.
struct DecodeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Enumerators of E that may arrive, both inclusive. Specialize it to have them checked; by default
/// any value of the underlying type may.
///   template <> struct troupe::EnumRange<Color> { static constexpr auto first = Color::Red, last = Color::Blue; };
template <class E>
struct EnumRange {};

}  // namespace troupe

namespace troupe::detail {

/// How deep containers and pointers may stand in one another within a value, at both ends.
inline constexpr int kMaxDepth = 64;
/// Memory that decoding a message may take: this, and so many bytes for each byte of the message.
inline constexpr std::uint64_t kDecodeBase = 1 << 20;
inline constexpr std::uint64_t kDecodePerByte = 64;

template <class T>
inline constexpr bool is_smart_pointer = false;
template <class T, class D>
inline constexpr bool is_smart_pointer<std::unique_ptr<T, D>> = true;
template <class T>
inline constexpr bool is_smart_pointer<std::shared_ptr<T>> = true;

/// Holds other types side by side; not a level of its own.
template <class T>
inline constexpr bool is_wrapper = false;
template <class T>
inline constexpr bool is_wrapper<std::optional<T>> = true;
template <class... T>
inline constexpr bool is_wrapper<std::variant<T...>> = true;
template <class... T>
inline constexpr bool is_wrapper<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_wrapper<std::pair<A, B>> = true;
template <class T>
inline constexpr bool is_wrapper<cereal::SizeTag<T>> = true;
template <class T>
inline constexpr bool is_wrapper<cereal::BinaryData<T>> = true;
template <class K, class V>
inline constexpr bool is_wrapper<cereal::MapItem<K, V>> = true;

template <class T>
concept Container = requires(T& value) {
  typename T::value_type;
  value.begin();
  value.end();
};

/// A type that can hold values of its own type: what has a depth.
template <class T>
inline constexpr bool nests = Container<T> || is_smart_pointer<T> ||
                              (std::is_class_v<T> && !is_wrapper<T> && UserSerialized<T>);

/// What one element of a container may take in memory, links and allocation of a node included.
template <class C>
constexpr std::uint64_t element_memory() {
  constexpr std::uint64_t node = 48;
  return sizeof(typename C::value_type) + (requires(C & c) { c.data(); } ? 0 : node);
}

/// Arrays of plain values stand at multiples of this, from the start of the value that they are in.
inline constexpr std::size_t kArrayAlignment = 64;

/// cereal archive that writes a Payload: little endian, no names, no alignment but that of arrays.
class OutArchive : public cereal::OutputArchive<OutArchive, cereal::AllowEmptyClassElision> {
 public:
  /// Collects up to `most` bytes in the payload; of a larger value it only counts the rest, and
  /// complete() is false.
  explicit OutArchive(Payload& out, std::size_t most = std::numeric_limits<std::size_t>::max())
      : cereal::OutputArchive<OutArchive, cereal::AllowEmptyClassElision>(this),
        out_(out),
        most_(most) {}
  /// Writes a value that was counted before into `room`. The payload gets its refs.
  OutArchive(Payload& out, std::span<char> room) : OutArchive(out) {
    room_ = room;
    in_room_ = true;
  }

  void write(const void* data, std::size_t size) {
    size_ += size;
    if (in_room_) {
      if (size_ > room_.size()) changed();
      if (size != 0) std::memcpy(room_.data() + (size_ - size), data, size);
    } else if (size_ <= most_) {
      out_.bytes.append(static_cast<const char*>(data), size);
    }
  }
  void align() {
    constexpr char zeros[kArrayAlignment] = {};
    if (const auto over = size_ % kArrayAlignment; over != 0) write(zeros, kArrayAlignment - over);
  }
  std::uint64_t size() const { return size_; }
  bool complete() const { return in_room_ ? size_ == room_.size() : size_ <= most_; }
  /// Of a value that was counted before.
  [[noreturn]] static void changed() {
    throw std::logic_error("the value was changed by another thread while it was encoded");
  }

  void reference(ObjectPtr object) {
    const auto index = static_cast<std::uint32_t>(out_.refs.size());
    out_.refs.push_back(std::move(object));
    write(&index, sizeof index);
  }

  void enter() {
    if (++depth_ > kMaxDepth)
      throw std::length_error("the value nests deeper than 64 containers or pointers");
  }
  void leave() { --depth_; }

  /// 0 for a pointer that was not written before, which is then numbered.
  std::uint32_t number_of(const void* pointer, std::type_index type) {
    for (auto [at, end] = shared_.equal_range(pointer); at != end; ++at) {
      if (at->second.first == type) return at->second.second;
    }
    shared_.emplace(pointer, std::pair(type, static_cast<std::uint32_t>(shared_.size() + 1)));
    return 0;
  }

 private:
  Payload& out_;
  std::size_t most_;
  std::size_t size_ = 0;
  std::span<char> room_;
  bool in_room_ = false;
  int depth_ = 0;
  std::unordered_multimap<const void*, std::pair<std::type_index, std::uint32_t>> shared_;
};

/// cereal archive that reads a Payload written by anyone. Throws DecodeError on bytes that cannot
/// be; never allocates more than kDecodeBase + kDecodePerByte * bytes, never recurses deeper than
/// kMaxDepth.
class InArchive : public cereal::InputArchive<InArchive, cereal::AllowEmptyClassElision> {
 public:
  explicit InArchive(const Payload& in)
      : cereal::InputArchive<InArchive, cereal::AllowEmptyClassElision>(this),
        block_(block_of(in)),
        left_(block_.bytes),
        refs_(in.refs),
        memory_(kDecodeBase + kDecodePerByte * block_.bytes.size()) {}

  void read(void* data, std::size_t size) {
    if (size > left_.size()) throw DecodeError("it ends too early");
    if (size != 0) std::memcpy(data, left_.data(), size);
    left_.remove_prefix(size);
  }
  std::size_t remaining() const { return left_.size(); }
  void align() {
    const auto over = (block_.bytes.size() - left_.size()) % kArrayAlignment;
    skip(over == 0 ? 0 : kArrayAlignment - over);
  }
  /// The next bytes where they stand. Without `keep` they go with the payload.
  Block take(std::size_t size) {
    const auto taken = left_.substr(0, size);
    skip(size);
    return {taken, block_.keep};
  }

  ObjectPtr reference() {
    std::uint32_t index = 0;
    read(&index, sizeof index);
    if (index >= refs_.size()) throw DecodeError("it names a ref that did not come with it");
    return refs_[index];
  }

  void charge(std::uint64_t bytes) {
    if (bytes > memory_) throw DecodeError("it would take more than 64 times its size in memory");
    memory_ -= bytes;
  }

  /// The next count of elements belongs to a container whose elements take this much.
  void expect_elements(std::uint64_t memory) { element_memory_ = memory; }
  std::uint64_t read_count() {
    std::uint64_t count = 0;
    read(&count, sizeof count);
    if (count > left_.size()) throw DecodeError("it has a length beyond its end");
    charge(count * std::exchange(element_memory_, 1));
    return count;
  }

  void enter() {
    if (++depth_ > kMaxDepth) throw DecodeError("it nests deeper than 64 containers or pointers");
  }
  void leave() { --depth_; }

  void add_shared(std::shared_ptr<void> pointer, std::type_index type) {
    shared_.emplace_back(std::move(pointer), type);
  }
  std::shared_ptr<void> shared(std::uint32_t number, std::type_index type) const {
    if (number == 0 || number > shared_.size() || shared_[number - 1].second != type) {
      throw DecodeError("it shares a pointer that is not there");
    }
    return shared_[number - 1].first;
  }

 private:
  void skip(std::size_t size) {
    if (size > left_.size()) throw DecodeError("it ends too early");
    left_.remove_prefix(size);
  }

  const Block block_;
  std::string_view left_;
  const std::vector<ObjectPtr>& refs_;
  std::uint64_t memory_;
  std::uint64_t element_memory_ = 1;
  int depth_ = 0;
  std::vector<std::pair<std::shared_ptr<void>, std::type_index>> shared_;
};

// cereal calls these around every value.
template <class T>
void prologue(OutArchive& archive, const T&) {
  if constexpr (nests<T>) archive.enter();
}
template <class T>
void epilogue(OutArchive& archive, const T&) {
  if constexpr (nests<T>) archive.leave();
}
template <class T>
void prologue(InArchive& archive, const T&) {
  if constexpr (Container<T>) archive.expect_elements(element_memory<T>());
  if constexpr (nests<T>) archive.enter();
}
template <class T>
void epilogue(InArchive& archive, const T&) {
  if constexpr (nests<T>) archive.leave();
}

template <class T>
requires std::is_arithmetic_v<T>
void CEREAL_SAVE_FUNCTION_NAME(OutArchive& archive, const T& number) {
  archive.write(&number, sizeof number);
}
template <class T>
requires std::is_arithmetic_v<T>
void CEREAL_LOAD_FUNCTION_NAME(InArchive& archive, T& number) {
  if constexpr (std::is_same_v<T, bool>) {
    std::uint8_t byte = 0;
    archive.read(&byte, 1);
    if (byte > 1) throw DecodeError("it has a bool that is neither true nor false");
    number = byte == 1;
  } else {
    archive.read(&number, sizeof number);
  }
}

template <class T>
requires std::is_enum_v<T>
void CEREAL_SAVE_FUNCTION_NAME(OutArchive& archive, const T& value) {
  archive.write(&value, sizeof value);
}
template <class T>
requires std::is_enum_v<T>
void CEREAL_LOAD_FUNCTION_NAME(InArchive& archive, T& value) {
  std::underlying_type_t<T> number{};
  CEREAL_LOAD_FUNCTION_NAME(archive, number);
  if constexpr (requires { EnumRange<T>::first; }) {
    if (number < static_cast<decltype(number)>(EnumRange<T>::first) ||
        number > static_cast<decltype(number)>(EnumRange<T>::last)) {
      throw DecodeError("it has an enumerator that does not exist");
    }
  }
  value = static_cast<T>(number);
}

template <class Archive, class T>
requires(
    std::is_same_v<Archive, OutArchive> ||
    std::is_same_v<Archive,
                   InArchive>) void CEREAL_SERIALIZE_FUNCTION_NAME(Archive& archive,
                                                                   cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}

template <class T>
void CEREAL_SAVE_FUNCTION_NAME(OutArchive& archive, const cereal::SizeTag<T>& tag) {
  const auto count = static_cast<std::uint64_t>(tag.size);
  archive.write(&count, sizeof count);
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(InArchive& archive, cereal::SizeTag<T>& tag) {
  tag.size = static_cast<std::remove_reference_t<decltype(tag.size)>>(archive.read_count());
}

template <class T>
void CEREAL_SAVE_FUNCTION_NAME(OutArchive& archive, const cereal::BinaryData<T>& block) {
  archive.write(block.data, static_cast<std::size_t>(block.size));
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(InArchive& archive, cereal::BinaryData<T>& block) {
  using Element = std::remove_pointer_t<std::remove_reference_t<T>>;
  if constexpr (std::is_same_v<Element, bool>) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(block.size); ++i)
      CEREAL_LOAD_FUNCTION_NAME(archive, static_cast<bool*>(block.data)[i]);
  } else {
    archive.read(block.data, static_cast<std::size_t>(block.size));
  }
}

}  // namespace troupe::detail

CEREAL_SETUP_ARCHIVE_TRAITS(troupe::detail::InArchive, troupe::detail::OutArchive)

namespace cereal {
// Our functions for enums rather than cereal's, which do not check.
template <class E>
requires std::is_enum_v<E>
struct specialize<troupe::detail::OutArchive, E, specialization::non_member_load_save>
    : std::true_type {
};
template <class E>
requires std::is_enum_v<E>
struct specialize<troupe::detail::InArchive, E, specialization::non_member_load_save>
    : std::true_type {
};
}  // namespace cereal
