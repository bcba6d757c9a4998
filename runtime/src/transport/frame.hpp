#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <capnp/common.h>

namespace troupe::transport {

inline constexpr std::string_view kMagic = "TRP1";
inline constexpr std::size_t kHeaderBytes = 8;
inline constexpr std::string_view kNotTroupe = "the peer does not speak Troupe: ";

/// Bytes of a stranger for people and logs: one line, printable, at most `most` of them.
std::string printable(std::string_view bytes, std::size_t most = 32);

/// Cuts a stream of bytes into frames. Pure: no socket, no clock. One that is larger than the
/// buffer gets memory of its own, which grows as its bytes arrive: what is only announced costs
/// nothing.
///
///     [reading] --bad magic, bad length--> [broken]     for good; error() says why
class FrameReader {
 public:
  static constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
  /// Until more comes at once: most connections say little, and malloc gives so much without a look
  /// around.
  static constexpr std::size_t kFirstBytes = 1000;

  explicit FrameReader(std::size_t most_body_bytes);

  /// For frames whose header has not been looked at.
  void set_limit(std::size_t most_body_bytes) { limit_ = most_body_bytes; }
  /// Where the next bytes go, never empty. Call after next() has said that there is no more.
  std::span<char> space();
  /// So many bytes were put into space().
  void filled(std::size_t bytes);
  /// The body of the next frame, in place; it stays until next() or space() is called again.
  /// nullopt: more bytes are needed, or error() is not empty.
  std::optional<std::span<const capnp::word>> next();

  const std::string& error() const { return error_; }
  /// What is lost if the stream ends here, as a sentence's end: "in the middle of a message (...)".
  /// Empty: nothing.
  std::string cut_off() const;

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  bool check_header();
  std::optional<std::span<const capnp::word>> next_large();
  void start_large(std::size_t body_bytes);
  void make_room();
  std::string_view buffered() const { return {bytes() + begin_, end_ - begin_}; }
  char* bytes() const { return reinterpret_cast<char*>(buffer_.get()); }

  std::size_t limit_;
  std::string error_;
  // Words: frames are multiples of 8 bytes, so each one in it is aligned.
  std::unique_ptr<capnp::word[]> buffer_;
  std::size_t room_ = kFirstBytes;  // of the buffer
  std::size_t begin_ = 0;           // of what was not handed out
  std::size_t end_ = 0;

  std::unique_ptr<char, Free> large_;  // body of a frame that does not fit the buffer
  std::size_t large_bytes_ = 0;        // that it will have; 0: none is being read
  std::size_t large_room_ = 0;
  std::size_t large_filled_ = 0;
};

}  // namespace troupe::transport
