// How this process asks for gangs, and takes such a request back.
#include <utility>

#include <fmt/format.h>
#include <boost/asio/steady_timer.hpp>

#include "config/audience.hpp"
#include "objects/doorbell.hpp"
#include "session/gang_share.hpp"
#include "session/process.hpp"
#include "wire/codec.hpp"

namespace troupe::runtime {
namespace {

using detail::ActorPtr;
using detail::CallSpec;
using detail::GangPlacement;
using detail::GangRequest;
using detail::ObjectPtr;
using detail::RequestOptions;
using SharePtr = std::shared_ptr<GangShare>;

struct Member {
  AddressPtr address;
  std::uint32_t local_rank = 0;
  std::uint32_t node_rank = 0;
};

std::vector<Member> read_members(wire::GangGrant::Reader grant) {
  std::vector<Member> members;
  for (auto member : grant.getMembers()) {
    members.push_back(
        {read_address(member.getProcess()), member.getLocalRank(), member.getNodeRank()});
  }
  return members;
}

void write_gang(wire::GangInfo::Builder info, GangId gang, std::uint32_t rank,
                const std::vector<Member>& members) {
  info.setGang(gang.value());
  info.setRank(rank);
  auto out = info.initMembers(static_cast<unsigned>(members.size()));
  for (unsigned i = 0; i < out.size(); ++i) {
    write_address(out[i].initProcess(), *members[i].address);
    out[i].setLocalRank(members[i].local_rank);
    out[i].setNodeRank(members[i].node_rank);
  }
}

void release(Process& process, GangId gang) {
  process.head().notify(
      [gang](wire::HeadRequest::Builder ask) { ask.setGangRelease(gang.value()); });
}

/// On the loop. The grant may be on its way: the release, which the head reads after the request,
/// ends that gang.
void withdraw(Process& process, const GangShare& share) {
  if (!share.request) return;
  process.head().withdraw(share.request);
  release(process, share.id);
}

/// On the loop. Where the gang was given up meanwhile, its shares end with this call, and the gang
/// with them.
void on_granted(Process& process, const GangPlacement& gang, const SharePtr& share,
                const CallSpec& constructor, const std::vector<Member>& members) {
  if (gang.placed->ready()) return;
  std::vector<AddressPtr> addresses;
  for (const auto& member : members) {
    addresses.push_back(member.address);
    share->nodes.push_back(member.address->node.value());
  }
  process.gangs().watch(share->id, std::move(addresses));
  for (std::uint32_t rank = 0; rank < gang.ranks.size() && rank < members.size(); ++rank) {
    process.actors().construct(gang.ranks[rank], members[rank].address, constructor,
                               [id = share->id, rank, members](wire::GangInfo::Builder info) {
                                 write_gang(info, id, rank, members);
                               });
  }
  gang.placed->complete(detail::Payload{});
}

/// On the loop. What the timer holds goes as soon as the gang is placed or refused.
void give_up_at(Process& process, Clock::time_point deadline, std::chrono::milliseconds timeout,
                const GangPlacement& gang, const SharePtr& share) {
  auto timer = std::make_shared<boost::asio::steady_timer>(process.loop(), deadline);
  timer->async_wait([&process, placed = gang.placed, share, timer, timeout,
                     size = gang.ranks.size()](const boost::system::error_code& cancelled) {
    if (cancelled || placed->ready()) return;
    placed->complete(
        Failure{.kind = Failure::Kind::TimedOut,
                .message = fmt::format("a gang of {} {} was not placed within {} ms; "
                                       "`troupe status`, or Cluster::status_json() in "
                                       "this program, says what such a gang waits for",
                                       size, size == 1 ? "rank" : "ranks", timeout.count())});
    withdraw(process, *share);
  });
  gang.placed->when_ready([weak = std::weak_ptr(timer)] {
    if (auto running = weak.lock()) running->cancel();
  });
}

/// As the head refused it.
Failure of_gang(std::uint32_t size, const std::string& type, Failure why) {
  if (why.kind == Failure::Kind::Impossible && config::audience() == config::Audience::Api)
    why.message =
        fmt::format("a gang of {} ranks ({}) can never be placed: {}", size, type, why.message);
  return why;
}

/// On the loop.
void ask_head(Process& process, const GangPlacement& gang, const SharePtr& share,
              CallSpec constructor, const GangRequest& wanted, const RequestOptions& each) {
  share->request = process.head().request(
      [&](wire::HeadRequest::Builder ask) {
        auto out = ask.initGang();
        out.setGang(share->id.value());
        out.setSize(wanted.size);
        out.setStrategy(static_cast<std::uint8_t>(wanted.strategy));
        out.setName(each.name);
        out.setAwaited(wanted.awaited);
        write_request(out.initEach(), each);
      },
      [&process, gang, share, constructor = std::move(constructor)](wire::HeadNotice::Reader tell) {
        on_granted(process, gang, share, constructor, read_members(tell.getGang()));
      },
      [placed = gang.placed, size = wanted.size,
       type = gang.ranks.empty() ? std::string() : gang.ranks.front()->type](
          const Failure& failure) { placed->complete(of_gang(size, type, failure)); });
}

Failure cancelled(std::size_t size) {
  return {.kind = Failure::Kind::Cancelled,
          .message = fmt::format(
              "the request for a gang of {} was cancelled before the gang was taken", size)};
}

GangPlacement new_placement(Process& process, const SharePtr& share, std::string_view type,
                            std::uint32_t size) {
  GangPlacement gang{.placed = detail::Object::pending(process.next_object_id())};
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    auto state = std::make_shared<detail::ActorState>(ActorId(), std::string(type), nullptr);
    state->gang = share;
    state->rank = rank;
    state->constructed = detail::Object::pending(process.next_object_id());
    gang.ranks.push_back(std::move(state));
  }
  return gang;
}

}  // namespace

