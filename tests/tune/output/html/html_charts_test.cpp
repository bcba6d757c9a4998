// Where a real browser draws the points of the charts that show a metric: each where its values say.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "support/browser.hpp"
#include "support/temporary_folder.hpp"

namespace html_charts_test {

using namespace troupe;
using tune::section_of;
using tune::Shape;
using tune::shapes_in;

namespace {

struct Config {
  double lr = 0.1;
  double rest = 0;
  std::string kind = "plain";
};

const std::vector<std::string> kKinds{"plain", "curved", "steep"};
constexpr int kSteps = 5;

std::size_t place_of(const std::string& kind) {
  return static_cast<std::size_t>(std::ranges::find(kKinds, kind) - kKinds.begin());
}

double loss_of(const Config& config, int t) {
  return config.rest + config.lr + static_cast<double>(place_of(config.kind) + 1) / t;
}

void train(tune::Context& ctx, const Config& config) {
  for (int t = 1; t <= kSteps; ++t)
    if (ctx.report({{"loss", loss_of(config, t)}}) == Verdict::Stop) return;
}

/// Values, and the pixels at which they are drawn.
class Axis {
 public:
  void add(double value, double pixel) { points_.emplace_back(value, pixel); }
  /// The pixels grow with the values as along a ruler, or fall so.
  void check(bool rises) const {
    REQUIRE(points_.size() >= 2);
    const auto [low, high] = std::ranges::minmax(points_);
    REQUIRE(high.first > low.first);
    CHECK((high.second > low.second) == rises);
    for (const auto& [value, pixel] : points_) {
      const double part = (value - low.first) / (high.first - low.first);
      CAPTURE(value, pixel);
      CHECK(pixel == Approx(low.second + part * (high.second - low.second)).margin(0.01));
    }
  }

 private:
  std::vector<std::pair<double, double>> points_;
};

/// Of which trial a shape tells: "trial 12, terminated: ...".
std::size_t trial_of(const Shape& shape) {
  REQUIRE(shape.hint.starts_with("trial "));
  return std::stoul(shape.hint.substr(6));
}

using Points = std::vector<std::pair<double, double>>;

/// Of a polyline "x,y x,y", or of a path "M x y L x y".
Points points_of(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == ',' || c == 'M' || c == 'L'; }, ' ');
  std::istringstream in(text);
  Points points;
  for (double x = 0, y = 0; in >> x >> y;) points.emplace_back(x, y);
  return points;
}

/// What the axis of each field goes by.
std::vector<double> on_axes(const Config& config) {
  return {std::log(config.lr), config.rest, static_cast<double>(place_of(config.kind))};
}

void check_history(const std::string& section, const tune::Results<Config>& results,
                   const nlohmann::json& data) {
  Axis across, upward;
  Points dots;  // in the order of their times
  for (const auto& dot : shapes_in(section, "circle", "dot")) {
    const auto& trial = results.trials().at(trial_of(dot)).trial;
    const double at = data.at("trials").at(trial_of(dot)).at("best_at");
    across.add(at, dot.number("cx"));
    upward.add(trial.best.value(), dot.number("cy"));
    dots.emplace_back(dot.number("cx"), dot.number("cy"));
  }
  CHECK(dots.size() == results.trials().size());
  CHECK(std::ranges::is_sorted(dots, {}, &std::pair<double, double>::first));
  across.check(true);
  upward.check(false);
  // The best so far: a step down for each trial that is better, whose pixels count from above.
  const auto lines = shapes_in(section, "polyline", "best-so-far");
  REQUIRE(lines.size() == 1);
  const auto drawn = points_of(lines[0].attributes.at("points"));
  double best = dots.front().second;
  Points expected;
  for (const auto& [x, y] : dots) {
    if (y > best) expected.emplace_back(x, best);
    best = std::max(best, y);
    expected.emplace_back(x, best);
  }
  REQUIRE(drawn.size() == expected.size() + 1);
  CHECK(std::equal(expected.begin(), expected.end(), drawn.begin()));
  CHECK(drawn.back().second == best);
  CHECK(drawn.back().first >= drawn[drawn.size() - 2].first);
}

