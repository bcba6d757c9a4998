#include "node/token_request.hpp"

#include <nlohmann/json.hpp>

#include "config/token.hpp"
#include "transport/handshake/proof.hpp"

namespace troupe::node {
namespace {

using nlohmann::json;

/// Empty: it is none.
std::string text_in(const json& request, const char* name) {
  const auto found = request.find(name);
  const bool is_text = found != request.end() && found->is_string();
  return is_text ? found->get<std::string>() : std::string();
}

}  // namespace

std::string answer_token_request(std::string_view text, const config::Secret& token) {
  const auto request = json::parse(text, nullptr, false);
  if (!request.is_object() || text_in(request, "do") != "token")
    return json{{"error", "this is nothing that a node does for its processes"}}.dump();
  const auto grant = config::parse_token(text_in(request, "grant"));
  const auto expected = transport::token_grant(token, text_in(request, "holder"));
  if (!grant || !transport::equal(expected, *grant)) {
    return json{
        {"error", "the cluster's token is given only where somebody who has it has granted that"}}
        .dump();
  }
  return json{{"token", config::format_token(token)}}.dump();
}

std::string token_request(const std::string& holder, const config::Secret& grant) {
  return json{{"do", "token"}, {"holder", holder}, {"grant", config::format_token(grant)}}.dump();
}

}  // namespace troupe::node
