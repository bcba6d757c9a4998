#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "os/unique_fd.hpp"
#include "store/service/remote_store_client.hpp"
#include "transport/connection.hpp"
#include "transport/silence_timer.hpp"

namespace troupe::transfer {

/// The bytes of an object where they lie: in an arena, mapped to be read.
struct Source {
  std::shared_ptr<store::Arena> arena;
  std::shared_ptr<const store::Window> window;
  std::uint64_t offset = 0;  ///< in the arena
  std::uint64_t bytes = 0;   ///< of the object

  std::span<const std::byte> whole() const {
    return std::span<const std::byte>(window->bytes()).first(bytes);
  }
};

struct SendingOptions {
  /// The receiver is told to wait, where nothing else is sent.
  std::chrono::milliseconds keep_alive{2'000};
  /// Of a receiver that takes nothing, or does not hang up at the end, in time that this process
  /// runs.
  std::chrono::milliseconds silence{10'000};
};

/// Sends the bytes of one object to one receiver, from a byte on, as they become available. Lives
/// on one loop, every call on its thread; holds itself until it has ended.
///
///     [waiting] --serve()--> [sending] --the last byte--> [sent] --the receiver hangs up--> ended
///         |---- refuse() -------'--------------------------^
///         '---- stop(), the receiver hangs up or takes nothing --> ended
class Sending : public std::enable_shared_from_this<Sending> {
 public:
  /// `complete`: the receiver has taken all there was to send. Its memory is not read any more.
  using OnEnded = std::function<void(bool complete)>;

  Sending(boost::asio::io_context& loop, os::UniqueFd socket, std::uint64_t from,
          SendingOptions options, OnEnded on_ended);
  void start();
  void serve(Source source, std::uint64_t available);
  void available(std::uint64_t bytes);  ///< from the object's start
  /// Nothing more comes, because; a chunk that was begun is not completed then.
  void refuse(const store::Refusal& refusal);
  void stop();

 private:
  using Clock = std::chrono::steady_clock;

  void wait_to_read();
  void wait_to_write();
  void turn();
  bool write_some(std::size_t& turn);
  bool prepare_next();
  void keep_alive();
  void expect_to_be_taken();
  void end(bool complete);
  bool is_sent() const { return head_sent_ == head_.size() && chunk_left_ == 0; }
  /// For bytes of the object, of which none can be sent now.
  bool waits() const { return is_sent() && !hung_up_; }

  boost::asio::io_context& loop_;
  boost::system::error_code not_watched_;
  transport::Socket socket_;
  const SendingOptions options_;
  OnEnded on_ended_;
  boost::asio::steady_timer timer_;
  transport::SilenceTimer silence_;
  std::optional<Source> source_;
  std::uint64_t offset_;  // of the next byte that is in no chunk yet
  std::uint64_t available_ = 0;
  std::vector<char> head_;  // a chunk's header, or a message
  std::size_t head_sent_ = 0;
  std::uint64_t chunk_at_ = 0;  // of the next byte of the chunk
  std::uint32_t chunk_left_ = 0;
  bool any_chunk_ = false;
  bool refused_ = false;
  std::vector<char> refusal_;  // a message
  bool last_ = false;          // nothing follows what is being sent
  bool hung_up_ = false;
  bool waits_to_write_ = false;
  bool ended_ = false;
  Clock::time_point moved_;
};

}  // namespace troupe::transfer
