#include "transfer/links.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "log/log.hpp"
#include "store/codec.hpp"

namespace troupe::transfer {
namespace {

transport::Outgoing message_of(std::uint64_t number, store::JobId job, store::ObjectId object) {
  transport::Outgoing message;
  auto free = message.root().initTransferFree();
  free.setJob(job.value());
  store::write_object(free.initObject(), object);
  free.setNumber(number);
  return message;
}

}  // namespace

Links::~Links() {
  for (auto& [node, link] : links_) {
    if (link.connection) link.connection->finish();
  }
}

void Links::free(const store::NodeAddress& at, store::JobId job, store::ObjectId object) {
  if (!at.node) return;
  const auto [found, is_new] = links_.try_emplace(at.node, loop_, at, options_.first_wait);
  auto& link = found->second;
  link.listed.push_back({++link.last_number, job, object});
  if (link.listed.size() > options_.most_listed) {
    link.listed.pop_front();
    if (!std::exchange(link.overflowed, true))
      log::warn(fmt::format(
          "{} has more than {} objects to free that it cannot be told of: the first of them stay "
          "there until their owner ends",
          to_string(at), options_.most_listed));
  }
  if (link.connection) return link.connection->send(message_of(link.last_number, job, object));
  if (is_new) connect(link);
}

void Links::node_ended(NodeId node) {
  ended_.insert(node);
  if (const auto found = links_.find(node); found != links_.end()) end(found);
}

void Links::job_ended(store::JobId job) {
  for (auto next = links_.begin(); next != links_.end();) {
    const auto link = next++;
    std::erase_if(link->second.listed, [job](const Free& free) { return free.job == job; });
    if (link->second.listed.empty() && !link->second.connection) end(link);
  }
}

std::size_t Links::listed() const {
  std::size_t sum = 0;
  for (const auto& [node, link] : links_) sum += link.listed.size();
  return sum;
}

void Links::end(LinkAt link) {
  if (const auto connection = link->second.connection) connection->close();
  links_.erase(link);
}

template <class Then>
auto Links::unless_over(const Link& link, Then then) {
  return [this, alive = std::weak_ptr(alive_), node = link.to.node, attempt = link.attempt,
          then = std::move(then)](const auto&... what) {
    if (alive.expired()) return;
    const auto found = links_.find(node);
    if (found != links_.end() && found->second.attempt == attempt) then(found->second, what...);
  };
}

void Links::connect(Link& link) {
  link.attempt = ++last_attempt_;
  transport::connect(
      loop_, {.host = link.to.host, .port = link.to.port, .unix_name = {}}, options_.as,
      unless_over(link, [this](Link& same, const transport::ConnectionPtr& connection,
                               const transport::Accepted&) { opened(same, connection); }),
      unless_over(
          link, [this](Link& same, const transport::Denied& denied) { failed(same, denied.why); }));
}

void Links::opened(Link& link, const transport::ConnectionPtr& connection) {
  link.connection = connection;
  connection->hand_over(
      {},
      unless_over(link,
                  [this](Link& same, wire::Message::Reader message) {
                    acknowledged(same, message.isTransferFreed() ? message.getTransferFreed() : 0);
                  }),
      unless_over(link, [this](Link& same, const std::string& why) { failed(same, why); }));
  for (const auto& free : link.listed)
    connection->send(message_of(free.number, free.job, free.object));
}

/// What is no answer to what was sent comes from no node: it is tried again as one that is not
/// there.
void Links::acknowledged(Link& link, std::uint64_t number) {
  if (number == 0 || number > link.last_number) {
    const auto connection = link.connection;
    connection->close();
    return failed(link, "it answers something else than it was told");
  }
  while (!link.listed.empty() && link.listed.front().number <= number) {
    link.listed.pop_front();
    link.wait = options_.first_wait;
  }
}

void Links::failed(Link& link, const std::string& why) {
  link.connection = nullptr;
  if (link.listed.empty()) return end(links_.find(link.to.node));
  const auto node = link.to.node;
  const bool is_first = !std::exchange(link.watched, true);
  if (is_first)
    log::warn(fmt::format("{} cannot be told to free objects, and is tried again: {}",
                          to_string(link.to), why));
  link.timer.expires_after(
      std::exchange(link.wait, std::min(2 * link.wait, options_.longest_wait)));
  link.timer.async_wait(unless_over(link, [this](Link& same, boost::system::error_code error) {
    if (!error) connect(same);
  }));
  if (is_first && watch_) watch_(node);
}

}  // namespace troupe::transfer
