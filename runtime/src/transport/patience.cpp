#include "transport/patience.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/steady_timer.hpp>

#include "transport/socket/dial.hpp"

namespace troupe::transport {
namespace {

/// Held by the attempt under way.
struct Attempts : std::enable_shared_from_this<Attempts> {
  Attempts(asio::io_context& io, Endpoint endpoint, ClientOptions client, Patience how)
      : loop(io),
        to(std::move(endpoint)),
        options(std::move(client)),
        patience(std::move(how)),
        pause(io) {}

  asio::io_context& loop;
  Endpoint to;
  ClientOptions options;
  Patience patience;
  std::function<void(ConnectionPtr, Accepted)> accepted;
  std::function<void(Denied)> denied;
  int made = 0;
  std::optional<Denied> busy;  // of the last attempt whose server was
  std::chrono::milliseconds spent{0};
  asio::steady_timer pause;
  std::chrono::steady_clock::time_point due;  // for the next of those that are made for `time`

  std::chrono::milliseconds longest_attempt() const {
    return std::max(options.timeout, Patience::kLongestAttempt);
  }

  void next() {
    ++made;
    if (made > patience.attempts)
      options.timeout = std::clamp(2 * options.timeout, options.timeout, longest_attempt());
    spent += options.timeout;
    due = std::chrono::steady_clock::now() + options.timeout;
    connect(
        loop, to, options,
        [self = shared_from_this()](ConnectionPtr connection, Accepted who) {
          self->accepted(std::move(connection), std::move(who));
        },
        [self = shared_from_this()](Denied why) { self->refused(std::move(why)); });
  }

  void refused(Denied why) {
    if (busy && why.unreachable) why = *busy;
    if (!why.may_be_busy) return denied(std::move(why));
    busy = why;
    const bool is_early = made < patience.attempts;
    if ((is_early || spent < patience.time) && wanted(why))
      return is_early ? next() : next_when_due();
    if (made > 1) why.why += fmt::format(" (tried {} times)", made);
    denied(std::move(why));
  }

  void next_when_due() {
    pause.expires_at(due);
    pause.async_wait(
        [self = shared_from_this()](const boost::system::error_code&) { self->next(); });
  }

  bool wanted(const Denied& why) const {
    const auto limit = std::chrono::duration<double>(patience.time).count();
    return !patience.again ||
           patience.again(fmt::format("{}; trying again{}", why.why,
                                      limit > 0 ? fmt::format(", for {:g} s in all", limit) : ""));
  }
};

}  // namespace

void connect_patiently(asio::io_context& loop, Endpoint to, ClientOptions options,
                       Patience patience, std::function<void(ConnectionPtr, Accepted)> accepted,
                       std::function<void(Denied)> denied) {
  auto attempts =
      std::make_shared<Attempts>(loop, std::move(to), std::move(options), std::move(patience));
  attempts->accepted = std::move(accepted);
  attempts->denied = std::move(denied);
  attempts->next();
}

}  // namespace troupe::transport
