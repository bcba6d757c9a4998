#include "session/queries/node_token.hpp"

#include <future>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <troupe/errors.hpp>

#include "config/token.hpp"
#include "node/token_request.hpp"
#include "session/process.hpp"

namespace troupe::runtime {

config::Secret ask_node_for_token(const std::string& holder, const config::Secret& grant,
                                  std::chrono::milliseconds timeout) {
  auto& process = Process::current();
  const auto asked = std::make_shared<std::promise<std::string>>();
  auto answer = asked->get_future();
  process.post([&process, asked, request = node::token_request(holder, grant)] {
    process.ask_node(request, [asked](const std::string& text) { asked->set_value(text); });
  });
  if (answer.wait_for(timeout) != std::future_status::ready) {
    raise({.kind = Failure::Kind::TimedOut,
           .message = fmt::format("the node has not given the cluster's token within {} ms",
                                  timeout.count())});
  }
  const auto given = nlohmann::json::parse(answer.get(), nullptr, false);
  const bool has_token = given.is_object() && given.contains("token");
  const auto token =
      has_token ? config::parse_token(given.at("token").get<std::string>()) : std::nullopt;
  if (token) return *token;
  raise({.kind = Failure::Kind::Refused,
         .message = given.is_object() ? given.value("error", "the node gives no token")
                                      : "the node gives no token"});
}

}  // namespace troupe::runtime
