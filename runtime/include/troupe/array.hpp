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
/// not copied where that can be avoided: one of 100 KiB and more lies once in the memory of each
/// node that uses it, and every process there looks at the same bytes. As an argument, a result, or
/// a member of either.
///
/// A copy shares the values and costs nothing; the memory stays as long as any copy in this process
/// lives, also after the ref that it came from is gone. Immutable, any thread. Writing through a
/// const_cast is a mistake: of an array that lies in the object store (100 KiB or more) it ends the
/// process with SIGSEGV, whose error says so; of a smaller one it changes this process's own copy.
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
  /// Takes the values over: no copy.
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
  /// What keeps the values where they are, for views of other libraries that outlive this.
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

/// An array that is written where it will lie: put() then copies nothing. One thread at a time.
///
///   troupe::NewArray<float> pixels(count);
///   render_into(pixels.values());
///   auto ref = troupe::put(std::move(pixels));   // Ref<Array<float>>
template <class T>
class NewArray {
  static_assert(detail::packed<T>,
                "troupe: an Array holds plain values without padding or pointers");

 public:
  /// Memory for that many values, which are not cleared. Blocks while the object store makes room.
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

/// The array as a value for others. It cannot be written any more.
template <class T>
Ref<Array<T>> put(NewArray<T>&& array) {
  auto payload = std::move(array.payload_);
  if (array.room_) payload.stored = std::exchange(array.room_, nullptr)->seal();
  return detail::ref_to<Array<T>>(detail::put_object(std::move(payload)));
}

}  // namespace troupe
