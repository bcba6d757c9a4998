#include "transport/socket/acceptor.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>

namespace troupe::transport {
namespace {

constexpr std::size_t kLeastPending = 16, kMostPending = 1024;

/// The rest is for who has proven itself, and for what this process opens for its own work.
std::size_t quarter_of_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kLeastPending;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, kLeastPending, kMostPending);
}

}  // namespace

// ---- RefusalLog ---------------------------------------------------------------------------------

RefusalLog::RefusalLog(asio::io_context& loop, std::string who, AcceptLimits limits, Log log)
    : who_(std::move(who)), limits_(limits), log_(std::move(log)), timer_(loop) {}

void RefusalLog::refused(const std::string& why) {
  if (!log_) return;
  if (!in_period_) begin_period();
  if (lines_ < limits_.most_lines) {
    ++lines_;
    return log_(fmt::format("{}refused a connection: {}", who_, why));
  }
  ++left_out_;
  last_ = why;
}

void RefusalLog::begin_period() {
  in_period_ = true;
  lines_ = left_out_ = 0;
  timer_.expires_after(limits_.log_period);
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](boost::system::error_code stopped) {
    if (!stopped && !alive.expired()) end_period();
  });
}

void RefusalLog::end_period() {
  in_period_ = false;
  if (left_out_ == 0) return;
  log_(fmt::format("{}refused {} more connections within {} ms, the last because: {}", who_,
                   left_out_, limits_.log_period.count(), last_));
  begin_period();
}

// ---- Acceptor -----------------------------------------------------------------------------------

Acceptor::Acceptor(asio::io_context& loop, std::string who, AcceptLimits limits,
                   RefusalLog::Log log)
    : most_(limits.most_pending != 0 ? limits.most_pending : quarter_of_descriptors()),
      refusals_(loop, std::move(who), limits, std::move(log)) {}

Acceptor::~Acceptor() {
  alive_.reset();
  for (auto& caller : std::exchange(callers_, {})) {
    if (const auto handshake = caller.handshake.lock()) handshake->give_up("");
    caller.connection->close();
  }
}

void Acceptor::accept(Socket socket, ServerOptions options, OnAccepted accepted) {
  make_room();
  auto connection = Connection::make(std::move(socket), kBeforeHandshake);
  const auto caller = callers_.insert(callers_.end(), Pending{connection, {}});
  caller->handshake = transport::accept(
      std::move(connection), std::move(options),
      [this, alive = std::weak_ptr(alive_), caller, accepted = std::move(accepted)](
          ConnectionPtr proven, const Accepted& who) {
        if (alive.expired()) return proven->close();
        callers_.erase(caller);
        accepted(std::move(proven), who);
      },
      [this, alive = std::weak_ptr(alive_), caller](const Denied& why) {
        if (!alive.expired()) denied(caller, why);
      });
}

/// One that was told why it is refused may have to read that first: its connection counts until it
/// is closed. A program of this machine that ends in the middle of its handshake, as programs do,
/// was not refused, and is no news.
void Acceptor::denied(Callers::iterator caller, const Denied& why) {
  const bool of_this_machine = caller->connection->peer() == "unix";
  if (caller->connection->is_over()) callers_.erase(caller);
  if (!why.left || !of_this_machine) refusals_.refused(why.why);
}

void Acceptor::make_room() {
  while (!callers_.empty() && callers_.front().connection->is_over()) callers_.pop_front();
  if (callers_.size() < most_) return;
  std::erase_if(callers_, [](const Pending& caller) { return caller.connection->is_over(); });
  while (callers_.size() >= most_) give_up_oldest();
}

void Acceptor::give_up_oldest() {
  const auto oldest = callers_.begin();
  const auto connection = oldest->connection;
  if (const auto handshake = oldest->handshake.lock()) {
    connection->close();  // so that denied() forgets it
    return handshake->give_up(fmt::format(
        "{} had not proven itself when {} others had not either: it made room for a new one",
        connection->peer(), most_));
  }
  connection->close();
  callers_.erase(oldest);
}

}  // namespace troupe::transport
