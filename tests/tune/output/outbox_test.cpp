#include "output/mlflow/outbox.hpp"

#include <fstream>
#include <random>

#include <catch2/catch.hpp>

#include "output/mlflow/delivered_file.hpp"
#include "output/mlflow/server_url.hpp"
#include "rounds.hpp"
#include "support/outbox_server.hpp"
#include "support/temporary_folder.hpp"

namespace outbox_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

using Kind = Outbox::Request::Kind;
using How = Outbox::Answer::Kind;

std::vector<std::int64_t> steps_of(const Outbox::Request& request) {
  std::vector<std::int64_t> steps;
  const auto body = Json::parse(request.body);
  for (const auto& metric : body.at("metrics"))
    steps.push_back(metric.at("step").get<std::int64_t>());
  return steps;
}

}  // namespace

TEST_CASE("an outbox tells the experiment, then the parent, then its trials", "[tune][mlflow]") {
  Outbox outbox("two words", 100);
  outbox.begin_run({}, "search", kNoon, {{"seed", "1"}}, {});
  outbox.begin_run(0, "trial 0", kNoon, {{"lr", "0.5"}}, {{"troupe.trial", "0"}});
  auto request = outbox.next();
  REQUIRE(request);
  CHECK(request->path == "/api/2.0/mlflow/experiments/get-by-name?experiment_name=two%20words");
  CHECK_FALSE(outbox.next());
  outbox.answered(*request, {How::Refused, {}, "RESOURCE_DOES_NOT_EXIST"});
  request = outbox.next();
  REQUIRE(request);
  CHECK(request->body == R"({"name":"two words"})");
  // Somebody else has made it meanwhile.
  outbox.answered(*request, {How::Refused, {}, "RESOURCE_ALREADY_EXISTS"});
  request = outbox.next();
  REQUIRE(request);
  CHECK(request->kind == Kind::FindExperiment);
  CHECK(take(outbox, *request) == Json{{"experiment_id", "1"}});
  request = outbox.next();
  REQUIRE(request);
  CHECK((request->kind == Kind::CreateRun && !request->run));
  CHECK_FALSE(outbox.next());  // the parent's id is not known
  CHECK(outbox.answered(*request, {How::Taken, content_for(*request, 3), {}}) ==
        Json{{"run", nullptr}, {"id", "run3"}});
  std::vector<std::string> told;
  while ((request = outbox.next())) {
    if (request->run && request->kind == Kind::CreateRun)
      CHECK(Json::parse(request->body).at("tags").at(1) ==
            Json{{"key", "mlflow.parentRunId"}, {"value", "run3"}});
    for (const auto& [name, value] : request->params) told.push_back(name + "=" + value);
    take(outbox, *request);
  }
  CHECK(told == std::vector<std::string>{"seed=1", "lr=0.5"});
  CHECK(outbox.is_empty());
}

