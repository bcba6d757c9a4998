#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "process/executor.hpp"
#include "process/peers.hpp"

namespace troupe::process {

/// Of the encoded values in one message, with room for its other fields under transport::Limits::frame_bytes.
inline constexpr std::size_t kLargestValue = (std::size_t{256} << 20) - (std::size_t{1} << 20);
Failure too_large(const std::string& what, std::size_t bytes);

/// What distinguishes one call on the wire from another.
struct OutgoingCall {
  Work::Kind kind = Work::Kind::Task;
  detail::FunctionKey function;
  std::vector<detail::Payload> arguments;
  std::uint64_t lease = 0;
  std::uint32_t attempt = 0;
  std::function<void(wire::GangInfo::Builder)> gang;  // constructor of a gang's rank
};

/// Encodes calls and sends them. Belongs to the loop.
class Calls {
 public:
  Calls(Peers& peers, Exports& exports, AddressPtr self) : peers_(peers), exports_(exports), self_(std::move(self)) {}

  /// -> the id by which cancel() knows it. `done` is called once.
  std::uint64_t send(const AddressPtr& to, const OutgoingCall& call, Peers::Done done);
  /// The call, if it has not started there, ends as cancelled.
  void cancel(const AddressPtr& to, std::uint64_t id);

 private:
  Peers& peers_;
  Exports& exports_;
  AddressPtr self_;
};

}  // namespace troupe::process
