#include "calls/channel/channels.hpp"

#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <boost/asio/post.hpp>

#include "objects/doorbell.hpp"

namespace troupe::runtime {
namespace {

using boost::asio::posix::stream_descriptor;
using ring::UniqueFd;

UniqueFd copy_of(int descriptor) { return UniqueFd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)); }

}  // namespace

Channels::Channels(Callbacks callbacks)
    : callbacks_(std::move(callbacks)), wake_(callbacks_.loop), rest_(callbacks_.loop) {}

OutChannelPtr Channels::to(ProcessId process) const {
  auto found = peers_.find(process);
  return found == peers_.end() ? nullptr : found->second.out;
}

void Channels::connected(ProcessId process, const transport::ConnectionPtr& connection) {
  // Of another machine, or of a place whose processes have no number here.
  if (connection->peer_pid() == 0) return;
  auto& peer = peers_[process];
  if (peer.life_number == 0) peer.life_number = ++lives_;
  if (peer.connection.expired()) peer.connection = connection;
}

/// An offer whose answer may be lost with the connection is made anew.
void Channels::disconnected(ProcessId process, const transport::ConnectionPtr& connection) {
  const auto found = peers_.find(process);
  if (found == peers_.end()) return;
  auto& peer = found->second;
  if (peer.connection.lock() == connection) peer.connection.reset();
  if (peer.stage != Stage::Offered || peer.offered_through.lock() != connection) return;
  peer.stage = Stage::None;
  peer.talks = 0;
  peer.offered.reset();
}

// ---- opening ------------------------------------------------------------------------------------

void Channels::talked(ProcessId process) {
  auto found = peers_.find(process);
  if (found == peers_.end()) return;
  auto& peer = found->second;
  if (peer.stage == Stage::None && ++peer.talks >= kTalksMuch) offer(peer);
}

void Channels::offer(Peer& peer) {
  auto connection = peer.connection.lock();
  if (!connection) return;  // until there is one again
  auto segment = ring::Segment::create();
  std::vector<UniqueFd> descriptors;
  if (segment) {
    open_wake();
    descriptors.push_back(std::move(segment->descriptor()));
    descriptors.push_back(copy_of(doorbell().descriptor().get()));
    descriptors.push_back(copy_of(wake_.native_handle()));
  }
  if (!segment || !descriptors[1] || !descriptors[2]) {
    peer.stage = Stage::Refused;  // the socket serves as well, only slower
    return;
  }
  peer.stage = Stage::Offered;
  peer.offered = std::move(segment);
  peer.offered_through = connection;
  transport::Outgoing message;
  message.root().setChannelOffer();
  connection->send_with_descriptors(std::move(message), std::move(descriptors));
}

void Channels::receive(const transport::ConnectionPtr& connection, ProcessId process,
                       wire::Message::Reader message) {
  if (message.isChannelOffer()) return offered(process, connection);
  if (message.isChannelReady()) return ready(process, connection, message.getChannelReady());
}

void Channels::started(ProcessId process) {
  const auto found = peers_.find(process);
  if (found == peers_.end() || !found->second.in || std::exchange(found->second.in_started, true))
    return;
  callbacks_.executor.attach(found->second.in);
}

void Channels::offered(ProcessId process, const transport::ConnectionPtr& connection) {
  const auto why_not = adopt(process, connection);
  transport::Outgoing message;
  message.root().setChannelReady(why_not);
  std::vector<UniqueFd> bell;
  if (why_not.empty()) bell.push_back(copy_of(doorbell().descriptor().get()));
  connection->send_with_descriptors(std::move(message), std::move(bell));
}

/// -> why not, if not.
std::string Channels::adopt(ProcessId process, const transport::ConnectionPtr& connection) {
  auto descriptors = connection->take_descriptors();
  auto& peer = peers_[process];
  if (descriptors.size() != 3) return "an offer has three descriptors";
  if (peer.in_started) return "there is a channel already";
  auto segment = ring::Segment::adopt(descriptors[0]);
  if (auto* wrong = std::get_if<std::string>(&segment)) return *wrong;
  auto bell = ring::Bell::adopt(descriptors[1]);
  if (!bell) return "the second descriptor is no bell";
  if (peer.connection.expired()) peer.connection = connection;
  peer.in = std::make_shared<InChannel>(InChannel::Callbacks{
      .caller = process,
      .segment = std::move(std::get<ring::Segment>(segment)),
      .caller_bell = std::move(bell),
      .caller_loop = std::move(descriptors[2]),
      .send_through_socket =
          [this, process](std::uint64_t id, Outcome outcome, std::chrono::nanoseconds run_time) {
            callbacks_.executor.answer_through_socket(
                process, id, std::move(outcome), run_time,
                [this, process, id](const Outcome& what, std::chrono::nanoseconds took,
                                    ReplyPlace kept) {
                  callbacks_.send_outcome(process, id, what, took, kept);
                });
          },
      .damaged = tell_damaged(process, peer)});
  watch_life(process, peer);
  return {};
}

