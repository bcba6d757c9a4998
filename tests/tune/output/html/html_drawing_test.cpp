// What a real browser draws of rungs, importances, populations and places, with its values.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <troupe/tune.hpp>

#include "output/append_file.hpp"
#include "output/html/html_report.hpp"
#include "support/browser.hpp"
#include "support/scheduler.hpp"
#include "support/temporary_folder.hpp"

namespace html_drawing_test {

using namespace troupe;
using tune::count;
using tune::data_of;
using tune::has_browser;
using tune::Seconds;
using tune::section_of;
using tune::shapes_in;

namespace {

struct Config {
  double lr = 0.1;
  double rest = 0;
  std::string kind = "plain";
  int steps = 9;
};

void train(tune::Context& ctx, const Config& config) {
  for (int t = 1; t <= config.steps; ++t) {
    const double loss = config.kind == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                             : std::abs(config.lr - 0.2) + 1.0 / t;
    if (ctx.report({{"loss", loss}}) == Verdict::Stop) return;
  }
}

/// Adds `lr` to a score that goes from checkpoint to checkpoint.
void grow(tune::Context& ctx, const Config& config) {
  double score = 0;
  int step = 0;
  if (!ctx.restore_from().empty()) std::ifstream(ctx.restore_from()) >> step >> score;
  std::filesystem::create_directories(ctx.storage());
  while (++step <= config.steps) {
    score += config.lr;
    const auto checkpoint = ctx.storage() / ("step-" + std::to_string(step));
    std::ofstream(checkpoint) << step << ' ' << score;
    if (ctx.report({{"score", score}}, checkpoint) == Verdict::Stop) return;
  }
}

std::string percent(double part) { return std::to_string(std::lround(part * 100)) + " %"; }

using Point = std::pair<double, double>;

/// Of a path "M x y Q x y x y".
std::pair<Point, Point> ends_of(const tune::Shape& path) {
  std::istringstream in(path.attributes.at("d"));
  std::string move, curve;
  Point from, bend, to;
  in >> move >> from.first >> from.second >> curve >> bend.first >> bend.second >> to.first >>
      to.second;
  REQUIRE(in);
  return {from, to};
}

bool has_text(const std::vector<tune::Shape>& texts, const std::string& text) {
  return std::ranges::count(texts, text, &tune::Shape::hint) > 0;
}

void check_rungs(const tune::Results<Config>& results, const std::string& drawn) {
  const auto rungs = section_of(drawn, "rungs");
  REQUIRE(results.rungs().size() >= 3);
  double most = 0;
  for (const auto& rung : results.rungs()) most = std::max(most, static_cast<double>(rung.reached));
  const auto parts = shapes_in(rungs, "rect", "rung-part");
  const auto texts = shapes_in(rungs, "text"), cells = shapes_in(rungs, "td");
  std::size_t part = 0, cell = 0, not_finite = 0;
  for (const auto& rung : results.rungs()) {
    CAPTURE(rung.bracket, rung.t);
    CHECK(has_text(texts,
                   "bracket " + std::to_string(rung.bracket) + ", t=" + std::to_string(rung.t)));
    CHECK(has_text(texts, std::to_string(rung.reached)));
    for (const auto& [kind, trials] :
         {std::pair("rung-part rung-passed", rung.reached - rung.stopped - rung.not_finite),
          std::pair("rung-part stopped", rung.stopped),
          std::pair("rung-part errored", rung.not_finite)}) {
      if (trials == 0) continue;
      REQUIRE(part < parts.size());
      CHECK(parts[part].kind() == kind);
      CHECK(parts[part].hint == std::to_string(trials) + " of " + std::to_string(rung.reached));
      CHECK(parts[part++].number("width") ==
            Approx(380 * static_cast<double>(trials) / most).margin(0.01));
    }
    not_finite += rung.not_finite;
    REQUIRE(cells.size() >= cell + 7);
    CHECK(cells[cell].hint == std::to_string(rung.bracket));
    CHECK(cells[cell + 3].hint == std::to_string(rung.reached));
    CHECK(cells[cell + 4].hint == std::to_string(rung.stopped));
    CHECK(cells[cell + 5].hint == std::to_string(rung.not_finite));
    cell += 7;
  }
  CHECK(part == parts.size());
  CHECK(cell == cells.size());
  CHECK(not_finite > 0);
}

void check_importance(const nlohmann::json& importance, const std::string& drawn) {
  const auto section = section_of(drawn, "importance");
  const auto bars = shapes_in(section, "rect", "bar");
  const auto beside = shapes_in(section, "rect", "bar-beside");
  const auto labels = shapes_in(section, "text");
  const auto& fields = importance.at("fields");
  REQUIRE(fields.size() == 3);
  REQUIRE(bars.size() == 3);
  REQUIRE(beside.size() == 3);
  CHECK(fields.at(0).at("name") == "lr");
  double sum = 0;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double fanova = fields.at(i).at("fanova"), ped_anova = fields.at(i).at("ped_anova");
    sum += ped_anova;
    CHECK(bars[i].number("width") == Approx(330 * fanova).margin(0.01));
    CHECK(beside[i].number("width") == Approx(330 * ped_anova).margin(0.01));
    CHECK(has_text(labels, fields.at(i).at("name")));
    CHECK(has_text(labels, percent(fanova)));
    CHECK(has_text(labels, percent(ped_anova)));
  }
  CHECK(sum == Approx(1));
  // Of 40 trials they are shown with a warning.
  CHECK_THAT(section, Catch::Contains(importance.at("warning").get<std::string>()));
  CHECK_THAT(section, Catch::Contains("class=\"warning\""));
}

}  // namespace