TEST_CASE("an outbox makes no request larger than the API takes", "[tune][mlflow]") {
  auto outbox = with_run(1'000'000);
  Texts many;
  for (int i = 0; i < 130; ++i) many.emplace_back("p" + std::to_string(i), std::string(2000, 'v'));
  outbox.begin_run(1, "trial 1", kNoon, many, {});
  for (std::uint64_t i = 1; i <= 5000; ++i)
    outbox.report(1, i, static_cast<std::int64_t>(i), kNoon, {{"a", 1}, {"b", 2}, {"c", 3}});
  std::size_t values = 0, params = 0;
  while (const auto request = outbox.next()) {
    if (request->kind == Kind::Log) {
      const auto body = Json::parse(request->body);
      CHECK(body.at("metrics").size() <= 1000);
      CHECK(body.at("params").size() <= 100);
      CHECK(body.at("metrics").size() + body.at("params").size() + body.at("tags").size() <= 1000);
      CHECK(request->body.size() < 1'000'000);
      values += body.at("metrics").size();
      params += body.at("params").size();
      for (const auto& param : body.at("params"))
        CHECK(param.at("value").get_ref<const std::string&>().size() == 500);
    }
    take(outbox, *request);
  }
  CHECK(values == 15'000);
  CHECK(params == 130);
}

TEST_CASE("an outbox drops the oldest values where too many wait", "[tune][mlflow]") {
  auto outbox = with_run(10);
  outbox.begin_run(1, "trial 1", kNoon, {}, {});
  for (std::uint64_t i = 1; i <= 8; ++i) {
    outbox.report(0, i, static_cast<std::int64_t>(i), kNoon, {{"a", 1}});
    outbox.report(1, i, static_cast<std::int64_t>(i), kNoon, {{"a", 1}});
  }
  CHECK(outbox.waiting() == 10);
  CHECK(outbox.dropped() == 6);
  std::map<RunKey, std::vector<std::int64_t>> steps;
  while (const auto request = outbox.next()) {
    if (request->kind == Kind::Log) steps[request->run] = steps_of(*request);
    take(outbox, *request);
  }
  CHECK(steps[0] == std::vector<std::int64_t>{4, 5, 6, 7, 8});
  CHECK(steps[1] == std::vector<std::int64_t>{4, 5, 6, 7, 8});
  CHECK(outbox.waiting() == 0);
}

TEST_CASE("an outbox gives up what is refused, and says how much", "[tune][mlflow]") {
  auto outbox = with_run(100);
  outbox.report(0, 1, 1, kNoon, {{"a", 1}, {"b", 2}});
  // Of two names either may be at fault.
  for (int i = 0; i < 3; ++i)
    outbox.answered(*outbox.next(), {How::Refused, {}, "INVALID_PARAMETER_VALUE"});
  CHECK(outbox.refused() == 2);
  outbox.report(0, 2, 2, kNoon, {{"a", 1}});
  const auto request = outbox.next();
  REQUIRE(request);
  outbox.report(0, 3, 3, kNoon, {{"a", 1}});
  // Somebody has deleted the run.
  outbox.answered(*request, {How::Refused, {}, "RESOURCE_DOES_NOT_EXIST"});
  CHECK(outbox.refused() == 4);
  outbox.report(0, 4, 4, kNoon, {{"a", 1}});
  CHECK(outbox.refused() == 5);
  CHECK_FALSE(outbox.next());
  CHECK(outbox.is_empty());
  CHECK(outbox.waiting() == 0);
}

TEST_CASE("whatever is answered, an outbox tells each report once and in order", "[tune][mlflow]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  std::vector<Json> lines;
  std::map<RunKey, std::vector<std::int64_t>> told;
  // Three drivers: each after the first begins with all events again, and what was written down.
  for (int driver = 1; driver <= 3; ++driver) {
    Outbox outbox("digits", 1'000'000);
    for (const auto& line : lines) outbox.load(line);
    std::vector<Outbox::Request> asked;
    const auto answer_one = [&] {
      if (asked.empty()) return;
      const auto at = asked.begin() + static_cast<std::ptrdiff_t>(random() % asked.size());
      const auto request = *at;
      asked.erase(at);
      if (one_in(3)) {
        CHECK(outbox.answered(request, {}).is_null());
        return;
      }
      if (request.kind == Kind::Log)
        for (const auto step : steps_of(request)) told[request.run].push_back(step);
      lines.push_back(take(outbox, request));
    };
    outbox.begin_run({}, "search", kNoon, {{"seed", "1"}}, {});
    for (int event = 0; event < 300 * driver; ++event) {
      const TrialId trial = static_cast<TrialId>(event % 5);
      outbox.begin_run(trial, "trial", kNoon, {{"lr", "1"}}, {});
      outbox.report(trial, static_cast<std::uint64_t>(event / 5 + 1), event / 5, kNoon, {{"a", 1}});
      if (auto request = outbox.next(); request && event > 300 * (driver - 1))
        asked.push_back(std::move(*request));
      else if (request)
        outbox.answered(*request, {});
      while (one_in(2) && !asked.empty()) answer_one();
    }
    while (driver == 3 && !outbox.is_empty()) {
      if (auto request = outbox.next()) asked.push_back(std::move(*request));
      answer_one();
    }
    while (!asked.empty()) answer_one();
  }
  for (TrialId trial = 0; trial < 5; ++trial) {
    REQUIRE(told[trial].size() == 180);
    for (std::int64_t step = 0; step < 180; ++step)
      CHECK(told[trial][static_cast<std::size_t>(step)] == step);
  }
}

TEST_CASE("an answer that is not MLflow's counts as none", "[tune][mlflow]") {
  Outbox outbox("digits", 100);
  outbox.begin_run({}, "search", kNoon, {}, {});
  const auto request = outbox.next();
  REQUIRE(request);
  for (const Json& content : {Json(), Json::object(), Json{{"experiment", 3}}, Json("x")})
    CHECK(outbox.answered(*request, {How::Taken, content, {}}).is_null());
  CHECK(outbox.next()->path == request->path);
}

TEST_CASE("what a server has taken is read again, without half a line or another server's",
          "[tune][mlflow]") {
  const TemporaryFolder folder;
  const Json first{{"experiment_id", "1"}}, second{{"run", nullptr}, {"id", "a"}};
  DeliveredFile(folder.path(), "http://one", "digits").append(first);
  std::ofstream(folder.path() / "mlflow.jsonl", std::ios::app) << R"({"run":0,"rep)";
  {
    DeliveredFile file(folder.path(), "http://one", "digits");
    CHECK(file.lines() == std::vector<Json>{first});
    file.append(second);
  }
  CHECK(DeliveredFile(folder.path(), "http://one", "digits").lines() ==
        std::vector<Json>{first, second});
  CHECK(DeliveredFile(folder.path(), "http://two", "digits").lines().empty());
  CHECK(DeliveredFile(folder.path(), "http://two", "letters").lines().empty());
}

TEST_CASE("a server's URL is taken apart, or refused with what is wrong", "[tune][mlflow]") {
  const auto url = ServerUrl::parse("http://tracking:5000/team/a/");
  CHECK(url.host == "tracking");
  CHECK(url.port == "5000");
  CHECK(url.prefix == "/team/a");
  CHECK(ServerUrl::parse("http://tracking").authority() == "tracking:80");
  CHECK(ServerUrl::parse("http://[::1]:5000").host == "::1");
  CHECK(ServerUrl::parse("http://[::1]:5000").authority() == "[::1]:5000");
  CHECK(ServerUrl::parse("https://tracking").authority() == "tracking:443");
  CHECK(ServerUrl::parse("https://tracking/a/").url_of("/b") == "https://tracking:443/a/b");
  CHECK_THROWS_WITH(ServerUrl::parse("https://tracking?a"), Catch::Contains("no query"));
  CHECK_THROWS_WITH(ServerUrl::parse("tracking:5000"), Catch::Contains("begin with http://"));
  CHECK_THROWS_WITH(ServerUrl::parse("http://:5000"), Catch::Contains("names no host"));
  CHECK_THROWS_WITH(ServerUrl::parse("http://tracking:50x"), Catch::Contains("'50x' is no port"));
  CHECK_THROWS_WITH(ServerUrl::parse("http://tracking:65536"),
                    Catch::Contains("'65536' is no port"));
  CHECK_THROWS_WITH(ServerUrl::parse("http://me:secret@tracking"),
                    Catch::Contains("MLFLOW_TRACKING_PASSWORD"));
}

}  // namespace outbox_test
