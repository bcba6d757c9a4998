#include "values/reservations.hpp"

#include <map>
#include <random>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "values/few_records.hpp"

using namespace std::chrono_literals;
using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

namespace {

Options short_terms() {
  Options options;
  options.reservation_term = 2s;
  options.longest_reservation = 5s;
  options.reservations = 3;
  return options;
}

/// A job whose driver asks for one CPU a rank, and two nodes.
struct Keepers {
  FewRecords records;
  Reservations reservations{short_terms()};
  Node& first = records.node();
  Node& second = records.node();
  Process& driver = records.process(records.job(), first);

  Request& request() { return records.request(driver, {{"cpu", 1}}); }
  std::string wrong() const {
    return reservations.broken_invariant(records.nodes()).value_or("nothing");
  }
};

}  // namespace

TEST_CASE("a node keeps as much for a request as its ranks there need",
          "[scheduler][reservations]") {
  Keepers keepers;
  auto& request = keepers.request();
  keepers.reservations.hold(request, {&keepers.first, &keepers.second, &keepers.second}, 0s);

  CHECK(Reservations::is_held(request));
  CHECK(keepers.first.claims.total() == Resources{{"cpu", 1}});
  CHECK(keepers.second.claims.of(request.id)->resources == Resources{{"cpu", 2}});
  CHECK(keepers.reservations.end(request) == std::vector{&keepers.first, &keepers.second});
  CHECK(keepers.first.claims.empty());
  CHECK_FALSE(keepers.reservations.contains(request));
  CHECK(keepers.wrong() == "nothing");
}

TEST_CASE("what does not fill is lifted for as long, and then held for twice as long",
          "[scheduler][reservations]") {
  Keepers keepers;
  auto& request = keepers.request();
  auto& reservations = keepers.reservations;
  auto now = TimePoint{0s};
  for (const Duration term : {2s, 4s, 5s, 5s}) {  // 5 s is the longest
    CAPTURE(term.count());
    REQUIRE(Reservations::may_hold(request, now));
    reservations.hold(request, {&keepers.first}, now);
    CHECK(reservations.lift_if_over(request, now + term - 1ns).empty());
    now += term;
    CHECK(reservations.lift_if_over(request, now) == std::vector{&keepers.first});
    CHECK_FALSE(Reservations::may_hold(request, now + term - 1ns));
    CHECK(reservations.contains(request));
    now += term;
    CHECK(keepers.wrong() == "nothing");
  }
}

TEST_CASE("a request for which no nodes were found is looked at again later",
          "[scheduler][reservations]") {
  Keepers keepers;
  auto& request = keepers.request();
  keepers.reservations.postpone(request, 3s);
  CHECK_FALSE(Reservations::may_hold(request, 2s));
  CHECK(Reservations::may_hold(request, 3s));
  CHECK_FALSE(Reservations::is_held(request));
  CHECK(keepers.reservations.has_room());
  CHECK(keepers.wrong() == "nothing");
}

TEST_CASE("who loses a node may hold others at once, and for no longer than before",
          "[scheduler][reservations]") {
  Keepers keepers;
  auto& request = keepers.request();
  auto& other = keepers.request();
  keepers.reservations.hold(request, {&keepers.first, &keepers.second}, 0s);
  keepers.reservations.hold(other, {&keepers.second}, 0s);

  CHECK(keepers.reservations.on_node_lost(keepers.first, 1s) ==
        std::vector{&keepers.first, &keepers.second});
  CHECK(Reservations::may_hold(request, 1s));
  CHECK(Reservations::is_held(other));
  keepers.reservations.hold(request, {&keepers.second}, 1s);
  CHECK(request.reservation->until() == TimePoint{3s});
  CHECK(keepers.wrong() == "nothing");
}

TEST_CASE("no more are held than may be, and those in a pause do not count",
          "[scheduler][reservations]") {
  Keepers keepers;
  std::vector<Request*> requests;
  for (int i = 0; i < 3; ++i) {
    requests.push_back(&keepers.request());
    CHECK(keepers.reservations.has_room());
    keepers.reservations.hold(*requests.back(), {&keepers.first}, 0s);
  }
  CHECK_FALSE(keepers.reservations.has_room());
  keepers.reservations.lift_if_over(*requests[1], 2s);
  CHECK(keepers.reservations.has_room());
  CHECK(keepers.reservations.requests() == requests);
  CHECK(keepers.reservations.nodes() == std::vector{&keepers.first, &keepers.first});
}

TEST_CASE("reservations and claims that do not agree are found", "[scheduler][reservations]") {
  Keepers keepers;
  auto& request = keepers.request();
  keepers.reservations.hold(request, {&keepers.first}, 0s);
  CHECK(keepers.wrong() == "nothing");
  CHECK(keepers.reservations.broken_invariant({}));  // 2: too few claims
  CHECK(Reservations{short_terms()}.broken_invariant(keepers.records.nodes()));  // 2: too many

  const auto claims = std::exchange(keepers.first.claims, {});
  CHECK(keepers.wrong() != "nothing");  // 2
  keepers.first.claims = claims;
  request.shape = ShapePtr{ShapeKey{Kind::Lease, {{{"cpu", 2}}, {}, false}}};
  CHECK(keepers.wrong() != "nothing");  // 2: less than the need
}

TEST_CASE("reservations agree with a table, whatever is held, lifted and lost",
          "[scheduler][reservations][property]") {
  const auto seed = GENERATE(take(30, random(0u, 1u << 30)));
  CAPTURE(seed);
  std::mt19937 random{seed};
  Keepers keepers;
  auto& reservations = keepers.reservations;
  std::vector<Node*> nodes{&keepers.first, &keepers.second, &keepers.records.node()};
  std::vector<Request*> requests;
  for (int i = 0; i < 8; ++i) requests.push_back(&keepers.request());
  std::map<Request*, std::map<Node*, std::size_t>> model;  // ranks; empty in a pause
  TimePoint now{};
  for (int i = 0; i < 300; ++i) {
    now += std::chrono::milliseconds{random() % 1000};
    auto* request = requests[random() % requests.size()];
    auto* node = nodes[random() % nodes.size()];
    const auto is_held = model.contains(request) && !model[request].empty();
    REQUIRE(Reservations::is_held(*request) == is_held);
    if (random() % 20 == 0) {
      reservations.on_node_lost(*node, now);
      for (auto& [other, ranks] : model) {
        if (ranks.contains(node)) ranks.clear();
      }
    } else if (random() % 5 == 0 && model.contains(request)) {
      reservations.end(*request);
      model.erase(request);
    } else if (is_held) {
      const bool is_over = request->reservation->until() <= now;
      REQUIRE(reservations.lift_if_over(*request, now).empty() == !is_over);
      if (is_over) model[request].clear();
    } else if (random() % 4 == 0) {
      reservations.postpone(*request, now + 1s);
      model[request].clear();
    } else if (reservations.has_room() && Reservations::may_hold(*request, now)) {
      reservations.hold(*request, {node, nodes[0], node}, now);
      model[request] = {};
      for (auto* at : {node, nodes[0], node}) ++model[request][at];
    }
    REQUIRE(reservations.size() == model.size());
    for (auto* at : nodes) {
      double kept = 0;
      for (const auto& [of, ranks] : model)
        kept += ranks.contains(at) ? static_cast<double>(ranks.at(at)) : 0;
      REQUIRE(at->claims.total() == Resources{{"cpu", kept}});
    }
    REQUIRE(keepers.wrong() == "nothing");
  }
}