TEST_CASE("a browser draws rungs and importances with their values", "[tune][report][browser]") {
  if (!has_browser()) return;
  const tune::TemporaryFolder folder;
  const auto results =
      tune::run<train>({.space = {{"lr", tune::loguniform(1e-3, 1.0)},
                                  {"rest", tune::uniform(0, 1)},
                                  {"kind", tune::choice({"plain", "plain too", "nan"})}},
                        .trials = 40,
                        .metric = "loss",
                        .mode = tune::Min,
                        .scheduler = tune::asha({.max_t = 9, .eta = 3, .brackets = 2}),
                        .storage = folder.path(),
                        .seed = 2,
                        .show = tune::Show::None,
                        .in_process = true});
  const auto page = results.folder() / "report.html";
  const auto drawn = tune::drawn_by_browser(folder.path(), page);
  check_rungs(results, drawn);
  check_importance(data_of(tune::content_of(page)).at("importance"), drawn);
}

TEST_CASE("a browser draws who took over whom in a population, and the schedule that won",
          "[tune][report][browser]") {
  if (!has_browser()) return;
  const tune::TemporaryFolder folder;
  const auto results = tune::run<grow>(
      {.space = {{"lr", tune::uniform(0.1, 1.0)}},
       .trials = 6,
       .metric = "score",
       .mode = tune::Max,
       .scheduler = tune::pbt({.interval = 3, .mutate = {{"lr", tune::uniform(0.1, 1.0)}}}),
       .storage = folder.path(),
       .seed = 4,
       .config = {.steps = 15},
       .show = tune::Show::None,
       .in_process = true});
  const auto drawn = tune::drawn_report(folder, results.folder());
  const auto section = section_of(drawn, "population");
  const auto arrows = shapes_in(section, "path", "arrow");
  std::size_t takeovers = 0;
  for (const auto& each : results.trials()) {
    for (const auto& takeover : each.trial.takeovers) {
      if (takeover.donor == each.trial.id) continue;
      ++takeovers;
      const auto hint = "trial " + std::to_string(each.trial.id) +
                        " at t=" + std::to_string(takeover.t) + " goes on from trial " +
                        std::to_string(takeover.donor) +
                        " at t=" + std::to_string(takeover.checkpoint_t);
      const auto at = std::ranges::find(arrows, hint, &tune::Shape::hint);
      INFO(hint);
      REQUIRE(at != arrows.end());
      // Members stand below each other by their number, and t goes to the right.
      const auto [from, to] = ends_of(*at);
      CHECK((to.second > from.second) == (each.trial.id > takeover.donor));
      CHECK((to.first > from.first) == (takeover.t > takeover.checkpoint_t));
    }
  }
  CHECK(takeovers > 0);
  CHECK(arrows.size() == takeovers);
  CHECK(shapes_in(section, "circle", "dot").size() == takeovers);
  CHECK(shapes_in(section, "line", "grid").size() == 6);
  const auto data = data_of(tune::content_of(results.folder() / "report.html"));
  CHECK(shapes_in(section, "tr").size() ==
        (data.at("schedule").empty() ? 0 : 1 + data.at("schedule").size()));
}

