#include "admin.hpp"

#include <chrono>
#include <cstdio>
#include <optional>

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>

#include <troupe/errors.hpp>

#include "config/json.hpp"
#include "output.hpp"
#include "transport/find_token.hpp"
#include "transport/patience.hpp"
#include "transport/silence_timer.hpp"
#include "transport/socket/socket.hpp"

namespace troupe::cli {
namespace {

bool warn(const std::string& line) {
  say(stderr, fmt::format("troupe: {}\n", line));
  return true;
}

/// One connection of an administrator, and the loop that runs it while somebody waits.
class Session {
 public:
  Session(const FoundHead& head, const config::FoundToken& token, std::string request)
      : head_(head) {
    transport::ClientOptions client;
    client.self.role = wire::Role::ADMIN;
    client.key = token.secret;
    client.key_from = token.from;
    transport::connect_patiently(
        loop_, head.at, client, {.again = warn},
        [this, request = std::move(request)](transport::ConnectionPtr open,
                                             const transport::Accepted&) {
          opened(std::move(open), request);
        },
        [this](const transport::Denied& denied) {
          // Somebody has taken the connection: the file may be right.
          refused_ = denied.refused;
          closed_ = denied.why +
                    (denied.refused       ? ""
                     : denied.may_be_busy ? head_.origin()
                                          : head_.advice()) +
                    transport::about_other_head(head_.at);
        });
  }
  ~Session() {
    if (connection_) connection_->close();
  }

  nlohmann::json wait_for_answer(std::chrono::seconds timeout) {
    run_until([this] { return answer_.has_value(); }, timeout);
    if (answer_) return *answer_;
    raise({.kind = refused_ ? Failure::Kind::Refused : Failure::Kind::Disconnected,
           .message = closed_.value_or(silence(timeout) + (connection_ ? "" : head_.advice()))});
  }

  void wait_for_end(std::chrono::seconds timeout) {
    run_until([] { return false; }, timeout);
    if (!closed_) raise({.kind = Failure::Kind::TimedOut, .message = silence(timeout)});
  }

 private:
  void opened(transport::ConnectionPtr open, const std::string& request) {
    connection_ = std::move(open);
    connection_->hand_over(
        {},
        [this](wire::Message::Reader message) {
          if (message.isAdminReply())
            answer_ = nlohmann::json::parse(message.getAdminReply().cStr());
        },
        [this](const std::string& why) { closed_ = why; });
    transport::Outgoing out;
    out.root().setAdminRequest(request);
    connection_->send(out);
  }

  template <class Done>
  void run_until(Done done, std::chrono::seconds timeout) {
    transport::run_until(loop_, timeout, [&] { return done() || closed_; });
  }

  std::string silence(std::chrono::seconds timeout) const {
    return fmt::format("the head at {} did not do it within {} s",
                       transport::format_endpoint(head_.at.host, head_.at.port), timeout.count());
  }

  boost::asio::io_context loop_{1};
  FoundHead head_;
  transport::ConnectionPtr connection_;
  std::optional<nlohmann::json> answer_;
  std::optional<std::string> closed_;
  bool refused_ = false;  // by the head, or the head by this side
};

/// As a caller with another token is refused: who listens there speaks Troupe. One attempt.
bool speaks_troupe(const transport::Endpoint& at, const config::Secret& key) {
  boost::asio::io_context loop{1};
  transport::ClientOptions client;
  client.self.role = wire::Role::ADMIN;
  client.key = key;
  bool speaks = false, is_done = false;
  transport::connect(
      loop, at, client,
      [&](transport::ConnectionPtr open, const transport::Accepted&) {
        speaks = is_done = true;
        open->close();
      },
      [&](const transport::Denied& denied) {
        speaks = denied.refused;
        is_done = true;
      });
  transport::run_until(loop, std::chrono::seconds(2), [&] { return is_done; });
  return speaks;
}

}  // namespace

std::optional<Neighbour> troupe_at(const transport::Endpoint& at, const config::FoundToken* token) {
  if (!speaks_troupe(at, token ? token->secret : config::random_token())) return std::nullopt;
  const Neighbour other{.what = "a head or a worker of Troupe with another token"};
  if (!token) return other;
  try {
    const auto status = ask_head({.at = at, .file = {}}, *token, {{"do", "status"}});
    return Neighbour{.what = fmt::format("the head of cluster {}, up {:.0f} s",
                                         status.at("cluster").get<std::string>(),
                                         status.at("up_seconds").get<double>()),
                     .has_our_token = true};
  } catch (const Error&) {
    return other;
  }
}

nlohmann::json ask_head(const FoundHead& head, const config::FoundToken& token,
                        const nlohmann::json& request, std::chrono::seconds timeout) {
  return Session(head, token, config::to_text(request)).wait_for_answer(timeout);
}

nlohmann::json ask_nodes(const FoundHead& head, const config::FoundToken& token,
                         const nlohmann::json& request, std::chrono::seconds timeout) {
  auto answer = ask_head(head, token, request, timeout);
  if (const auto error = answer.find("error"); error != answer.end())
    raise({.kind = Failure::Kind::Refused, .message = error->get<std::string>()});
  return answer;
}

bool say_who_is_silent(const nlohmann::json& answer, const std::string& lacking) {
  const auto& silent = answer.at("silent");
  for (const auto& node : silent) {
    say(stderr,
        fmt::format("troupe: node {} has not answered: {}\n", node.get<std::string>(), lacking));
  }
  return silent.empty();
}

nlohmann::json stop_head(const FoundHead& head, const config::FoundToken& token) {
  Session session(head, token, R"({"do": "stop"})");
  auto answer = session.wait_for_answer(kAnswerOfHead);
  session.wait_for_end(std::chrono::seconds(10));
  return answer;
}

}  // namespace troupe::cli
