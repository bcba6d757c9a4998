#include "transport/connection.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <tuple>
#include <utility>

#include <capnp/serialize.h>
#include <fmt/format.h>
#include <kj/exception.h>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "transport/byte_stream.hpp"
#include "transport/frame.hpp"
#include "transport/outbox.hpp"

namespace troupe::transport {
namespace {

using boost::system::error_code;

/// Bytes read before other connections of the loop get their turn.
constexpr std::size_t kTurnBytes = std::size_t{1} << 20;
/// How long finish() waits for a peer that takes nothing, and how long for one that does not hang
/// up.
constexpr std::chrono::seconds kFinishPatience{5};
constexpr std::chrono::seconds kLingerPatience{1};
/// What a reader may follow, in words. A handler reads a field more than once; pointers that all
/// lead to one big value must still not make it cost much more than it did to send.
std::uint64_t traversal_limit(std::size_t words) { return 16 * std::uint64_t{words} + 65536; }

std::string what_broke(const ByteStream::Result& result) {
  return result.closed_by_peer() ? "the peer closed the connection"
                                 : fmt::format("the connection broke: {}", result.error_text());
}

}  // namespace

/// Pending operations know this weakly, but for the timer of finish(); what runs holds it, and sees
/// in state_ that a handler has closed or dropped the connection.
class Connection::Impl : public std::enable_shared_from_this<Connection::Impl> {
 public:
  Impl(Socket socket, Limits limits)
      : stream_(std::move(socket), [this] { unreachable(); }),
        limits_(limits),
        reader_(limits.frame_bytes),
        finish_timer_(stream_.executor()) {}

  void start(OnMessage on_message, OnClosed on_closed) {
    set_handlers(std::move(on_message), std::move(on_closed));
    if (state_ == State::Made) state_ = State::Open;
    wait_to_read();
  }

  void hand_over(Limits limits, OnMessage on_message, OnClosed on_closed) {
    if (state_ == State::Finishing || (state_ == State::Closed && why_closed_.empty())) return;
    const auto before = handlers_;  // may hold what owns this connection: goes last
    limits_ = limits;
    reader_.set_limit(limits.frame_bytes);
    set_handlers(std::move(on_message), std::move(on_closed));
    if (state_ == State::Made) state_ = State::Open;
    if (handlers_ && !in_turn_) later(&Impl::read_turn);
  }

  template <class... Message>
  void send(Message&&... parts) {
    auto& message = std::get<0>(std::tie(parts...));
    queue(message.body().size(), [&] { outbox_.push(std::forward<Message>(parts)...); });
  }
  void send(std::shared_ptr<Outgoing> message) {
    const auto body = message->body().size();
    queue(body, [&] { outbox_.push(std::move(message)); });
  }
  void send_frame(std::span<const char> frame) {
    queue(frame.size() - kHeaderBytes, [&] { outbox_.push(frame); });
  }

  /// `push` puts a message of so many bytes into the outbox.
  void queue(std::size_t body, const auto& push) {
    if (!is_open() || !write_error_.empty()) return;
    if (body > limits_.frame_bytes) {
      return fail_later(fmt::format("a message of {} bytes was to be sent, the limit is {}", body,
                                    limits_.frame_bytes));
    }
    if (outbox_.bytes() + body > limits_.outbox_bytes) {
      return fail_later(
          fmt::format("the peer does not keep up: {} bytes wait to be sent, and {} more were to "
                      "be; the limit is {}",
                      outbox_.bytes(), body, limits_.outbox_bytes));
    }
    push();
    // Not at once: what else is sent in this turn of the loop goes out in the same write.
    if (in_turn_ || stream_.waits_to_write() || std::exchange(flush_posted_, true)) return;
    later(&Impl::posted_flush);
  }

  std::vector<os::UniqueFd> take_descriptors() { return std::exchange(descriptors_, {}); }
  void flush_now() {
    if (is_open() && !stream_.waits_to_write()) flush();
  }
  void when_written(std::function<void()> written) {
    on_written_ = std::move(written);
    awaited_bytes_ = written_bytes_ + outbox_.bytes();
    tell_written();
  }
  std::uint64_t written_bytes() const { return written_bytes_; }
  bool is_unix() const { return stream_.local_host().empty(); }
  void drain();
  std::size_t message_bytes() const { return message_bytes_; }
  int peer_pid() const { return stream_.peer_pid(); }
  os::UniqueFd detach();
  void finish();
  void close();
  bool is_open() const { return state_ == State::Made || state_ == State::Open; }
  bool is_over() const { return state_ == State::Closed; }
  std::size_t queued_bytes() const { return outbox_.bytes(); }
  Socket::executor_type executor() { return stream_.executor(); }
  int descriptor() { return stream_.descriptor(); }
  const std::string& peer() const { return stream_.peer(); }
  const std::string& local_host() const { return stream_.local_host(); }

