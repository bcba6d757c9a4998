#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "calls/executor.hpp"
#include "calls/peers/peers.hpp"

namespace troupe::runtime {

/// Of the encoded values in one message, with room for its other fields under
/// transport::Limits::frame_bytes.
inline constexpr std::size_t kLargestValue = (std::size_t{256} << 20) - (std::size_t{1} << 20);
Failure too_large(const std::string& what, std::size_t bytes);

/// What distinguishes one call on the wire from another.
struct OutgoingCall {
  Work::Kind kind = Work::Kind::Task;
  detail::FunctionKey function;
  std::vector<detail::Argument> arguments;  // whose values are here
  LeaseId lease{};
  std::uint32_t attempt = 0;
  os::Ticks called = 0;                               // by user code; 0: not said
  std::function<void(wire::GangInfo::Builder)> gang;  // constructor of a gang's rank
};

/// Sends calls: through the channel to their callee where there is one, else through the socket.
/// Belongs to the loop.
class Calls {
 public:
  Calls(Peers& peers, Exports& exports, AddressPtr self)
      : peers_(peers), exports_(exports), self_(std::move(self)) {}

  /// The receiver of `direct` is called once, and may be within. cancel() of its result takes the
  /// call back if it has not started.
  void send(const AddressPtr& to, const OutgoingCall& call, PendingCall direct);
  bool is_self(const Address& callee) const { return callee.process == self_->process; }
  OutChannelPtr channel(ProcessId to) const { return peers_.channels().to(to); }

 private:
  void write(wire::Call::Builder out, const OutgoingCall& call, const AddressPtr& to,
             std::uint64_t id);
  void send_via_socket(const AddressPtr& to, const OutgoingCall& call, const OutChannelPtr& channel,
                       PendingCall direct);
  void let_cancel(const detail::ObjectPtr& result, const AddressPtr& to, std::uint64_t id);

  Peers& peers_;
  Exports& exports_;
  AddressPtr self_;
};

}  // namespace troupe::runtime
