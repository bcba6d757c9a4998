#include "transfer/pull.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <capnp/serialize.h>
#include <fmt/format.h>
#include <kj/exception.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "store/codec.hpp"
#include "transport/frame.hpp"
#include "transport/socket/socket.hpp"

namespace troupe::transfer {
namespace {

using boost::system::error_code;

/// Received before other pulls of the loop get their turn.
constexpr std::size_t kTurnBytes = std::size_t{4} << 20;
/// Waited for before the thread wakes up, so that it does not for each few packets.
constexpr std::size_t kWakeBytes = std::size_t{256} << 10;
constexpr int kMostHops = 8;
constexpr int kMostReturns = 16;

}  // namespace

store::Refusal origin_gone(const store::ObjectId& object, std::uint64_t bytes,
                           const store::NodeAddress& origin) {
  return {store::Refusal::Kind::Unknown,
          fmt::format("object {} ({}) cannot be had from {}: the node that had it is "
                      "gone: the head says so",
                      to_string(object), store::format_bytes(bytes), to_string(origin))};
}

Pull::Pull(boost::asio::io_context& loop, Wanted wanted, std::span<std::byte> into,
           PullOptions options, OnProgress on_progress, OnDone on_done)
    : loop_(loop),
      wanted_(std::move(wanted)),
      into_(into),
      options_(std::move(options)),
      on_progress_(std::move(on_progress)),
      on_done_(std::move(on_done)),
      pause_(loop),
      silence_(loop.get_executor()),
      stall_(loop.get_executor()),
      out_of_reach_(loop.get_executor()) {}

void Pull::start() {
  if (done_) return;
  progressed_ = Clock::now();
  ask(wanted_.at);
}

void Pull::cancel() {
  done_ = true;
  hang_up();
  pause_.cancel();
  out_of_reach_.cancel();
  on_progress_ = nullptr;
  on_done_ = nullptr;
}

void Pull::finish(std::optional<store::Refusal> refusal) {
  const auto done = std::exchange(on_done_, nullptr);
  cancel();
  if (done) done(std::move(refusal));
}

/// Whatever is still under way for the connection is late from now on.
void Pull::hang_up() {
  ++attempt_;
  silence_.cancel();
  stall_.cancel();
  socket_.reset();
  reader_.reset();
}

// ---- asking -------------------------------------------------------------------------------------

void Pull::ask(store::NodeAddress whom) {
  hang_up();
  asked_ = std::move(whom);
  const transport::Endpoint to{.host = asked_.host, .port = asked_.port, .unix_name = {}};
  const transport::ClientOptions client{.self = options_.self,
                                        .key = options_.key,
                                        .timeout = options_.connect,
                                        .nobody_there = "that node has ended"};
  transport::connect(
      loop_, to, client,
      [self = shared_from_this(), attempt = attempt_](const transport::ConnectionPtr& connection,
                                                      const transport::Accepted&) {
        if (self->attempt_ == attempt) self->connected(connection);
      },
      [self = shared_from_this(), attempt = attempt_](const transport::Denied& denied) {
        if (self->attempt_ == attempt) self->denied(denied);
      });
}

void Pull::connected(const transport::ConnectionPtr& connection) {
  if (asks_origin()) within_reach();
  transport::Outgoing message;
  auto request = message.root().initTransferRequest();
  store::write_object(request.initObject(), wanted_.object);
  request.setJob(wanted_.job.value());
  request.setBytes(into_.size());
  request.setFrom(verified_);
  store::write_node(request.initReceiver(), options_.receiver);
  request.setFailed(failed_node_.value());
  connection->send(std::move(message));
  auto fd = connection->detach();
  if (!fd)
    return failed(Kind::Stopped, "the connection was closed at once, or something came unasked");
  error_code not_watched;
  socket_.emplace(transport::adopt(loop_, transport::OwnedFd(fd.release()), not_watched));
  if (not_watched)
    return failed(Kind::Stopped,
                  "this machine cannot watch another socket: " + not_watched.message());
  reader_.emplace(into_, verified_, wanted_.warm);
  expect_a_byte();
  expect_bytes_of_object();
  wait_to_read();
}

void Pull::denied(const transport::Denied& denied) {
  if (asks_origin()) {
    const bool may_pass = denied.unreachable || denied.may_be_busy;
    if (!may_pass) within_reach();
    if (denied.refused) return finish({{Kind::Stopped, progress() + ": " + denied.why}});
    watch_origin();
    if (may_pass && may_come_back()) {
      const auto pause = options_.pause * (1 << std::min(unreached_++, 10));
      return try_again(std::min(pause, options_.longest_pause));
    }
  }
  failed(denied.may_be_busy ? Kind::TimedOut : Kind::Unknown, denied.why);
}

void Pull::watch_origin() {
  if (!std::exchange(watched_, true) && options_.watch) options_.watch(wanted_.at.node);
}

bool Pull::may_come_back() {
  if (!std::exchange(is_out_of_reach_, true)) {
    out_of_reach_.start(options_.unreachable,
                        [self = shared_from_this()] { self->is_for_long_ = true; });
  }
  return !is_for_long_;
}

void Pull::within_reach() {
  unreached_ = 0;
  is_out_of_reach_ = is_for_long_ = false;
  out_of_reach_.cancel();
}

void Pull::ended() {
  origin_gone_ = true;
  if (!done_ && asks_origin()) finish_without_origin();
}

void Pull::finish_without_origin() {
  finish(origin_gone(wanted_.object, into_.size(), wanted_.at));
}

// ---- receiving ----------------------------------------------------------------------------------

void Pull::wait_to_read() {
  const auto enough = static_cast<int>(std::min(reader_->space().size(), kWakeBytes));
  ::setsockopt(socket_->native_handle(), SOL_SOCKET, SO_RCVLOWAT, &enough, sizeof enough);
  socket_->async_wait(transport::Socket::wait_read, [self = shared_from_this(),
                                                     attempt = attempt_](error_code error) {
    if (self->attempt_ == attempt && error != boost::asio::error::operation_aborted)
      self->read_turn();
  });
}

void Pull::read_turn() {
  std::size_t turn = 0;
  while (turn < kTurnBytes) {
    const auto space = reader_->space();
    const auto got = ::recv(socket_->native_handle(), space.data(), space.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) {
      const auto why = got == 0 ? "closed" : "broke: " + std::generic_category().message(errno);
      return failed(Kind::Stopped, fmt::format("the connection was {}", why));
    }
    turn += static_cast<std::size_t>(got);
    const auto attempt = attempt_;
    took(reader_->filled(static_cast<std::size_t>(got)));
    if (attempt != attempt_) return;
  }
  if (turn > 0) expect_a_byte();
  wait_to_read();
}

void Pull::took(ChunkReader::Result result) {
  switch (result) {
    case ChunkReader::Result::More:
      return;
    case ChunkReader::Result::Chunk:
      verified_ = reader_->verified();
      progressed_ = Clock::now();
      expect_bytes_of_object();
      if (on_progress_) on_progress_(verified_);
      if (reader_ && reader_->is_complete()) finish(std::nullopt);
      return;
    case ChunkReader::Result::Message:
      return on_message(reader_->message());
    case ChunkReader::Result::Garbage:
      return failed(Kind::Damaged, "it sends something else than the object: " + reader_->error());
    case ChunkReader::Result::Damaged:
      return failed(Kind::Damaged, "bytes were changed on their way: " + reader_->error());
  }
}

void Pull::on_message(std::span<const capnp::word> segment) try {
  const kj::ArrayPtr<const capnp::word> segments[] = {{segment.data(), segment.size()}};
  capnp::SegmentArrayMessageReader reader(segments,
                                          {.traversalLimitInWords = 8192, .nestingLimit = 8});
  const auto message = reader.getRoot<wire::Message>();
  switch (message.which()) {
    case wire::Message::TRANSFER_WAIT:
      return;
    case wire::Message::TRANSFER_SENT_ON:
      return sent_on(store::read_node(message.getTransferSentOn()));
    case wire::Message::TRANSFER_REFUSED: {
      const auto refusal = message.getTransferRefused();
      const auto kind = std::min(refusal.getKind(), static_cast<std::uint16_t>(Kind::Stopped));
      return refused(
          {static_cast<Kind>(kind), transport::printable(refusal.getMessage().cStr(), 1000)});
    }
    default:
      return failed(Kind::Damaged, "it sends a message that is no answer");
  }
} catch (const kj::Exception& error) {
  failed(Kind::Damaged, fmt::format("it sends a malformed message: {}",
                                    transport::printable(error.getDescription().cStr(), 200)));
}

void Pull::sent_on(store::NodeAddress to) {
  if (++hops_ > kMostHops)
    return failed(Kind::Stopped, fmt::format("it was sent on {} times", hops_));
  ask(std::move(to));
}

void Pull::refused(const store::Refusal& why) {
  const bool later = why.kind == Kind::Busy || why.kind == Kind::TimedOut;
  if (!asks_origin()) return failed(why.kind, why.message);
  if (later && Clock::now() - progressed_ < options_.stall) return try_again(5 * options_.pause);
  finish({{why.kind, fmt::format("{}: {}", to_string(wanted_.at), why.message)}});
}

// ---- what goes wrong ----------------------------------------------------------------------------

void Pull::failed(Kind kind, const std::string& why) {
  if (!asks_origin()) {
    failed_node_ = asked_.node;
    hops_ = 0;
    if (origin_gone_) return finish_without_origin();
    if (++returns_ <= kMostReturns) return ask(wanted_.at);
    return finish({{Kind::Stopped,
                    fmt::format("{}: it was sent on {} times, and nobody had it; the last, {}: {}",
                                progress(), returns_, to_string(asked_), why)}});
  }
  if (++failures_ <= options_.retries)
    return try_again(options_.pause * (1 << std::min(failures_ - 1, 10)));
  const auto summary = kind == Kind::Unknown
                           ? fmt::format("{}: the node that had it is gone", progress())
                           : fmt::format("{}: {} attempts failed", progress(), failures_);
  finish({{kind, fmt::format("{}: {}", summary, why)}});
}

void Pull::try_again(std::chrono::milliseconds pause) {
  hang_up();
  hops_ = 0;
  pause_.expires_after(pause);
  pause_.async_wait([self = shared_from_this(), attempt = attempt_](error_code error) {
    if (!error && self->attempt_ == attempt) self->ask(self->wanted_.at);
  });
}

void Pull::expect_a_byte() {
  silence_.start(options_.silence, [self = shared_from_this()] {
    // Fewer bytes than wait_to_read() waits for are read all the same.
    int unread = 0, one = 1;
    const int socket = self->socket_->native_handle();
    if (::ioctl(socket, FIONREAD, &unread) == 0 && unread > 0) {
      ::setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
      return self->expect_a_byte();
    }
    self->failed(Kind::TimedOut,
                 fmt::format("nothing came for {} ms", self->options_.silence.count()));
  });
}

void Pull::expect_bytes_of_object() {
  stall_.start(options_.stall, [self = shared_from_this()] {
    self->failed(Kind::TimedOut,
                 fmt::format("it said to wait for {} ms", self->options_.stall.count()));
  });
}

/// "object 7.42 (100.0 MiB, of which 3.0 MiB have arrived) cannot be had from node 3
/// (10.0.0.7:4711)"
std::string Pull::progress() const {
  return fmt::format("object {} ({}, of which {} have arrived) cannot be had from {}",
                     to_string(wanted_.object), store::format_bytes(into_.size()),
                     store::format_bytes(verified_), to_string(wanted_.at));
}

}  // namespace troupe::transfer
