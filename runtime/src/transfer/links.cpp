#include "transfer/links.hpp"

#include <utility>

#include <spdlog/spdlog.h>

#include "transport/patience.hpp"

namespace troupe::transfer {

Links::~Links() {
  for (auto& [node, link] : links_) {
    if (link.connection) link.connection->finish();
  }
}

void Links::send(const store::NodeAddress& to, transport::Outgoing&& message) {
  const auto [found, is_new] = links_.try_emplace(to.node);
  auto& link = found->second;
  if (link.connection) return link.connection->send(std::move(message));
  link.waiting.push_back(std::move(message));
  if (!is_new) return;
  link.number = ++last_number_;
  connect(to, link.number);
}

Links::Link* Links::find(std::uint32_t node, std::uint64_t number) {
  const auto found = links_.find(node);
  return found == links_.end() || found->second.number != number ? nullptr : &found->second;
}

void Links::connect(const store::NodeAddress& to, std::uint64_t number) {
  transport::Patience patience;
  patience.again = [alive = std::weak_ptr(alive_)](const std::string&) { return !alive.expired(); };
  transport::connect_patiently(
      loop_, {.host = to.host, .port = to.port, .unix_name = {}}, options_, std::move(patience),
      [this, alive = std::weak_ptr(alive_), node = to.node, number](const transport::ConnectionPtr& connection,
                                                                    const transport::Accepted&) {
        if (alive.expired()) return;
        auto& link = *find(node, number);
        link.connection = connection;
        connection->hand_over(
            {}, [](wire::Message::Reader) {},
            [this, node, number](const std::string&) {
              if (find(node, number) != nullptr) links_.erase(node);
            });
        for (auto& message : std::exchange(link.waiting, {})) connection->send(std::move(message));
      },
      [this, alive = std::weak_ptr(alive_), to, number](const transport::Denied& denied) {
        if (alive.expired()) return;
        spdlog::warn("{} was not told to free objects: {}", to_string(to), denied.why);
        if (find(to.node, number) != nullptr) links_.erase(to.node);
      });
}

}  // namespace troupe::transfer
