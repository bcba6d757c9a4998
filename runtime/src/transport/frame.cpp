#include "transport/frame.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

constexpr std::size_t kFirstChunk = std::size_t{256} << 10;

std::uint32_t body_bytes_of(const char* header) {
  const auto* length = reinterpret_cast<const unsigned char*>(header) + kMagic.size();
  return length[0] | std::uint32_t{length[1]} << 8 | std::uint32_t{length[2]} << 16 |
         std::uint32_t{length[3]} << 24;
}

}  // namespace

std::string printable(std::string_view bytes, std::size_t most) {
  std::string text;
  for (const char c : bytes.substr(0, std::min(bytes.find_first_of("\r\n"), most))) {
    if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

FrameReader::FrameReader(std::size_t most_body_bytes)
    : limit_(most_body_bytes),
      buffer_(std::make_unique_for_overwrite<capnp::word[]>(kFirstBytes / sizeof(capnp::word))) {}

std::span<char> FrameReader::space() {
  if (large_bytes_ != 0) {
    if (large_filled_ == large_room_) {
      large_room_ = std::min(large_bytes_, 2 * large_room_);
      auto* grown = static_cast<char*>(std::realloc(large_.get(), large_room_));
      if (!grown) throw std::bad_alloc();
      (void)large_.release();  // realloc has freed or moved it
      large_.reset(grown);
    }
    return {large_.get() + large_filled_, large_room_ - large_filled_};
  }
  const bool small = end_ == room_ && room_ < kBufferBytes;  // more may have come than it takes
  if (begin_ == end_) begin_ = end_ = 0;
  // A frame that was begun is moved to the front where it cannot end in place, or where one read
  // would bring little. begin_ stays a multiple of 8.
  const auto have = end_ - begin_;
  const auto whole =
      have < kHeaderBytes ? kHeaderBytes : kHeaderBytes + body_bytes_of(bytes() + begin_);
  if (small || begin_ + whole > room_ || room_ - end_ < room_ / 4) make_room();
  return {bytes() + end_, room_ - end_};
}

void FrameReader::make_room() {
  const auto have = end_ - begin_;
  if (room_ == kBufferBytes) {
    std::memmove(bytes(), bytes() + begin_, have);
  } else {
    auto grown = std::make_unique_for_overwrite<capnp::word[]>(kBufferBytes / sizeof(capnp::word));
    std::memcpy(grown.get(), bytes() + begin_, have);
    buffer_ = std::move(grown);
    room_ = kBufferBytes;
  }
  begin_ = 0;
  end_ = have;
}

void FrameReader::filled(std::size_t bytes) { (large_bytes_ != 0 ? large_filled_ : end_) += bytes; }

std::optional<std::span<const capnp::word>> FrameReader::next() {
  if (!error_.empty()) return std::nullopt;
  if (large_bytes_ != 0) return next_large();
  large_.reset();
  if (!check_header() || end_ - begin_ < kHeaderBytes) return std::nullopt;
  const std::size_t body = body_bytes_of(bytes() + begin_);
  if (kHeaderBytes + body > kBufferBytes) {
    start_large(body);
    return next_large();
  }
  if (end_ - begin_ < kHeaderBytes + body) return std::nullopt;
  const auto* words = buffer_.get() + (begin_ + kHeaderBytes) / sizeof(capnp::word);
  begin_ += kHeaderBytes + body;
  return std::span(words, body / sizeof(capnp::word));
}

std::optional<std::span<const capnp::word>> FrameReader::next_large() {
  if (large_filled_ < large_bytes_) return std::nullopt;
  const auto words = std::exchange(large_bytes_, 0) / sizeof(capnp::word);
  return std::span(reinterpret_cast<const capnp::word*>(large_.get()), words);
}

void FrameReader::start_large(std::size_t body_bytes) {
  begin_ += kHeaderBytes;
  large_bytes_ = body_bytes;
  large_room_ = std::min(body_bytes, kFirstChunk);
  large_.reset(static_cast<char*>(std::malloc(large_room_)));
  if (!large_) throw std::bad_alloc();
  // All of it belongs to this frame, which is larger than the buffer.
  large_filled_ = end_ - begin_;
  std::memcpy(large_.get(), bytes() + begin_, large_filled_);
  begin_ = end_ = 0;
}

/// False, with error_ set, where what has arrived cannot be the beginning of a frame.
bool FrameReader::check_header() {
  const auto have = buffered();
  const auto magic = have.substr(0, kMagic.size());
  if (magic != kMagic.substr(0, magic.size())) {
    error_ = fmt::format("{}it sent '{}'", kNotTroupe, printable(have));
  } else if (have.size() >= kHeaderBytes) {
    const auto body = body_bytes_of(have.data());
    if (body == 0 || body % sizeof(capnp::word) != 0) {
      error_ = fmt::format("bad frame: its length, {}, is not a positive multiple of 8 ('{}')",
                           body, printable(have.substr(0, kHeaderBytes)));
    } else if (body > limit_) {
      error_ = fmt::format("bad frame: it announces {} bytes, the limit is {} ('{}')", body, limit_,
                           printable(have.substr(0, kHeaderBytes)));
    }
  }
  return error_.empty();
}

std::string FrameReader::cut_off() const {
  if (large_bytes_ != 0) {
    return fmt::format("in the middle of a message ({} of {} bytes had arrived)", large_filled_,
                       large_bytes_);
  }
  if (begin_ == end_) return "";
  if (end_ - begin_ < kHeaderBytes)
    return fmt::format("in the middle of a frame's header ('{}')", printable(buffered()));
  return fmt::format("in the middle of a message ({} of {} bytes had arrived)",
                     end_ - begin_ - kHeaderBytes, body_bytes_of(bytes() + begin_));
}

}  // namespace troupe::transport
