#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace troupe::runtime {

/// What stands in the rings between two processes that run the same program. Both ends are of one
/// build on one machine, so these are plain structs; the reader copies them before it believes
/// them.
///
///   call:  CallHead, then for each argument its length (u32) and its bytes
///   reply: ReplyHead, then the bytes of the value
struct CallHead {
  enum State : std::uint32_t {
    Queued = 0,   ///< by the caller
    Taken = 1,    ///< by the callee: it runs
    Revoked = 2,  ///< by the caller, before it was taken: it does not run
  };
  std::uint64_t id = 0;
  std::uint64_t name = 0;  ///< detail::FunctionKey
  std::uint64_t offset = 0;
  std::uint32_t state = Queued;  ///< atomic in the ring: taking and revoking exclude each other
  std::uint8_t kind = 0;         ///< Work::Kind
  /// Its content comes through the socket; this is its place in the order.
  std::uint8_t via_socket = 0;
  std::uint16_t arguments = 0;
  std::uint64_t called = 0;  ///< os::Ticks, as user code made the call; 0: not said
};
static_assert(sizeof(CallHead) == 40);

struct ReplyHead {
  std::uint64_t id = 0;
  std::uint64_t run_ns = 0;  ///< how long a task ran; 0: not measured
};

/// The id of a call through a ring: an index into what its caller has in flight, and how often that
/// was used before.
struct ChannelCallId {
  /// Tells it apart from calls through a socket.
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 63;
  std::uint32_t slot = 0;
  std::uint32_t use = 0;  // 31 bits

  std::uint64_t packed() const { return kMark | std::uint64_t{use} << 32 | slot; }
  static ChannelCallId of(std::uint64_t packed) {
    return {.slot = static_cast<std::uint32_t>(packed),
            .use = static_cast<std::uint32_t>((packed & ~kMark) >> 32)};
  }
  static bool is(std::uint64_t id) { return (id & kMark) != 0; }
};

inline std::atomic_ref<std::uint32_t> state_of(std::byte* record) {
  return std::atomic_ref(reinterpret_cast<CallHead*>(record)->state);
}

/// Takes lengths and bytes one after the other; nullopt past the end.
class RecordReader {
 public:
  explicit RecordReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class Head>
  std::optional<Head> head() {
    Head head;
    if (rest_.size() < sizeof head) return std::nullopt;
    std::memcpy(&head, rest_.data(), sizeof head);
    rest_ = rest_.subspan(sizeof head);
    return head;
  }
  std::optional<std::string_view> bytes() {
    const auto length = head<std::uint32_t>();
    if (!length || *length > rest_.size()) return std::nullopt;
    const std::string_view found(reinterpret_cast<const char*>(rest_.data()), *length);
    rest_ = rest_.subspan(*length);
    return found;
  }
  std::string_view rest() const {
    return {reinterpret_cast<const char*>(rest_.data()), rest_.size()};
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace troupe::runtime
