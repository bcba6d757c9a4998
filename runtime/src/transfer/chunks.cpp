#include "transfer/chunks.hpp"

#include <cassert>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "store/memory/arena.hpp"
#include "store/memory/checksum.hpp"
#include "store/types.hpp"
#include "transport/frame.hpp"

namespace troupe::transfer {
namespace {

constexpr std::string_view kChunkMagic = "TRPD";
constexpr std::string_view kMessageMagic = "TRP1";
constexpr std::size_t kPrefixBytes = 8;  // magic and length, of both kinds

std::uint64_t little(const std::byte* at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  return value;
}

void put_little(char* at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<char>(value >> (8 * i));
}

}  // namespace

std::array<char, kChunkHeaderBytes> chunk_header(std::uint64_t offset,
                                                 std::span<const std::byte> bytes) {
  assert(bytes.size() <= kMostChunkBytes);
  std::array<char, kChunkHeaderBytes> header{};
  kChunkMagic.copy(header.data(), kChunkMagic.size());
  put_little(header.data() + 4, bytes.size(), 4);
  put_little(header.data() + 8, offset, 8);
  put_little(header.data() + 16, store::checksum(bytes), 8);
  return header;
}

std::span<std::byte> ChunkReader::space() {
  if (state_ == State::Bytes) return into_.subspan(verified_ + filled_, chunk_bytes_ - filled_);
  if (state_ == State::Message) {
    return std::as_writable_bytes(std::span(message_)).subspan(filled_, message_bytes_ - filled_);
  }
  const auto wanted = filled_ < kPrefixBytes ? kPrefixBytes : kChunkHeaderBytes;
  return std::span(header_).subspan(filled_, wanted - filled_);
}

ChunkReader::Result ChunkReader::filled(std::size_t bytes) {
  filled_ += bytes;
  switch (state_) {
    case State::Header:
      return header_filled();
    case State::Bytes:
      return filled_ < chunk_bytes_ ? Result::More : chunk_filled();
    case State::Message:
      if (filled_ < message_bytes_) return Result::More;
      state_ = State::Header;
      filled_ = 0;
      return Result::Message;
  }
  return Result::More;
}

ChunkReader::Result ChunkReader::header_filled() {
  if (filled_ < kPrefixBytes) return Result::More;
  const std::string_view magic(reinterpret_cast<const char*>(header_.data()), 4);
  const auto length = little(header_.data() + 4, 4);
  if (magic == kChunkMagic) return filled_ < kChunkHeaderBytes ? Result::More : chunk_announced();
  if (magic != kMessageMagic) {
    return garbage(fmt::format("'{}' is the start of neither a chunk nor a message",
                               transport::printable(magic)));
  }
  if (length == 0 || length > kMostMessageBytes || length % sizeof(capnp::word) != 0) {
    return garbage(fmt::format("a message of {} bytes is announced; the limit is {}", length,
                               kMostMessageBytes));
  }
  message_ = std::vector<capnp::word>(length / sizeof(capnp::word));
  message_bytes_ = length;
  state_ = State::Message;
  filled_ = 0;
  return Result::More;
}

ChunkReader::Result ChunkReader::chunk_announced() {
  chunk_bytes_ = static_cast<std::uint32_t>(little(header_.data() + 4, 4));
  const auto offset = little(header_.data() + 8, 8);
  checksum_ = little(header_.data() + 16, 8);
  const auto left = into_.size() - verified_;
  const bool is_empty = chunk_bytes_ == 0 && left > 0;
  if (offset != verified_ || chunk_bytes_ > left || chunk_bytes_ > kMostChunkBytes || is_empty) {
    return garbage(
        fmt::format("a chunk of {} bytes at {} is announced, where {} bytes from {} on are missing",
                    chunk_bytes_, offset, left, verified_));
  }
  state_ = State::Bytes;
  filled_ = 0;
  if (!warm_) store::prepare_to_write(into_.subspan(verified_, chunk_bytes_));
  return chunk_bytes_ == 0 ? chunk_filled() : Result::More;
}

ChunkReader::Result ChunkReader::chunk_filled() {
  const auto bytes = into_.subspan(verified_, chunk_bytes_);
  const auto checksum = store::checksum(bytes);
  if (checksum != checksum_) {
    error_ = fmt::format("the XXH3 of the {} at {} is {:016x}, and {:016x} was sent",
                         store::format_bytes(chunk_bytes_), verified_, checksum, checksum_);
    return Result::Damaged;
  }
  verified_ += chunk_bytes_;
  complete_ = verified_ == into_.size();
  state_ = State::Header;
  filled_ = 0;
  return Result::Chunk;
}

ChunkReader::Result ChunkReader::garbage(std::string why) {
  error_ = std::move(why);
  return Result::Garbage;
}

}  // namespace troupe::transfer
