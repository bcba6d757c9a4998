#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <troupe/detail/codec.hpp>
#include <troupe/ref.hpp>

namespace troupe {

/// A read-only array of plain values (numbers, enums, aggregates of them without padding) that is
/// not copied if that can be avoided: an array of 100 KiB or more is stored once in the memory of
/// each node that uses it, and every process there reads the same bytes. Use it as an argument, a
/// result, or a member of either.
///
/// A copy shares the values and costs nothing. The memory stays as long as any copy in this process
/// lives, also after the ref that it came from is gone. Immutable; any thread may use it. Writing
/// through a const_cast is a mistake: if the array is in the object store (100 KiB or more), the
/// process ends with SIGSEGV, and the error says why; if it is smaller, this process's own copy
/// changes.
///
///   troupe::Ref<troupe::Array<float>> pixels = troupe::put(troupe::Array<float>(load()));
///   troupe::Array<float> view = pixels.get();   // no copy, whatever its size
template <class T>
class Array {
  static_assert(detail::packed<T>,
                "troupe: an Array holds plain values without padding or pointers; use std::vector "
                "for others");

 public:
  using value_type = T;

  Array() = default;
  /// Takes over the values without a copy.
  explicit Array(std::vector<T> values) {
    auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    values_ = *owner;
    keep_ = std::move(owner);
  }
  static Array copy_of(std::span<const T> values) {
    return Array(std::vector<T>(values.begin(), values.end()));
  }

  const T* data() const { return values_.data(); }
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  const T& operator[](std::size_t index) const { return values_[index]; }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  std::span<const T> span() const { return values_; }
  operator std::span<const T>() const { return values_; }
  /// Keeps the values in place, for views of other libraries that outlive this array.
  const std::shared_ptr<const void>& keep() const { return keep_; }

  void save(detail::OutArchive& archive) const {
    const std::uint64_t count = values_.size();
    archive.write(&count, sizeof count);
    archive.align();
    archive.write(values_.data(), values_.size_bytes());
  }
  void load(detail::InArchive& archive) {
    std::uint64_t count = 0;
    archive.read(&count, sizeof count);
    archive.align();
    if (count > archive.remaining() / sizeof(T))
      throw DecodeError("it has a length beyond its end");
    const auto block = archive.take(count * sizeof(T));
    if (block.keep && reinterpret_cast<std::uintptr_t>(block.bytes.data()) % alignof(T) == 0) {
      values_ = {reinterpret_cast<const T*>(block.bytes.data()), count};
      keep_ = block.keep;
    } else {
      archive.charge(block.bytes.size());
      std::vector<T> values(count);
      if (count != 0) std::memcpy(values.data(), block.bytes.data(), block.bytes.size());
      *this = Array(std::move(values));
    }
  }

 private:
  std::span<const T> values_;
  std::shared_ptr<const void> keep_;
};

/// An array that is written in its final place, so that put() copies nothing. One thread at a time.
///
///   troupe::NewArray<float> pixels(count);
///   render_into(pixels.values());
///   auto ref = troupe::put(std::move(pixels));   // Ref<Array<float>>
template <class T>
class NewArray {
  static_assert(detail::packed<T>,
                "troupe: an Array holds plain values without padding or pointers");

 public:
  /// Memory for `count` values, which is not cleared. Blocks while the object store makes room.
  /// Throws StoreFull.
  explicit NewArray(std::size_t count) : count_(count) {
    if (count > (std::numeric_limits<std::size_t>::max() - kHead) / sizeof(T)) {
      throw std::length_error("troupe: an array of more bytes than memory can have");
    }
    const auto bytes = kHead + count * sizeof(T);
    if (bytes >= detail::kStoredBytes) room_ = detail::store_room(bytes, detail::Owner::Self);
    if (!room_) payload_.bytes.resize(bytes);
    const std::uint64_t length = count;
    std::memset(start(), 0, kHead);
    std::memcpy(start(), &length, sizeof length);
  }

  std::span<T> values() { return {reinterpret_cast<T*>(start() + kHead), count_}; }
  std::size_t size() const { return count_; }

 private:
  template <class U>
  friend Ref<Array<U>> put(NewArray<U>&& array);

  // The count, and up to where values stand.
  static constexpr std::size_t kHead = detail::kArrayAlignment;
  char* start() { return room_ ? room_->bytes().data() : payload_.bytes.data(); }

  std::size_t count_;
  std::unique_ptr<detail::Room> room_;
  detail::Payload payload_;
};

/// Makes the array a value for other processes. It cannot be written any more.
template <class T>
Ref<Array<T>> put(NewArray<T>&& array) {
  auto payload = std::move(array.payload_);
  if (array.room_) payload.stored = std::exchange(array.room_, nullptr)->seal();
  return detail::ref_to<Array<T>>(detail::put_object(std::move(payload)));
}

}  // namespace troupe
