#include "gangs/gangs.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <boost/asio/post.hpp>

#include "wire/codec.hpp"

namespace troupe::runtime {
namespace {

using Clock = std::chrono::steady_clock;

void write_request(wire::RendezvousRequest::Builder out, std::uint64_t id, GangId gang,
                   const RendezvousRequest& request) {
  constexpr std::int64_t longest_ms = 0xffff'ffff;
  out.setId(id);
  out.setGang(gang.value());
  out.setAction(static_cast<std::uint8_t>(request.action));
  out.setKey(request.key);
  out.setValue(
      kj::arrayPtr(reinterpret_cast<const kj::byte*>(request.value.data()), request.value.size()));
  out.setCount(request.count);
  out.setTimeoutMs(
      static_cast<std::uint32_t>(std::min<std::int64_t>(request.timeout.count(), longest_ms)));
}

RendezvousRequest read_request(wire::RendezvousRequest::Reader from) {
  const auto value = from.getValue();
  return {.action = static_cast<RendezvousRequest::Action>(from.getAction()),
          .key = from.getKey(),
          .value = std::string(reinterpret_cast<const char*>(value.begin()), value.size()),
          .count = from.getCount(),
          .timeout = std::chrono::milliseconds(from.getTimeoutMs())};
}

std::vector<RankContext::Place> read_members(wire::GangInfo::Reader info) {
  std::vector<RankContext::Place> members;
  for (auto member : info.getMembers()) {
    members.push_back({.process = read_address(member.getProcess()),
                       .local_rank = static_cast<int>(member.getLocalRank()),
                       .node_rank = static_cast<int>(member.getNodeRank())});
  }
  return members;
}

}  // namespace

void Gangs::enter(wire::GangInfo::Reader info) {
  if (rank_) return;
  const GangId gang{info.getGang()};
  auto members = read_members(info);
  if (members.empty() || info.getRank() >= members.size()) return;
  auto to_rank0 = [this, gang, rank0 = members.front().process](const RendezvousRequest& request,
                                                                std::function<void(Outcome)> done) {
    ask(gang, rank0, request, std::move(done));
  };
  rank_ = std::make_unique<RankContext>(gang, static_cast<int>(info.getRank()), std::move(members),
                                        to_rank0);
  entered_.store(rank_.get(), std::memory_order_release);
  if (auto told = broken_early_.find(gang); told != broken_early_.end())
    rank_->break_with(told->second);
}

void Gangs::ask(GangId gang, const AddressPtr& rank0, const RendezvousRequest& request,
                std::function<void(Outcome)> done) {
  boost::asio::post(loop_, [this, gang, rank0, request, done = std::move(done)] {
    if (rank0->process == self_) return rendezvous_.ask(gang, request, done, Clock::now());
    peers_.request(
        rank0,
        [&](wire::Message::Builder message, std::uint64_t id) {
          write_request(message.initRendezvous(), id, gang, request);
        },
        [done](Outcome outcome, std::optional<Progress>, std::chrono::nanoseconds) {
          done(std::move(outcome));
        });
  });
}

void Gangs::tell(GangId gang, std::string key, std::string value) {
  const auto made = made_.find(gang);
  if (made == made_.end() || made->second.empty()) return;
  ask(gang, made->second.front(),
      {.action = RendezvousRequest::Action::Set, .key = std::move(key), .value = std::move(value)},
      [](const Outcome&) {});
}

void Gangs::on_broken(GangId gang, std::uint32_t rank, const Death& death) {
  if (auto made = made_.find(gang); made != made_.end() && rank < made->second.size()) {
    peers_.died(made->second[rank]->process, death);
  }
  const auto how = rank_gone(rank, death.how);
  if (rank_ && rank_->gang() == gang) {
    rank_->break_with(how);
  } else if (!made_.contains(gang)) {
    broken_early_.emplace(gang, how);
  }
}

void Gangs::on_rendezvous(ProcessId caller, wire::RendezvousRequest::Reader request) {
  auto answer = [this, caller, id = request.getId()](const Outcome& outcome) {
    const auto* value = std::get_if<detail::Payload>(&outcome);
    peers_.answer_to(caller, value ? value->bytes.size() : 0, [&](wire::Message::Builder message) {
      auto out = message.initRendezvoused();
      out.setId(id);
      if (!value) return write_failure(out.initFailure(), std::get<Failure>(outcome));
      out.setValue(kj::arrayPtr(reinterpret_cast<const kj::byte*>(value->bytes.data()),
                                value->bytes.size()));
    });
  };
  rendezvous_.ask(GangId(request.getGang()), read_request(request), answer, Clock::now());
}

}  // namespace troupe::runtime
