#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <sstream>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include <boost/unordered/unordered_flat_map.hpp>
#include <catch2/catch.hpp>

#include <troupe/scheduler/ids.hpp>

namespace troupe::scheduler {
namespace {

template <class A, class B>
concept Equated = requires(A a, B b) {
  a == b;
};
template <class A, class B>
concept Ordered = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Added = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Subtracted = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept Divided = requires(A a, B b) {
  a % b;
};

template <class A, class B>
consteval bool becomes() {
  return std::is_convertible_v<A, B> || std::is_assignable_v<B&, A>;
}
template <class A, class B>
consteval bool is_computed_with() {
  return Added<A, B> || Subtracted<A, B> || Divided<A, B>;
}
template <class A, class B>
consteval bool meets() {
  return Equated<A, B> || Ordered<A, B> || is_computed_with<A, B>();
}
/// Neither becomes the other, or is compared or computed with it, where nobody asks for it.
template <class A, class B>
consteval bool are_apart() {
  return !becomes<A, B>() && !becomes<B, A>() && !meets<A, B>() && !meets<B, A>();
}
/// And neither is made of the other where somebody does ask.
template <class A, class B>
consteval bool are_unlike() {
  return are_apart<A, B>() && !std::is_constructible_v<A, B> && !std::is_constructible_v<B, A>;
}

template <class Id>
consteval bool is_apart_from_numbers() {
  return are_apart<Id, int>() && are_apart<Id, std::uint32_t>() && are_apart<Id, std::uint64_t>() &&
         are_apart<Id, bool>() && are_apart<Id, double>() && are_apart<Id, std::nullptr_t>() &&
         !is_computed_with<Id, Id>();
}
template <class Id>
consteval bool is_strong() {
  return is_apart_from_numbers<Id>() && !std::is_constructible_v<std::uint64_t, Id> &&
         !std::is_constructible_v<Id, bool> && !std::is_constructible_v<Id, double>;
}

static_assert(is_strong<NodeId>() && is_strong<Incarnation>() && is_strong<JobId>() &&
              is_strong<ProcessId>());
static_assert(is_strong<LeaseId>() && is_strong<ActorId>() && is_strong<GangId>() &&
              is_strong<RequestId>());

template <class A, class... Others>
consteval bool is_unlike() {
  return (... && are_unlike<A, Others>());
}
static_assert(
    is_unlike<NodeId, Incarnation, JobId, ProcessId, LeaseId, ActorId, GangId, RequestId>() &&
    is_unlike<ProcessId, Incarnation, JobId, LeaseId, ActorId, GangId, RequestId>() &&
    is_unlike<JobId, Incarnation, LeaseId, ActorId, GangId, RequestId>() &&
    is_unlike<LeaseId, ActorId, GangId, RequestId>() && is_unlike<ActorId, GangId, RequestId>());

// A wider number would be cut off.
static_assert(std::is_constructible_v<NodeId, std::uint32_t> &&
              !std::is_constructible_v<NodeId, std::uint64_t>);

// One register, handed over as the number would be.
template <class Id>
consteval bool is_as_light_as_its_number() {
  return std::is_trivially_copyable_v<Id> && std::is_standard_layout_v<Id> &&
         sizeof(Id) == sizeof(Id{}.value());
}
static_assert(is_as_light_as_its_number<NodeId>() && is_as_light_as_its_number<ProcessId>() &&
              sizeof(NodeId) == 4);

static_assert(!ProcessId{} && ProcessId{7} && ProcessId{7}.value() == 7);
static_assert(ProcessId{7} == ProcessId{7} && ProcessId{7} < ProcessId{8});

TEST_CASE("an id is found by its number in each kind of map", "[scheduler][ids]") {
  const ProcessId process{7}, other{8};
  const std::map<ProcessId, int> ordered{{process, 1}, {other, 2}};
  const std::unordered_map<ProcessId, int> hashed{{process, 1}, {other, 2}};
  const boost::unordered_flat_map<ProcessId, int> flat{{process, 1}, {other, 2}};
  const std::unordered_set<NodeId> nodes{NodeId{3}};
  CHECK(ordered.begin()->first == process);
  CHECK(hashed.at(other) == 2);
  CHECK(flat.at(other) == 2);
  CHECK(nodes.contains(NodeId{3}));
  CHECK_FALSE(nodes.contains(NodeId{}));
}

TEST_CASE("an id is printed as its number", "[scheduler][ids]") {
  const JobId job{std::numeric_limits<std::uint64_t>::max()};
  std::ostringstream out;
  out << NodeId{3} << ' ' << job;
  CHECK(out.str() == "3 18446744073709551615");
  CHECK("job " + to_string(job) == "job 18446744073709551615");
  CHECK(Catch::Detail::stringify(NodeId{3}) == "3");
}

TEST_CASE("ids that are given out in turn begin with 1", "[scheduler][ids]") {
  LeaseId last;
  const auto first = ++last;
  const auto second = ++last;
  CHECK(first == LeaseId{1});
  CHECK(second == LeaseId{2});
}

}  // namespace
}  // namespace troupe::scheduler
