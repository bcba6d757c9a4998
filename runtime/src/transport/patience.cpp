#include "transport/patience.hpp"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "transport/socket/dial.hpp"

namespace troupe::transport {
namespace {

/// Held by the attempt under way.
struct Attempts : std::enable_shared_from_this<Attempts> {
  Attempts(asio::io_context& io, Endpoint endpoint, ClientOptions client, Patience how)
      : loop(io), to(std::move(endpoint)), options(std::move(client)), patience(std::move(how)) {}

  asio::io_context& loop;
  Endpoint to;
  ClientOptions options;
  Patience patience;
  std::function<void(ConnectionPtr, Accepted)> accepted;
  std::function<void(Denied)> denied;
  int made = 0;

  void next() {
    ++made;
    connect(
        loop, to, options,
        [self = shared_from_this()](ConnectionPtr connection, Accepted who) {
          self->accepted(std::move(connection), std::move(who));
        },
        [self = shared_from_this()](Denied why) { self->refused(std::move(why)); });
  }

  void refused(Denied why) {
    if (why.may_be_busy && made < patience.attempts && wanted(why)) return next();
    if (why.may_be_busy && made > 1) why.why += fmt::format(" (tried {} times)", made);
    denied(std::move(why));
  }

  bool wanted(const Denied& why) const {
    return !patience.again || patience.again(fmt::format("{}; trying again", why.why));
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