void check_curves(const std::string& section, const tune::Results<Config>& results) {
  Axis across, upward;
  const auto curves = shapes_in(section, "polyline", "curve");
  REQUIRE(curves.size() == results.trials().size());
  for (const auto& curve : curves) {
    const auto& config = results.trials().at(trial_of(curve)).config;
    const auto points = points_of(curve.attributes.at("points"));
    REQUIRE(points.size() == kSteps);
    for (int t = 1; t <= kSteps; ++t) {
      across.add(t, points[static_cast<std::size_t>(t - 1)].first);
      upward.add(loss_of(config, t), points[static_cast<std::size_t>(t - 1)].second);
    }
  }
  across.check(true);
  upward.check(false);
  CHECK(trial_of(curves.back()) == results.best().trial.id);
  CHECK(curves.back().kind().ends_with(" is-best"));
}

void check_parallel(const std::string& section, const tune::Results<Config>& results) {
  const auto lines = shapes_in(section, "path", "line");
  REQUIRE(lines.size() == results.trials().size());
  std::vector<Axis> axes(4);
  const auto places = points_of(lines[0].attributes.at("d"));
  for (const auto& line : lines) {
    const auto& [config, trial, text] = results.trials().at(trial_of(line));
    const auto points = points_of(line.attributes.at("d"));
    REQUIRE(points.size() == axes.size());
    auto values = on_axes(config);
    values.push_back(trial.best.value());
    for (std::size_t i = 0; i < axes.size(); ++i) {
      CHECK(points[i].first == places[i].first);
      axes[i].add(values[i], points[i].second);
    }
  }
  for (const auto& axis : axes) axis.check(false);
  CHECK(std::ranges::is_sorted(places, {}, &std::pair<double, double>::first));
  // The better a trial, the stronger its colour, and the later it is drawn.
  for (std::size_t i = 1; i < lines.size(); ++i)
    CHECK(lines[i].number("stroke-opacity") > lines[i - 1].number("stroke-opacity"));
  CHECK(trial_of(lines.back()) == results.best().trial.id);
}

void check_slices(const std::string& section, const tune::Results<Config>& results) {
  const auto trials = results.trials().size();
  const auto dots = shapes_in(section, "circle", "slice-dot");
  REQUIRE(dots.size() == 3 * trials);
  for (std::size_t field = 0; field < 3; ++field) {
    Axis across, upward;
    for (std::size_t i = 0; i < trials; ++i) {
      const auto& dot = dots[field * trials + i];
      const auto& each = results.trials().at(trial_of(dot));
      across.add(on_axes(each.config)[field], dot.number("cx"));
      upward.add(each.trial.best.value(), dot.number("cy"));
    }
    across.check(true);
    upward.check(false);
  }
}

}  // namespace

TEST_CASE("a browser draws history, curves, coordinates and slices where their values say",
          "[tune][report][browser]") {
  if (!tune::has_browser()) return;
  const tune::TemporaryFolder folder;
  const auto results = tune::run<train>({.space = {{"lr", tune::loguniform(1e-3, 1.0)},
                                                   {"rest", tune::uniform(0, 1)},
                                                   {"kind", tune::choice(kKinds)}},
                                         .trials = 20,
                                         .metric = "loss",
                                         .mode = tune::Min,
                                         .storage = folder.path(),
                                         .seed = 5,
                                         .show = tune::Show::None,
                                         .in_process = true});
  const auto page = results.folder() / "report.html";
  const auto drawn = tune::drawn_by_browser(folder.path(), page);
  check_history(section_of(drawn, "history"), results, tune::data_of(tune::content_of(page)));
  check_curves(section_of(drawn, "curves"), results);
  check_parallel(section_of(drawn, "parallel"), results);
  check_slices(section_of(drawn, "slices"), results);
}

}  // namespace html_charts_test