GangShare::~GangShare() {
  auto* process = Process::maybe();
  if (!process || session != current_session()) return;
  process->post([gang = id] {
    auto* here = Process::maybe();
    if (!here) return;
    here->gangs().forget(gang);
    release(*here, gang);
  });
}

}  // namespace troupe::runtime

namespace troupe::detail {

GangPlacement place_gang(CallSpec constructor, std::string_view type, const GangRequest& wanted,
                         const RequestOptions& each,
                         std::optional<std::chrono::milliseconds> timeout) {
  auto& process = runtime::Process::current();
  auto share = std::make_shared<runtime::GangShare>(process.next_shared_id<runtime::GangId>());
  auto gang = runtime::new_placement(process, share, type, wanted.size);
  process.post([&process, gang, share, wanted, each, timeout,
                deadline = runtime::deadline_after(timeout),
                constructor = std::move(constructor)]() mutable {
    if (gang.placed->ready()) return;  // cancelled before anybody was asked
    runtime::ask_head(process, gang, share, std::move(constructor), wanted, each);
    if (deadline) runtime::give_up_at(process, *deadline, *timeout, gang, share);
    gang.placed->set_on_cancel(
        [&process, placed = gang.placed.get(), share, size = gang.ranks.size()] {
          placed->complete(runtime::cancelled(size));
          runtime::withdraw(process, *share);
        });
  });
  return gang;
}

void withdraw_gang(const GangPlacement& gang) {
  if (gang.ranks.empty()) return;
  const auto share = std::static_pointer_cast<runtime::GangShare>(gang.ranks.front()->gang);
  // Where it is placed already, that stands.
  gang.placed->complete(runtime::cancelled(gang.ranks.size()));
  auto* process = runtime::Process::maybe();
  if (!process || share->session != runtime::current_session()) return;
  process->post([process, share] { runtime::withdraw(*process, *share); });
}

void tell_gang(const ActorPtr& rank, std::string key, std::string value) {
  const auto share = std::static_pointer_cast<runtime::GangShare>(rank->gang);
  auto* process = runtime::Process::maybe();
  if (!share || !process || share->session != runtime::current_session()) return;
  process->post([process, gang = share->id, key = std::move(key), value = std::move(value)] {
    process->gangs().tell(gang, key, value);
  });
}

}  // namespace troupe::detail
