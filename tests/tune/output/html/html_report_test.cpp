// The page that a run leaves behind, read as data and by a real browser.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <troupe/tune.hpp>

#include "output/html/metric_curves.hpp"
#include "support/browser.hpp"
#include "support/temporary_folder.hpp"

namespace html_report_test {

using namespace troupe;
using namespace std::chrono_literals;
namespace fs = std::filesystem;
using tune::count;
using tune::data_of;
using tune::has_browser;

namespace {

struct Config {
  double lr = 0.1;
  std::string kind = "plain";
  int steps = 9;
};

constexpr auto kMarkup = "</script><b>not markup</b> & \"quoted\"";

void train(tune::Context& ctx, const Config& config) {
  if (config.kind == "fails") throw std::runtime_error(kMarkup);
  for (int t = 1; t <= config.steps; ++t) {
    const double loss = config.kind == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                             : std::abs(config.lr - 0.2) + 1.0 / t;
    if (ctx.report({{"loss", loss}}, "checkpoint-" + std::to_string(t)) == Verdict::Stop) return;
  }
}

void train_with_more(tune::Context& ctx, const Config& config) {
  for (int t = 1; t <= 3; ++t) {
    Metrics metrics{{"loss", config.lr + 1.0 / t}, {"accuracy", t == 2 ? std::nan("") : 0.5 * t}};
    if (t == 2) metrics["speed, now & then"] = 7;
    ctx.report(metrics);
  }
}

std::function<void()> on_report;

void train_slowly(tune::Context& ctx, const Config& config) {
  for (int t = 1; t <= config.steps; ++t) {
    std::this_thread::sleep_for(2ms);
    on_report();
    if (ctx.report({{"loss", config.lr + 1.0 / t}}) == Verdict::Stop) return;
  }
}

void train_for_two(tune::Context& ctx, const Config& config) {
  const double accuracy =
      config.kind == "nan" ? std::numeric_limits<double>::quiet_NaN() : config.lr * config.lr;
  ctx.report({{"loss", std::abs(config.lr - 0.2)}, {"accuracy", accuracy}});
}

/// A run of 24 trials, of which some fail and some report nan.
tune::Results<Config> run_in(const tune::TemporaryFolder& folder) {
  return tune::run<train>(
      {.space = {{"lr", tune::loguniform(1e-3, 1.0)},
                 {"kind", tune::choice({"plain", "plain too", "fails", "nan"})}},
       .trials = 24,
       .metric = "loss",
       .mode = tune::Min,
       .scheduler = tune::asha({.max_t = 9, .eta = 3}),
       .storage = folder.path(),
       .seed = 2,
       .show = tune::Show::None,
       .in_process = true});
}

std::string page_of(const tune::Results<Config>& results) {
  return tune::content_of(results.folder() / "report.html");
}

}  // namespace

TEST_CASE("the report holds what the run came to", "[tune][report]") {
  const tune::TemporaryFolder folder;
  const auto results = run_in(folder);
  const auto page = page_of(results);
  CHECK_THAT(page, !Catch::Contains("http://") || Catch::Contains("http://www.w3.org/2000/svg"));
  CHECK(count(page, "https://") == 0);
  CHECK(count(page, "src=") == 0);
  const auto data = data_of(page);
  CHECK(data.at("metric") == "loss");
  CHECK(data.at("best") == results.best().trial.id);
  CHECK(data.at("best_checkpoint") == results.best().checkpoint().string());
  REQUIRE(data.at("trials").size() == 24);
  CHECK(data.at("attempts").size() == 24);
  CHECK(data.at("rungs").size() == results.rungs().size());
  CHECK(data.at("fields").at(0) == nlohmann::json({{"name", "lr"}, {"log", true}}));
  CHECK(data.at("fields").at(1).at("values").size() == 4);
  std::size_t failed = 0, not_finite = 0;
  for (const auto& trial : data.at("trials")) {
    const auto& its = results.trials()[trial.at("id").get<std::size_t>()].trial;
    CHECK(trial.at("status") == tune::to_string(its.status));
    CHECK(trial.at("t") == its.t);
    CHECK(trial.at("curve").size() == its.history.size());
    if (trial.at("config").at("kind") == "fails") {
      ++failed;
      CHECK_THAT(trial.at("error").get<std::string>(), Catch::Contains(kMarkup));
    }
    if (trial.at("config").at("kind") != "nan") continue;
    ++not_finite;
    CHECK(trial.at("best").is_null());
    CHECK(trial.at("curve").at(0).at(1).is_null());
  }
  CHECK(failed > 0);
  CHECK(not_finite > 0);
  const auto& importance = data.at("importance");
  CHECK_FALSE(importance.at("fields").empty());
  CHECK_THAT(importance.at("warning").get<std::string>(), Catch::Contains("Below 100"));
}

TEST_CASE("the report of four trials says why it shows no importance", "[tune][report][browser]") {
  const tune::TemporaryFolder folder;
  const auto results = tune::run<train>({.space = {{"lr", tune::loguniform(1e-3, 1.0)}},
                                         .trials = 4,
                                         .metric = "loss",
                                         .mode = tune::Min,
                                         .storage = folder.path(),
                                         .seed = 2,
                                         .show = tune::Show::None,
                                         .in_process = true});
  const auto importance = data_of(page_of(results)).at("importance");
  CHECK(importance.at("trials") == 4);
  CHECK(importance.at("fields").empty());
  if (!has_browser()) return;
  const auto drawn = tune::drawn_report(folder, results.folder());
  CHECK_THAT(drawn, Catch::Contains("Trials with a value: 4. Below 10 no importance"));
  CHECK(count(drawn, "class=\"bar\"") == 0);
}

TEST_CASE("a browser draws the report", "[tune][report][browser]") {
  if (!has_browser()) return;
  const tune::TemporaryFolder folder;
  const auto results = run_in(folder);
  const auto drawn = tune::drawn_report(folder, results.folder());
  for (const std::string section :
       {"history", "curves", "importance", "rungs", "parallel", "slices", "timeline", "trials"})
    CHECK_THAT(drawn, Catch::Contains("<section id=\"" + section + "\""));
  std::size_t with_value = 0;
  for (const auto& trial : results.trials()) with_value += trial.trial.best ? 1 : 0;
  CHECK(count(drawn, "class=\"dot\"") == with_value);
  CHECK(count(drawn, "class=\"line\"") == with_value);
  CHECK(count(drawn, "class=\"slice-dot\"") == 2 * with_value);
  // A curve of one point is a dot.
  const auto dots = count(drawn, "class=\"curve-dot ");
  CHECK(dots > 0);
  CHECK(count(drawn, "class=\"curve ") + dots == 24);
  CHECK(count(drawn, "class=\"span ") == 24);
  CHECK(count(drawn, "NaN") == 0);
  // A text of the user's is a text.
  CHECK(count(drawn, "<b>not markup</b>") == 0);
  CHECK(count(drawn, "&lt;b&gt;not markup&lt;/b&gt;") > 0);
}

TEST_CASE("a reader chooses among the metrics of the learning curves", "[tune][report][browser]") {
  const tune::TemporaryFolder folder;
  const auto results = tune::run<train_with_more>({.space = {{"lr", tune::loguniform(1e-3, 1.0)}},
                                                   .trials = 3,
                                                   .metric = "loss",
                                                   .storage = folder.path(),
                                                   .seed = 2,
                                                   .show = tune::Show::None,
                                                   .in_process = true});
  const auto data = data_of(page_of(results));
  REQUIRE(data.at("metrics").size() == 2);
  const auto& accuracy = data.at("metrics").at(0);
  CHECK(accuracy.at("name") == "accuracy");
  CHECK(accuracy.at("curves").at("1").dump() == "[[1,0.5],[2,null],[3,1.5]]");
  CHECK(data.at("metrics").at(1).at("name") == "speed, now & then");
  CHECK(data.at("metrics").at(1).at("curves").at("2").dump() == "[[2,7.0]]");
  if (!has_browser()) return;
  const auto page = results.folder() / "report.html";
  const auto drawn = tune::drawn_by_browser(folder.path(), page);
  CHECK_THAT(drawn, Catch::Contains("<option selected=\"\">loss</option>") &&
                        Catch::Contains("<option>accuracy</option>") &&
                        Catch::Contains("<option>speed, now &amp; then</option>"));
  CHECK(count(drawn, "class=\"curve ") == 3);
  const auto other =
      tune::drawn_by_browser(folder.path(), page.string() + "#metric=speed,%20now%20%26%20then");
  CHECK_THAT(other, Catch::Contains("<option selected=\"\">speed, now &amp; then</option>"));
  CHECK(count(other, "class=\"curve-dot ") == 3);
  // A name of no metric, and an address that names none, give the search's own metric.
  for (const auto* hash : {"#metric=50%", "#loss", "#metric="}) {
    CHECK_THAT(tune::drawn_by_browser(folder.path(), page.string() + hash),
               Catch::Contains("<option selected=\"\">loss</option>"));
  }
}

TEST_CASE("long curves are thinned, and keep their last report", "[tune][report]") {
  const tune::TemporaryFolder folder;
  const auto path = folder.path() / "reports.jsonl";
  {
    std::ofstream file(path);
    for (int t = 1; t <= 10'001; ++t)
      file << R"({"trial":4,"t":)" << t << R"(,"metrics":{"loss":1,"speed":)" << t << "}}\n";
    file << R"({"trial":"x","t":1,"metrics":{"speed":1}})"
         << "\n[]\ncut off {\n";
    file << R"({"trial":4,"t":1,"metrics":{"accuracy":1}})" << '\n';
  }
  const auto found = tune::metric_curves(path, "loss", 100);
  REQUIRE(found.metrics.size() == 2);
  CHECK(found.left_out.empty());
  const auto& curve = found.metrics.at(1).at("curves").at("4");
  CHECK(curve.size() > 50);
  CHECK(curve.size() < 150);
  CHECK(curve.front() == tune::Json{1, 1});
  CHECK(curve.back() == tune::Json{10'001, 10'001});
  CHECK(tune::metric_curves(folder.path() / "none", "loss", 100).metrics.empty());
  const auto cut = tune::metric_curves(path, "loss", 3);
  CHECK(cut.metrics.size() == 1);
  CHECK_THAT(cut.left_out, Catch::Contains("1 of 2 other metrics can be chosen"));
  CHECK(tune::metric_curves(path, "loss", 1).metrics.empty());
}

/// A run that writes its report as often as it can.
tune::Options<Config> reporting_options(const fs::path& storage) {
  return {.space = {{"lr", tune::loguniform(1e-3, 1.0)}},
          .trials = 8,
          .metric = "loss",
          .storage = storage,
          .report_every = 1ms,
          .seed = 2,
          .show = tune::Show::None,
          .in_process = true};
}

TEST_CASE("the report is there while the run goes on, and says so", "[tune][report][browser]") {
  const tune::TemporaryFolder folder;
  std::string page;
  on_report = [&] {
    const auto there = folder.path() / "run-1" / "report.html";
    if (page.empty() && fs::exists(there)) page = tune::content_of(there);
  };
  const auto results = tune::run<train_slowly>(reporting_options(folder.path()));
  on_report = {};
  REQUIRE_FALSE(page.empty());
  const auto seen = data_of(page);
  CHECK(seen.at("under_way") == true);
  CHECK(seen.at("every") > 0);
  CHECK(seen.at("importance").at("fields").empty());
  CHECK_THAT(seen.at("importance").at("warning").get<std::string>(),
             Catch::Contains("once the run is over"));
  const auto last = data_of(page_of(results));
  CHECK(last.at("under_way") == false);
  CHECK(last.at("every") == 0);
  if (!has_browser()) return;
  const auto drawn_as_of = [&](const std::string& written) {
    const auto at = page.find("\"written\":") + 10;
    page.replace(at, page.find(',', at) - at, written);
    std::ofstream(folder.path() / "page.html") << page;
    return tune::drawn_by_browser(folder.path(), folder.path() / "page.html");
  };
  // However late the browser comes.
  CHECK_THAT(drawn_as_of("4e9"), Catch::Contains("and this page loads itself anew") &&
                                     Catch::Contains("in the page once the run is over"));
  // As a driver leaves it that was killed.
  CHECK_THAT(drawn_as_of("1.0"),
             Catch::Contains("and nobody has written this page since: `troupe tune show` says "
                             "whether the run goes on"));
}

TEST_CASE("without an interval there is no report before the end", "[tune][report]") {
  const tune::TemporaryFolder folder;
  auto options = reporting_options(folder.path());
  options.report_every = 0ms;
  bool was_there = false;
  on_report = [&] { was_there = was_there || fs::exists(folder.path() / "run-1/report.html"); };
  const auto results = tune::run<train_slowly>(options);
  on_report = {};
  CHECK_FALSE(was_there);
  CHECK(fs::exists(results.folder() / "report.html"));
  options.report_every = -1ms;
  CHECK_THROWS_WITH(tune::run<train_slowly>(options),
                    Catch::Contains("report_every -1 ms is at least 0"));
}

TEST_CASE("a report that cannot be written is told once, and the run goes on", "[tune][report]") {
  const tune::TemporaryFolder folder;
  const auto page = folder.path() / "run-1/report.html";
  on_report = [&] {
    std::error_code ignored;  // a page that is written at this moment: the next report tries again
    if (!fs::is_directory(page)) fs::remove(page, ignored);
    fs::create_directories(page / "in the way", ignored);
  };
  const auto results = tune::run<train_slowly>(reporting_options(folder.path()));
  on_report = {};
  CHECK(results.ended_early() == "");
  CHECK(results.trials().size() == 8);
  CHECK(count(results.summary(), "report.html") == 1);
}

TEST_CASE("a browser draws the Pareto front of a run with several objectives",
          "[tune][report][browser]") {
  const tune::TemporaryFolder folder;
  const auto results = tune::run<train_for_two>(
      {.space = {{"lr", tune::loguniform(1e-3, 1.0)}, {"kind", tune::choice({"plain", "nan"})}},
       .trials = 24,
       .objectives = {{"loss", tune::Min}, {"accuracy", tune::Max}},
       .constraints = {{"accuracy", tune::AtMost, 0.001}},
       .storage = folder.path(),
       .seed = 2,
       .show = tune::Show::None,
       .in_process = true});
  const auto data = data_of(page_of(results));
  CHECK(data.at("pareto").size() == results.pareto_front().size());
  CHECK(data.at("objectives").at(1) == nlohmann::json({{"metric", "accuracy"}, {"mode", "max"}}));
  if (!has_browser()) return;
  const auto drawn = tune::drawn_report(folder, results.folder());
  CHECK_THAT(drawn, Catch::Contains("<section id=\"pareto\""));
  std::size_t finite = 0, beyond = 0;
  for (const auto& each : results.trials()) {
    finite += each.config.kind == "plain" ? 1 : 0;
    beyond += each.config.kind == "plain" && each.trial.violation > 0 ? 1 : 0;
  }
  REQUIRE(beyond > 0);
  CHECK(count(drawn, "class=\"pareto-dot") == finite);
  CHECK(count(drawn, "class=\"pareto-dot is-beyond\"") == beyond);
  CHECK(count(drawn, "; violation ") == beyond);
  CHECK_THAT(drawn, Catch::Contains("no other trial that keeps to the limits (accuracy at most "
                                    "0.001) is at least as good in all of"));
  CHECK_THAT(drawn, Catch::Contains("Pareto front: ") && !Catch::Contains(">Best: "));
  CHECK(count(drawn, "class=\"pareto-dot is-front\"") == results.pareto_front().size());
  CHECK(count(drawn, "NaN") == 0);
}

}  // namespace html_report_test