void Channels::ready(ProcessId process, const transport::ConnectionPtr& connection,
                     const std::string& why_not) {
  auto descriptors = connection->take_descriptors();
  auto found = peers_.find(process);
  if (found == peers_.end() || found->second.stage != Stage::Offered) return;
  auto& peer = found->second;
  if (peer.offered_through.lock() != connection) return;  // of an offer before this one
  auto bell = descriptors.size() == 1 ? ring::Bell::adopt(descriptors[0]) : nullptr;
  if (!why_not.empty() || !bell) {
    peer.stage = Stage::Refused;
    peer.offered.reset();
    return;
  }
  transport::Outgoing message;
  message.root().setChannelStart();
  callbacks_.send(process, std::move(message));
  peer.stage = Stage::Open;
  peer.out = std::make_shared<OutChannel>(process, std::move(*peer.offered), std::move(bell),
                                          tell_damaged(process, peer));
  peer.offered.reset();
  watch_life(process, peer);
  callbacks_.opened(peer.out);
}

std::function<void()> Channels::tell_damaged(ProcessId process, const Peer& peer) {
  return [this, process, life = peer.life_number] {
    boost::asio::post(callbacks_.loop, [this, process, life] {
      const auto found = peers_.find(process);
      if (found != peers_.end() && found->second.life_number == life) callbacks_.damaged(process);
    });
  };
}

// ---- the other's end ----------------------------------------------------------------------------

void Channels::watch_life(ProcessId process, Peer& peer) {
  const auto connection = peer.connection.lock();
  if (peer.life || !connection) return;
  const int life = static_cast<int>(::syscall(SYS_pidfd_open, connection->peer_pid(), 0));
  // It has ended, and its socket says so; or this kernel has no pidfd, and the socket is all.
  if (life < 0) return;
  peer.life = std::make_unique<stream_descriptor>(callbacks_.loop, life);
  peer.life->async_wait(stream_descriptor::wait_read,
                        [this, process](const boost::system::error_code& error) {
                          if (!error) callbacks_.ended(process);
                        });
}

void Channels::answer(ProcessId process, std::uint64_t call, Outcome outcome,
                      std::chrono::nanoseconds run_time) {
  if (auto channel = to(process)) channel->answer(call, std::move(outcome), run_time);
}

void Channels::answer(ProcessId process, const std::vector<KeptReply>& replies) {
  for (const auto& reply : replies) {
    if (ChannelCallId::is(reply.call)) answer(process, reply.call, reply.outcome, reply.run_time);
  }
}

std::size_t Channels::in_flight(ProcessId process) const {
  const auto channel = to(process);
  return channel ? channel->in_flight() : 0;
}

void Channels::lost(ProcessId process, const Failure& how, bool ended) {
  auto found = peers_.find(process);
  if (found == peers_.end()) return;
  auto peer = std::move(found->second);
  peers_.erase(found);
  if (peer.in) callbacks_.executor.detach(peer.in);
  if (peer.out) peer.out->close(how, ended);
}

// ---- the loop's turn to look for replies --------------------------------------------------------

void Channels::open_wake() {
  if (wake_.is_open()) return;
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return;
  wake_.assign(fd);
  wait_for_wake();
}

void Channels::wait_for_wake() {
  wake_.async_wait(stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    std::uint64_t times = 0;
    [[maybe_unused]] const auto got = ::read(wake_.native_handle(), &times, sizeof times);
    turn();
    wait_for_wake();
  });
}

void Channels::turn() {
  std::vector<OutChannelPtr> looked;  // what is answered may open and close channels
  for (auto& [process, peer] : peers_) {
    if (peer.out && peer.out->is_the_loops()) looked.push_back(peer.out);
  }
  bool rest = false;
  for (auto& channel : looked) {
    rest = channel->loop_turn() || rest;
  }
  if (!rest || std::exchange(resting_, true)) return;
  rest_.expires_after(kRest);
  rest_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    resting_ = false;
    turn();
  });
}

}  // namespace troupe::runtime
