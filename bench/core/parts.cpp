// Where the time of one call goes: each step of it alone, on one thread, without its other process.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <troupe/detail/call.hpp>
#include <troupe/troupe.hpp>

#include "calls/channel/in_channel.hpp"
#include "calls/channel/out_channel.hpp"
#include "calls/timeline/call_history.hpp"
#include "cases.hpp"
#include "counter.hpp"
#include "objects/object.hpp"
#include "os/ticks.hpp"

namespace troupe::bench {
namespace {

using runtime::InChannel;
using runtime::OutChannel;
using runtime::PendingCall;

/// Completes what is answered, as methods' calls are.
struct Completes : runtime::CallReceiver {
  void answered(PendingCall call, runtime::Outcome outcome, std::chrono::nanoseconds) override {
    call.result->complete(std::move(outcome));
  }
  void lost(PendingCall, runtime::Progress, const Failure&) override {}
};

/// Both ends of one channel in this process.
struct Loopback {
  Loopback() {
    auto made = *ring::Segment::create();
    auto there = std::move(std::get<ring::Segment>(ring::Segment::adopt(made.descriptor())));
    const auto bell = ring::Bell::create();
    out = std::make_shared<OutChannel>(runtime::ProcessId{1}, std::move(made),
                                       ring::Bell::adopt(bell->descriptor()));
    in = std::make_shared<InChannel>(
        InChannel::Callbacks{.caller = runtime::ProcessId{2},
                             .segment = std::move(there),
                             .caller_bell = ring::Bell::adopt(bell->descriptor()),
                             .caller_loop = {},
                             .send_through_socket = {}});
    out->start_waiting();  // nobody is to be told
  }
  runtime::OutChannelPtr out;
  std::shared_ptr<InChannel> in;
};

class Parts {
 public:
  explicit Parts(const Report& report) : report_(report) {}

  /// `step` is done `kSteps` times; `after` puts things back, and is not timed.
  template <class Step, class After>
  void time(const std::string& name, Step step, After after) const {
    double best = 1e9;
    for (int round = 0; round < (report_.smoke() ? 2 : 200); ++round) {
      const auto start = Clock::now();
      for (int i = 0; i < kSteps; ++i) step(i);
      best = std::min(best, seconds_since(start));
      after();
    }
    report_.print("call_part_" + name + "_ns", best / kSteps * 1e9, "ns");
  }
  template <class Step>
  void time(const std::string& name, Step step) const {
    time(name, step, [] {});
  }

  static constexpr int kSteps = 1000;

 private:
  const Report& report_;
};

detail::CallSpec packed(int x) { return detail::make_method_call<Counter, &Counter::add>(x); }

/// What `troupe timeline` costs where a call runs, with two readings of the clock.
void note_call(const Parts& parts, const detail::Function& function) {
  std::vector<std::uint64_t> memory(runtime::CallHistory::bytes() / sizeof(std::uint64_t) + 1);
  runtime::CallHistory history(memory.data());
  parts.time("note_in_history", [&](int) {
    history.begin(runtime::CallHistory::Kind::Method, &function, function.key.label, {},
                  os::ticks());
    history.end(os::ticks(), false);
  });
}

}  // namespace

void call_parts(const Report& report) {
  if (!report.wants("call_parts")) return;
  const Parts parts(report);
  Loopback both;
  Completes receiver;
  const auto call = packed(1);
  std::vector<detail::ObjectPtr> results(Parts::kSteps);
  std::vector<std::uint64_t> ids(Parts::kSteps);

  parts.time("pack_arguments", [&](int i) { packed(i); });
  parts.time("make_object",
             [&](int i) { results[static_cast<std::size_t>(i)] = detail::Object::pending(1); });

  auto send = [&](int i) {
    PendingCall direct{.result = results[static_cast<std::size_t>(i)], .receiver = &receiver};
    ids[static_cast<std::size_t>(i)] =
        *both.out->send(runtime::Work::Kind::Method, call.function, call.arguments, direct);
  };
  auto take = [&](int) {
    const auto next = both.in->front();
    auto reader = next->arguments;
    std::string argument(*reader.bytes());
    both.in->pop();
  };
  auto reply = [&](int i) {
    both.in->reply(ids[static_cast<std::size_t>(i)], detail::Payload{.bytes = "four", .refs = {}},
                   {});
  };
  auto renew = [&] {
    for (auto& result : results) result = detail::Object::pending(1);
  };
  auto all = [](auto step) {
    for (int i = 0; i < Parts::kSteps; ++i) step(i);
  };
  renew();
  parts.time("write_call", send, [&] { all(take), all(reply), both.out->drain(), renew(); });
  all(send);
  parts.time("take_call", take, [&] { all(reply), both.out->drain(), renew(), all(send); });
  all(take);
  parts.time("write_reply", reply, [&] { both.out->drain(), renew(), all(send), all(take); });
  all(reply);
  parts.time(
      "take_reply_and_complete",
      [&](int i) {
        if (i == 0) both.out->drain();
      },
      [&] { renew(), all(send), all(take), all(reply); });
  both.out->drain();

  Counter counter;
  const auto* add = detail::find_function(call.function.name, call.function.offset);
  std::vector<detail::Payload> arguments{std::get<detail::Payload>(call.arguments[0])};
  parts.time("decode_invoke_encode", [&](int) { add->invoke(&counter, arguments); });
  both.out->stop_waiting();
  note_call(parts, *add);
}

}  // namespace troupe::bench
