// What an outbox makes of a batch that its server refuses.
#include "output/mlflow/refused_batch.hpp"

#include <map>
#include <random>
#include <set>

#include <catch2/catch.hpp>

#include "output/mlflow/outbox.hpp"
#include "rounds.hpp"
#include "support/outbox_server.hpp"

namespace refused_batch_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

using How = Outbox::Answer::Kind;

}  // namespace

TEST_CASE("a name that a server refuses costs what has it, and is told no more", "[tune][mlflow]") {
  auto outbox = with_run(100);
  outbox.begin_run(1, "trial 1", kNoon, {{"lr", "1"}, {"bad", "2"}}, {{"troupe.trial", "1"}});
  for (std::uint64_t i = 1; i <= 3; ++i)
    outbox.report(1, i, static_cast<std::int64_t>(i), kNoon, {{"a", 1}, {"bad", 2}, {"c", 3}});
  Refusing server({"bad"});
  server.take_all(outbox);
  CHECK(server.told(1, "a") == std::vector<std::int64_t>{1, 2, 3});
  CHECK(server.told(1, "c") == std::vector<std::int64_t>{1, 2, 3});
  CHECK(server.told(1, "lr") == std::vector<std::int64_t>{0});
  CHECK(server.told(1, "troupe.trial") == std::vector<std::int64_t>{0});
  CHECK(server.told(1, "bad").empty());
  CHECK(outbox.refused() == 3);
  CHECK(outbox.waiting() == 0);
  CHECK(outbox.is_empty());
  CHECK(outbox.refused_names() ==
        std::set<EntityName>{{EntityName::Kind::Param, "bad"}, {EntityName::Kind::Metric, "bad"}});
  // Another run's batch is taken at once.
  const auto requests = server.batches();
  outbox.report(0, 1, 1, kNoon, {{"a", 1}, {"bad", 2}});
  outbox.add_tags(0, {{"bad", "of a tag it is another name"}});
  server.take_all(outbox);
  CHECK(server.told(0, "a") == std::vector<std::int64_t>{1});
  CHECK(outbox.refused() == 4);
  CHECK(server.batches() == requests + 3);  // with the tag's
}

TEST_CASE("what waits under a name that a server refuses waits no more", "[tune][mlflow]") {
  auto outbox = with_run(10'000);
  for (std::uint64_t i = 1; i <= 1000; ++i)
    outbox.report(0, i, static_cast<std::int64_t>(i), kNoon, {{"a", 1}, {"bad", 2}});
  Refusing server({"bad"});
  server.take_all(outbox);
  CHECK(server.told(0, "a").size() == 1000);
  CHECK(outbox.refused() == 1000);
  CHECK(outbox.waiting() == 0);
  CHECK(server.batches() == 4);  // one of 900 values, its two names, and the other values of "a"
}

TEST_CASE("a name that a server took once is told again where it was refused", "[tune][mlflow]") {
  auto outbox = with_run(100);
  Refusing server({});
  outbox.report(0, 1, 1, kNoon, {{"a", 1}, {"b", 1}});
  server.take_all(outbox);
  Refusing strict({"b"});
  outbox.report(0, 2, 2, kNoon, {{"a", 1}, {"b", 1}});
  strict.take_all(outbox);
  CHECK(outbox.refused() == 1);
  CHECK(outbox.refused_names().empty());
  outbox.report(0, 3, 3, kNoon, {{"a", 1}, {"b", 1}});
  server.take_all(outbox);
  CHECK(server.told(0, "b") == std::vector<std::int64_t>{1, 3});
}

TEST_CASE("a batch is taken apart only so far as that can help", "[tune][mlflow]") {
  auto outbox = with_run(1000);
  std::set<std::string> all;
  Metrics metrics;
  for (int i = 0; i < 200; ++i)
    metrics.emplace_back(all.insert("m" + std::to_string(i)).first->c_str(), i);
  outbox.report(0, 1, 1, kNoon, metrics);
  Refusing server(all);
  server.take_all(outbox);
  CHECK(outbox.refused() == 200);
  CHECK(outbox.waiting() == 0);
  CHECK(server.batches() < 50);
  CHECK(outbox.refused_names().empty());  // of a server that refuses all of them, no name is known

  outbox.report(0, 2, 2, kNoon, {{"a", 1}, {"b", 1}});
  outbox.answered(*outbox.next(), {.kind = How::Refused, .is_of_content = false});
  CHECK_FALSE(outbox.next());  // whoever may not tell it may not tell its parts
  CHECK(outbox.refused() == 202);

  outbox.report(0, 3, 3, kNoon, {{"a", 1}, {"b", 1}});
  outbox.answered(*outbox.next(), {How::Refused, {}, "INVALID_PARAMETER_VALUE"});
  outbox.answered(*outbox.next(), {How::Refused, {}, "RESOURCE_DOES_NOT_EXIST"});
  CHECK(outbox.refused() == 204);
  CHECK(outbox.waiting() == 0);
  CHECK(outbox.is_empty());
}

TEST_CASE("what of a batch was taken in parts is not told again by a later driver",
          "[tune][mlflow]") {
  std::vector<Json> lines;
  Refusing server({"bad"});
  for (int driver = 0; driver < 2; ++driver) {
    Outbox outbox("digits", 100);
    for (const auto& line : lines) outbox.load(line);
    outbox.begin_run({}, "search", kNoon, {{"seed", "1"}, {"bad", "2"}}, {});
    outbox.report({}, 1, 1, kNoon, {{"a", 1}, {"bad", 2}});
    lines = server.take_all(outbox);
  }
  CHECK(server.told({}, "a") == std::vector<std::int64_t>{1});
  CHECK(server.told({}, "seed") == std::vector<std::int64_t>{0});
}

TEST_CASE("whatever is answered, an outbox tells each value once and in order but those refused",
          "[tune][mlflow]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  Refusing server({"bad", "worse"}, seed);
  std::mt19937 random(seed);
  Outbox outbox("digits", 1'000'000);
  outbox.begin_run({}, "search", kNoon, {{"seed", "1"}}, {});
  std::size_t refused = 0;
  std::map<std::pair<TrialId, std::string>, std::vector<std::int64_t>> reported;
  for (int event = 0; event < 1000; ++event) {
    const TrialId trial = static_cast<TrialId>(event % 5);
    outbox.begin_run(trial, "trial", kNoon, {{"lr", "1"}, {"bad", "2"}}, {});
    Metrics metrics;
    for (const auto* name : {"a", "bad", "c", "d", "worse"}) {
      if (random() % 3 == 0) continue;
      metrics.emplace_back(name, 1);
      reported[{trial, name}].push_back(event);
      refused += name == std::string("bad") || name == std::string("worse") ? 1 : 0;
    }
    outbox.report(trial, static_cast<std::uint64_t>(event / 5 + 1), event, kNoon, metrics);
    server.answer_some(outbox);
  }
  server.take_all(outbox);
  for (const auto& [who, steps] : reported) {
    CAPTURE(who.first, who.second);
    const bool is_refused = who.second == "bad" || who.second == "worse";
    CHECK(server.told(who.first, who.second) == (is_refused ? std::vector<std::int64_t>() : steps));
  }
  CHECK(outbox.refused() == refused);
  CHECK(outbox.waiting() == 0);
}

}  // namespace refused_batch_test