 private:
  enum class State { Made, Open, Finishing, Closed };
  struct Handlers {
    OnMessage on_message;
    OnClosed on_closed;
  };
  using Member = void (Impl::*)();

  void set_handlers(OnMessage on_message, OnClosed on_closed) {
    handlers_ = nullptr;
    if (on_message)
      handlers_ = std::make_shared<Handlers>(Handlers{std::move(on_message), std::move(on_closed)});
  }

  void later(Member member) {
    boost::asio::post(stream_.executor(), [weak = weak_from_this(), member] {
      if (const auto alive = weak.lock()) ((*alive).*member)();
    });
  }

  void wait_to_read();
  void wait_to_write();
  void read_turn();
  bool read_once(std::size_t& turn);
  ByteStream::Result transmit();
  void deliver();
  void deliver(std::span<const capnp::word> body);
  void flush();
  void posted_flush();
  void tell_written();
  void report_written();
  void write_failed(std::string why);
  void unreachable();
  void fail(std::string why);
  void fail_later(std::string why);
  void report_failure();
  void hang_up();
  void discard();
  void watch_finish();

  ByteStream stream_;
  Limits limits_;
  FrameReader reader_;
  Outbox outbox_;
  boost::asio::steady_timer finish_timer_;
  std::vector<os::UniqueFd> descriptors_;  // arrived, not taken
  // Shared with the delivery that runs: a handler may replace itself.
  std::shared_ptr<Handlers> handlers_;
  State state_ = State::Made;
  std::size_t message_bytes_ = 0;  // of the one that is delivered
  bool in_turn_ = false;           // deliver() runs, and flushes at its end
  bool flush_posted_ = false;
  bool hung_up_ = false;  // finishing, and all is sent
  std::uint64_t written_bytes_ = 0;
  std::uint64_t awaited_bytes_ = 0;  // of written_bytes_, for on_written_
  std::function<void()> on_written_;
  std::string write_error_;  // nothing can be sent any more; what has arrived is still delivered
  std::string why_closed_;   // to be reported by fail_later
};

// ---- reading ------------------------------------------------------------------------------------

void Connection::Impl::wait_to_read() {
  if (state_ == State::Closed) return;
  stream_.wait_readable([weak = weak_from_this()] {
    if (const auto alive = weak.lock()) alive->read_turn();
  });
}

/// Delivers what is there, reads what has arrived, and so on until there is no more or others
/// should have their turn.
void Connection::Impl::read_turn() {
  if (state_ == State::Finishing) return discard();
  if (state_ == State::Closed) return report_failure();
  bool more = true;
  for (std::size_t turn = 0; state_ == State::Open && handlers_;) {
    deliver();
    if (state_ != State::Open || !handlers_) return;
    if (!more || turn >= kTurnBytes) return wait_to_read();
    more = read_once(turn);
  }
}

void Connection::Impl::drain() {
  if (in_turn_) return;
  for (bool more = true; state_ == State::Open && handlers_;) {
    deliver();
    if (!more || state_ != State::Open || !handlers_) return;
    std::size_t turn = 0;
    more = read_once(turn) || turn > 0;
  }
}

/// False where there is nothing more to read now, or ever.
bool Connection::Impl::read_once(std::size_t& turn) {
  const auto space = reader_.space();
  const auto got = stream_.read(space, descriptors_);
  switch (got.outcome) {
    case ByteStream::Outcome::Moved:
      reader_.filled(got.bytes);
      turn += got.bytes;
      return got.bytes == space.size() || !write_error_.empty();
    case ByteStream::Outcome::WouldBlock:
      if (!write_error_.empty()) fail(std::exchange(write_error_, {}));
      return false;
    case ByteStream::Outcome::Ended: {
      const auto cut_off = reader_.cut_off();
      fail(cut_off.empty() ? what_broke(got) : what_broke(got) + " " + cut_off);
      return false;
    }
    case ByteStream::Outcome::Broken:
      fail(fmt::format("the connection broke: {}", got.error_text()));
      return false;
  }
  return false;
}

void Connection::Impl::deliver() {
  if (std::exchange(in_turn_, true)) return;
  struct Leave {
    bool& in_turn;
    ~Leave() { in_turn = false; }
  };
  {
    const Leave leave{in_turn_};
    while (state_ == State::Open && handlers_) {
      const auto body = reader_.next();
      if (!body) break;
      deliver(*body);
    }
  }
  if (!reader_.error().empty() && state_ == State::Open && handlers_) return fail(reader_.error());
  if (state_ == State::Open && !stream_.waits_to_write() && !flush_posted_ && !outbox_.empty())
    flush();
}

void Connection::Impl::deliver(std::span<const capnp::word> body) {
  const auto handlers = handlers_;
  message_bytes_ = body.size_bytes();
  const kj::ArrayPtr<const capnp::word> segments[] = {{body.data(), body.size()}};
  const capnp::ReaderOptions options{.traversalLimitInWords = traversal_limit(body.size()),
                                     .nestingLimit = limits_.nesting};
  try {
    capnp::SegmentArrayMessageReader message(segments, options);
    handlers->on_message(message.getRoot<wire::Message>());
  } catch (const kj::Exception& error) {
    fail(fmt::format("the peer sent a malformed message: {}",
                     printable(error.getDescription().cStr(), 200)));
  }
}

// ---- writing ------------------------------------------------------------------------------------

void Connection::Impl::wait_to_write() {
  stream_.wait_writable([weak = weak_from_this()] {
    const auto alive = weak.lock();
    if (alive && alive->state_ != State::Closed) alive->flush();
  });
}

/// One write of what is next in the outbox, with its descriptors.
ByteStream::Result Connection::Impl::transmit() {
  std::array<iovec, 16> pieces;
  std::array<int, kMostDescriptors> descriptors;
  const auto with = outbox_.descriptors();
  std::ranges::transform(with, descriptors.begin(), &os::UniqueFd::get);
  const auto sent = stream_.write(std::span(pieces).first(outbox_.gather(pieces)),
                                  std::span(descriptors).first(with.size()));
  outbox_.drop(sent.bytes);
  written_bytes_ += sent.bytes;
  return sent;
}

void Connection::Impl::flush() {
  while (!outbox_.empty()) {
    const auto sent = transmit();
    if (sent.outcome == ByteStream::Outcome::WouldBlock) return wait_to_write();
    if (sent.outcome != ByteStream::Outcome::Moved) return write_failed(what_broke(sent));
    tell_written();
  }
  if (state_ == State::Finishing) hang_up();
}

void Connection::Impl::posted_flush() {
  flush_posted_ = false;
  if (state_ != State::Closed) flush();
}

void Connection::Impl::tell_written() {
  if (on_written_ && written_bytes_ >= awaited_bytes_) later(&Impl::report_written);
}

void Connection::Impl::report_written() {
  if (!on_written_ || written_bytes_ < awaited_bytes_) return;
  const auto report = std::exchange(on_written_, nullptr);
  report();
}

/// The peer may have said why before it closed: what has arrived is delivered first.
void Connection::Impl::write_failed(std::string why) {
  if (state_ == State::Finishing) return close();
  write_error_ = std::move(why);
  outbox_.clear();
  if (handlers_) later(&Impl::read_turn);
}

void Connection::Impl::unreachable() {
  write_failed(
      fmt::format("{} acknowledges nothing any more: its host or the network in between is gone",
                  stream_.peer()));
}

// ---- the end ------------------------------------------------------------------------------------

void Connection::Impl::fail(std::string why) {
  if (!is_open()) return;
  const auto handlers = std::exchange(handlers_, nullptr);
  close();
  if (handlers && handlers->on_closed) handlers->on_closed(why);
}

/// Of send(), whose caller is in the middle of something and does not expect to be called.
void Connection::Impl::fail_later(std::string why) {
  auto handlers = std::exchange(handlers_, nullptr);
  close();
  handlers_ = std::move(handlers);
  why_closed_ = std::move(why);
  later(&Impl::report_failure);
}

/// To nobody, where the connection is between two users: the next one is told.
void Connection::Impl::report_failure() {
  if (!handlers_ || why_closed_.empty()) return;
  const auto handlers = std::exchange(handlers_, nullptr);
  const auto why = std::exchange(why_closed_, {});
  if (handlers->on_closed) handlers->on_closed(why);
}

void Connection::Impl::close() {
  // May hold what owns this connection: goes last.
  const auto handlers = std::exchange(handlers_, nullptr);
  state_ = State::Closed;
  outbox_.clear();
  why_closed_.clear();
  finish_timer_.cancel();
  stream_.close();
}

void Connection::Impl::finish() {
  if (!is_open()) return;
  const auto handlers = std::exchange(handlers_, nullptr);
  if (!write_error_.empty()) return close();
  state_ = State::Finishing;
  if (!stream_.waits_to_write()) flush();
  if (state_ == State::Finishing && !hung_up_) watch_finish();
}

os::UniqueFd Connection::Impl::detach() {
  if (!is_open()) return {};
  // May hold what owns this connection: goes last.
  const auto handlers = std::exchange(handlers_, nullptr);
  while (!outbox_.empty() && transmit().outcome == ByteStream::Outcome::Moved) {
  }
  os::UniqueFd socket;
  if (outbox_.empty() && reader_.cut_off().empty() && write_error_.empty()) {
    socket = stream_.release();
    state_ = State::Closed;
  } else {
    close();
  }
  return socket;
}

/// All is sent. To close a socket that has unread bytes would reset it, and the peer could lose
/// what it was sent, so the peer's end of file is waited for.
void Connection::Impl::hang_up() {
  if (std::exchange(hung_up_, true)) return;
  stream_.shut_down_writing();
  watch_finish();
  discard();
}

void Connection::Impl::discard() {
  std::array<char, 4096> unread;
  std::vector<os::UniqueFd> nobodys;
  for (int reads = 0; reads < 64; ++reads) {
    const auto got = stream_.read(unread, nobodys);
    nobodys.clear();
    if (got.outcome == ByteStream::Outcome::WouldBlock) break;
    if (got.outcome == ByteStream::Outcome::Moved) continue;
    if (got.outcome == ByteStream::Outcome::Ended && !hung_up_)
      return;  // the peer may still take what is queued
    return close();
  }
  wait_to_read();
}

/// Holds the connection while it finishes, and ends it where in one period nothing has gone out.
void Connection::Impl::watch_finish() {
  finish_timer_.expires_after(hung_up_ ? kLingerPatience : kFinishPatience);
  finish_timer_.async_wait([self = shared_from_this(), before = outbox_.bytes()](error_code error) {
    if (error || self->state_ != State::Finishing) return;
    if (self->hung_up_ || self->outbox_.bytes() == before) return self->close();
    self->watch_finish();
  });
}

// ---- Connection ---------------------------------------------------------------------------------

Connection::Connection(Socket socket, Limits limits)
    : impl_(std::make_shared<Impl>(std::move(socket), limits)) {}
Connection::~Connection() {
  if (impl_->is_open()) impl_->close();
}

std::shared_ptr<Connection> Connection::make(Socket socket, Limits limits) {
  return std::shared_ptr<Connection>(new Connection(std::move(socket), limits));
}

void Connection::start(OnMessage on_message, OnClosed on_closed) {
  impl_->start(std::move(on_message), std::move(on_closed));
}
void Connection::hand_over(Limits limits, OnMessage on_message, OnClosed on_closed) {
  impl_->hand_over(limits, std::move(on_message), std::move(on_closed));
}
void Connection::send(Outgoing& message) { impl_->send(message); }
void Connection::send(Outgoing&& message) { impl_->send(std::move(message)); }
void Connection::send(std::shared_ptr<Outgoing> message) { impl_->send(std::move(message)); }
void Connection::send_frame(std::span<const char> frame) { impl_->send_frame(frame); }
std::size_t Connection::message_bytes() const { return impl_->message_bytes(); }
void Connection::send_with_descriptors(Outgoing&& message, std::vector<os::UniqueFd> descriptors) {
  impl_->send(std::move(message), std::move(descriptors));
}
std::vector<os::UniqueFd> Connection::take_descriptors() { return impl_->take_descriptors(); }
void Connection::flush() { impl_->flush_now(); }
void Connection::when_written(std::function<void()> written) {
  impl_->when_written(std::move(written));
}
std::uint64_t Connection::written_bytes() const { return impl_->written_bytes(); }
bool Connection::is_unix() const { return impl_->is_unix(); }
void Connection::drain() { impl_->drain(); }
int Connection::peer_pid() const { return impl_->peer_pid(); }
os::UniqueFd Connection::detach() { return impl_->detach(); }
void Connection::finish() { impl_->finish(); }
void Connection::close() { impl_->close(); }
bool Connection::is_open() const { return impl_->is_open(); }
bool Connection::is_over() const { return impl_->is_over(); }
std::size_t Connection::queued_bytes() const { return impl_->queued_bytes(); }
Socket::executor_type Connection::executor() const { return impl_->executor(); }
int Connection::descriptor() const { return impl_->descriptor(); }
const std::string& Connection::peer() const { return impl_->peer(); }
std::string Connection::local_host() const { return impl_->local_host(); }

}  // namespace troupe::transport
