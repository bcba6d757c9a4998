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

#include <troupe/scheduler/strong_id.hpp>

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

using SeatId = StrongId<struct SeatTag, std::uint32_t>;
using GuestId = StrongId<struct GuestTag>;
using TicketId = StrongId<struct TicketTag>;

static_assert(is_strong<SeatId>() && is_strong<GuestId>() && is_strong<TicketId>());
static_assert(are_unlike<SeatId, GuestId>() && are_unlike<SeatId, TicketId>() &&
              are_unlike<GuestId, TicketId>());

// A wider number would be cut off.
static_assert(std::is_constructible_v<SeatId, std::uint32_t> &&
              !std::is_constructible_v<SeatId, std::uint64_t>);

// One register, handed over as the number would be.
template <class Id>
consteval bool is_as_light_as_its_number() {
  return std::is_trivially_copyable_v<Id> && std::is_standard_layout_v<Id> &&
         sizeof(Id) == sizeof(Id{}.value());
}
static_assert(is_as_light_as_its_number<SeatId>() && is_as_light_as_its_number<GuestId>() &&
              sizeof(SeatId) == 4);

static_assert(!GuestId{} && GuestId{7} && GuestId{7}.value() == 7);
static_assert(GuestId{7} == GuestId{7} && GuestId{7} < GuestId{8});

TEST_CASE("an id is found by its number in each kind of map", "[scheduler][ids]") {
  const GuestId guest{7}, other{8};
  const std::map<GuestId, int> ordered{{guest, 1}, {other, 2}};
  const std::unordered_map<GuestId, int> hashed{{guest, 1}, {other, 2}};
  const boost::unordered_flat_map<GuestId, int> flat{{guest, 1}, {other, 2}};
  const std::unordered_set<SeatId> seats{SeatId{3}};
  CHECK(ordered.begin()->first == guest);
  CHECK(hashed.at(other) == 2);
  CHECK(flat.at(other) == 2);
  CHECK(seats.contains(SeatId{3}));
  CHECK_FALSE(seats.contains(SeatId{}));
}

TEST_CASE("an id is printed as its number", "[scheduler][ids]") {
  const TicketId ticket{std::numeric_limits<std::uint64_t>::max()};
  std::ostringstream out;
  out << SeatId{3} << ' ' << ticket;
  CHECK(out.str() == "3 18446744073709551615");
  CHECK("ticket " + to_string(ticket) == "ticket 18446744073709551615");
  CHECK(Catch::Detail::stringify(SeatId{3}) == "3");
}

TEST_CASE("ids that are given out in turn begin with 1", "[scheduler][ids]") {
  TicketId last;
  const auto first = ++last;
  const auto second = ++last;
  CHECK(first == TicketId{1});
  CHECK(second == TicketId{2});
}

}  // namespace
}  // namespace troupe::scheduler