TEST_CASE("a browser draws each attempt in the rows of the slots that its ranks had",
          "[tune][report][browser]") {
  using tune::Event;
  const tune::SearchSpace space{{"x", 0.5}};
  tune::Experiment experiment({.objective = {"loss", tune::Min}},
                              std::make_unique<tune::RandomSearcher>(space, 1, 4),
                              tune::fifo()({"loss", tune::Min}, 1));
  tune::RunRecord record;
  experiment.observe(
      [&](const Event& event, const tune::Trial* trial) { record.see(event, trial); });
  const auto begins = [&](double now, std::vector<tune::Place> places) {
    experiment.next(Seconds(now));
    experiment.started(experiment.trials().size() - 1, Seconds(now), std::move(places));
  };
  const auto ends = [&](tune::TrialId trial, double now) {
    experiment.report(trial, 1, {{"loss", 1.0}}, {}, Seconds(now));
    experiment.ended(trial, Seconds(now));
  };
  begins(0, {{"node-10", 0}, {"node-2", 0}});
  begins(1, {{"node-2", 1}});
  ends(0, 4);
  begins(4, {{"node-2", 0}});
  begins(5, {});  // of an older journal
  for (const tune::TrialId trial : {1, 2, 3}) ends(trial, 8);
  // A run that goes on from a snapshot draws the same.
  tune::RunRecord again;
  again.load(record.save());

  const tune::TemporaryFolder folder;
  const auto page = folder.path() / "report.html";
  tune::replace_file(page, tune::html_report(experiment, space, again, "places", Seconds(8)));
  if (!has_browser()) return;
  const auto drawn = tune::drawn_by_browser(folder.path(), page);
  const auto section = section_of(drawn, "timeline");
  auto spans = shapes_in(section, "rect", "span");
  const auto texts = shapes_in(section, "text");
  CHECK(spans.size() == 5);
  const auto x = [](double seconds) { return 216 + seconds / 8 * (1120 - 24 - 216); };
  const auto check = [&](const std::string& place, int trial, double begin, double end) {
    const auto hint = place + ": attempt 1 of trial " + std::to_string(trial) + ", ";
    const auto at =
        std::ranges::find_if(spans, [&](const auto& span) { return span.hint.starts_with(hint); });
    INFO(hint);
    REQUIRE(at != spans.end());
    CHECK(at->number("x") == Approx(x(begin)).margin(0.01));
    CHECK(at->number("width") == Approx(x(end) - x(begin)).margin(0.01));
    return at->number("y");
  };
  const auto unknown = check("(not recorded), slot 0", 3, 5, 8);
  const auto second = check("node-2, slot 0", 0, 0, 4);
  CHECK(check("node-2, slot 0", 2, 4, 8) == second);
  const auto third = check("node-2, slot 1", 1, 1, 8);
  const auto fourth = check("node-10, slot 0", 0, 0, 4);
  CHECK(unknown < second);
  CHECK(second < third);
  CHECK(third < fourth);
  for (const auto* name : {"node-2", "node-10", "(not recorded)"}) CHECK(has_text(texts, name));
}

}  // namespace html_drawing_test
