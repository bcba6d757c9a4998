#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "log/log.hpp"
#include "node/join.hpp"
#include "node/node_impl.hpp"
#include "wire/codec.hpp"

/// How a node and its head stay in touch.
namespace troupe::node {
namespace {

/// A head that echoes none of so many beats is called through another connection, too: a network
/// may have forgotten the one that there is, and tell neither end.
constexpr int kBeatsInVain = 5;
/// A node that stands still for longer may come to be lost.
constexpr std::chrono::seconds kWorthSaying{3};
constexpr auto kWhyStandstill = "it was stopped, or its machine slept, was paused or overloaded";

}  // namespace

std::string Node::Impl::head_name() const {
  return options_.head.host.empty()
             ? "the head"
             : fmt::format("the head at {}:{}", options_.head.host, options_.head.port);
}

void Node::Impl::on_open(transport::ConnectionPtr head, const transport::Accepted& accepted) {
  cluster_ = accepted.cluster;
  host_ = options_.host.empty() ? head->local_host() : options_.host;
  // The address at which it is, of those that its name may have.
  redial_to_ = head->is_unix() ? options_.head : transport::parse_endpoint(head->peer());
  head_ = transport::ResumableLine::make(std::move(head));
  head_->start([this](wire::Message::Reader message) { on_message(message); },
               [this](const std::string& why) { on_line_broken(why); });
  open_store();
  if (is_stopping()) return;
  transport::Outgoing message;
  auto join = message.root().initNodeJoin();
  write_join(join, options_, name_, host_, gpus_);
  runtime::write_address(join.initStore(), store_->address());
  head_->send(message);
  head_silence_.heard(Clock::now());
  beat();
}

void Node::Impl::on_line_broken(const std::string& why) {
  if (is_stopping()) return;
  if (!head_->is_resumable()) {
    head_.reset();
    return stop(fmt::format("{} is gone: {}{}", head_name(), why, about_standstill()), true);
  }
  why_broken_ = why;
  redial();
}

void Node::Impl::redial() {
  why_not_again_.clear();
  redial_ = std::make_shared<HeadRedial>(
      loop_, redial_to_, client_options(), self_,
      HeadRedial::Callbacks{
          .on_reached =
              [this] {
                head_->leave_connection();
                return head_->received();
              },
          .has_other_way = [this] { return head_->connection() != nullptr; },
          .failed =
              [this](const std::string& why) {
                if (why_not_again_.empty() && !head_->connection()) {
                  log::warn(fmt::format(
                      "the connection to {} has broken: {}. This node keeps its processes for {} s "
                      "without it (--head-silence), and tries to connect again: {}",
                      head_name(), why_broken_,
                      std::chrono::duration<double>(options_.head_silence).count(), why));
                }
                why_not_again_ = why;
              },
          .resumed =
              [this](transport::ConnectionPtr connection, std::uint64_t arrived) {
                redial_.reset();
                if (!head_->is_resumable_from(arrived)) {
                  connection->close();
                  return on_redial_ended(HeadRedial::End::Refused,
                                         "it has had other messages than this node sent");
                }
                head_->resume(std::move(connection), arrived);
                beats_in_vain_ = 0;
                send_beat();  // its echo is the sign of life, and no connection that may not last
                log::info(fmt::format("the connection to {} had broken ({}) and is made again",
                                      head_name(), why_broken_));
              },
          .ended = [this](HeadRedial::End how,
                          const std::string& why) { on_redial_ended(how, why); }});
  redial_->start(redial_pause_);
  redial_pause_ = std::clamp(2 * redial_pause_, HeadRedial::kFirstPause, HeadRedial::kLongestPause);
}

void Node::Impl::on_redial_ended(HeadRedial::End how, const std::string& why) {
  stop(how == HeadRedial::End::HeadGone
           ? fmt::format("{} is gone: {}{}", head_name(), why_broken_, about_standstill())
           : fmt::format("the connection to {} has broken ({}), and the head does not take this "
                         "node back: {}{}: start it again",
                         head_name(), why_broken_, why, about_standstill()),
       true);
}

std::string Node::Impl::describe_silence() const {
  const auto limit = std::chrono::duration<double>(options_.head_silence).count();
  if (redial_ && !head_->connection()) {
    return fmt::format(
        "the connection to {} has broken ({}) and could not be made again within {} s, for which "
        "this node keeps its processes (--head-silence){}{}",
        head_name(), why_broken_, limit, why_not_again_.empty() ? "" : ": ", why_not_again_);
  }
  return fmt::format(
      "{} is silent for more than {} s, for which this node keeps its processes (--head-silence)",
      head_name(), limit);
}

void Node::Impl::tell_store_usage() {
  const auto usage = store_->statistics();
  if (!usage || usage == told_usage_) return;
  told_usage_ = usage;
  transport::Outgoing message;
  auto out = message.root().initStoreUsage();
  out.setCapacity(usage->cap_bytes);
  out.setUsed(usage->object_bytes);
  out.setPinned(usage->pinned_bytes);
  out.setKept(usage->kept_bytes);
  out.setSpilled(usage->disk_bytes);
  out.setObjects(usage->objects);
  to_head(message);
}

void Node::Impl::tell_standstill(Clock::duration stood) {
  stood_still_ = {stood, Clock::now()};
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(stood);
  log::warn(fmt::format("this node stood still for {} s: {}",
                        std::chrono::duration_cast<std::chrono::seconds>(time).count(),
                        kWhyStandstill));
  transport::Outgoing message;
  message.root().setNodeStoodStill(static_cast<std::uint32_t>(time.count()));
  to_head(message);
}

/// For whoever hears that the connection to the head has ended: the head may have taken this node
/// for lost meanwhile.
std::string Node::Impl::about_standstill() const {
  const auto now = Clock::now();
  auto stood = stall_detector_.late(now);  // where the connection's end is read before the timer
  if (stood <= kWorthSaying && now - stood_still_.ended < kWorthSaying) stood = stood_still_.time;
  if (stood <= kWorthSaying) return {};
  return fmt::format("; this node stood still for {} s ({})",
                     std::chrono::duration_cast<std::chrono::seconds>(stood).count(),
                     kWhyStandstill);
}

void Node::Impl::send_beat() {
  ++beats_in_vain_;
  transport::Outgoing message;
  message.root().setHeartbeat(++beats_);
  head_->send(message);
}

void Node::Impl::beat() {
  const auto now = Clock::now();
  const auto stood = stall_detector_.came(now);
  if (stood > kWorthSaying) tell_standstill(stood);
  const auto change = head_silence_.look(now, stood);
  if (change == transport::PeerSilence::Change::FellSilent) {
    log::warn(fmt::format(
        "{} has said nothing for {} s: it stands still, stopped or starved, or is cut off. This "
        "node keeps its processes for {} s of silence (--head-silence)",
        head_name(), transport::kSilenceNotice.count(),
        std::chrono::duration_cast<std::chrono::seconds>(options_.head_silence).count()));
  }
  if (change == transport::PeerSilence::Change::Gone) return stop(describe_silence(), true);
  if (!redial_ && head_->is_resumable() && beats_in_vain_ >= kBeatsInVain) {
    why_broken_ = fmt::format("nothing came of {} heartbeats", kBeatsInVain);
    redial();
  }
  send_beat();
  if (state_ == State::Joined) tell_store_usage();
  workers_.look_at_memory();
  stall_detector_.expect(now + options_.heartbeat);
  beat_timer_.expires_after(options_.heartbeat);
  beat_timer_.async_wait(unless_gone([this] {
    if (!is_stopping()) beat();
  }));
}

}  // namespace troupe::node
