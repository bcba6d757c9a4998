// What a real browser draws of the fields of trials, of axes and of single values.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "support/browser.hpp"
#include "support/temporary_folder.hpp"

namespace html_fields_test {

using namespace troupe;
using tune::has_browser;
using tune::section_of;
using tune::shapes_in;

namespace {

struct Config {
  std::string optimizer = "sgd";
  double momentum = 0.9;
  double lr = 0.1;
  double decay = 0.1;
  double warmup = 0;
  int steps = 2;
  std::int64_t id = 0;
};

void train(tune::Context& ctx, const Config& config) {
  for (int t = 1; t <= config.steps; ++t)
    if (ctx.report({{"loss", 1e6 + config.lr / t}}) == Verdict::Stop) return;
}

/// Whose optimizer is "lion" does best.
void train_in_population(tune::Context& ctx, const Config& config) {
  int step = 0;
  if (!ctx.restore_from().empty()) std::ifstream(ctx.restore_from()) >> step;
  std::filesystem::create_directories(ctx.storage());
  while (++step <= config.steps) {
    const auto checkpoint = ctx.storage() / ("step-" + std::to_string(step));
    std::ofstream(checkpoint) << step;
    const double loss = config.optimizer == "lion" ? 0 : 1 + config.lr;
    if (ctx.report({{"loss", loss}}, checkpoint) == Verdict::Stop) return;
  }
}

bool is_sgd(const Config& config) { return config.optimizer == "sgd"; }

/// The page of a run of so many trials, as the browser draws it.
std::string drawn(const tune::Space<Config>& space, std::size_t trials,
                  const std::vector<Config>& first = {}) {
  const tune::TemporaryFolder folder;
  const auto results = tune::run<train>({.space = space,
                                         .trials = trials,
                                         .metric = "loss",
                                         .mode = tune::Min,
                                         .storage = folder.path(),
                                         .seed = 2,
                                         .first = first,
                                         .show = tune::Show::None,
                                         .in_process = true});
  return tune::drawn_report(folder, results.folder());
}

tune::Space<Config> space_with_conditions() {
  return {{"optimizer", tune::choice({"sgd", "adam"})},
          {"momentum", tune::uniform(0.8, 1), is_sgd},
          {"lr", tune::loguniform(1e-5, 1)},
          {"decay", tune::uniform(0, 1), is_sgd},
          {"warmup", [](const Config& config) { return config.lr / 2; }},
          {"steps", 2}};
}

std::vector<std::string> texts_in(const std::string& section, const std::string& element) {
  std::vector<std::string> texts;
  for (const auto& shape : shapes_in(section, element)) texts.push_back(shape.hint);
  return texts;
}

bool has(const std::vector<std::string>& texts, const std::string& text) {
  return std::ranges::count(texts, text) > 0;
}

/// The commands of a path, without its numbers.
std::string commands_of(const tune::Shape& path) {
  std::string commands = path.attributes.at("d");
  std::erase_if(commands, [](char c) { return !std::isalpha(static_cast<unsigned char>(c)); });
  return commands;
}

}  // namespace

TEST_CASE("a browser draws a learning curve of one point as a dot", "[tune][report][browser]") {
  if (!has_browser()) return;
  const auto curves =
      section_of(drawn({{"lr", tune::uniform(0, 1)}, {"steps", tune::choice({1, 2})}}, 4,
                       {{.steps = 1}, {.lr = 0.2, .steps = 1}, {.steps = 2}, {.steps = 2}}),
                 "curves");
  CHECK(shapes_in(curves, "circle", "curve-dot").size() == 2);
  CHECK(shapes_in(curves, "polyline", "curve").size() == 2);
}

TEST_CASE("a browser draws computed fields, and the table has constants too",
          "[tune][report][browser]") {
  if (!has_browser()) return;
  const auto page = drawn(space_with_conditions(), 12);
  const auto heads = texts_in(section_of(page, "trials"), "th");
  CHECK(has(heads, "warmup"));
  CHECK(has(heads, "steps"));
  for (const auto* section : {"parallel", "slices"}) {
    CAPTURE(section);
    const auto texts = texts_in(section_of(page, section), "text");
    CHECK(has(texts, "warmup"));
    CHECK_FALSE(has(texts, "steps"));  // all trials would share its only place
  }
}

TEST_CASE("a browser breaks a trial's line at fields that the trial does not use",
          "[tune][report][browser]") {
  if (!has_browser()) return;
  const auto page = drawn(space_with_conditions(), 12);
  const auto parallel = section_of(page, "parallel");
  std::size_t with_sgd = 0, with_adam = 0;
  for (const auto& line : shapes_in(parallel, "path", "line")) {
    const bool has_momentum = line.hint.find("momentum=") != std::string::npos;
    ++(has_momentum ? with_sgd : with_adam);
    // Of adam's trials `optimizer` and `lr` have no neighbour that they use: a dash each.
    CHECK(commands_of(line) == (has_momentum ? "MLLLLL" : "MhMhML"));
  }
  CHECK(with_sgd > 0);
  CHECK(with_adam > 0);
  const auto usage = "in " + std::to_string(with_sgd) + " of 12 trials";
  CHECK(std::ranges::count(texts_in(parallel, "text"), usage) == 2);
  CHECK(has(texts_in(section_of(page, "slices"), "text"), "momentum, " + usage));
}

TEST_CASE("a browser gives a place to a value outside of its field's choice",
          "[tune][report][browser]") {
  if (!has_browser()) return;
  const tune::TemporaryFolder folder;
  const auto results = tune::run<train_in_population>(
      {.space = {{"optimizer", tune::choice({"sgd", "adam"})}, {"lr", tune::uniform(0, 1)}},
       .trials = 4,
       .metric = "loss",
       .mode = tune::Min,
       .scheduler = tune::pbt({.interval = 2, .mutate = {{"optimizer", tune::choice({"lion"})}}}),
       .storage = folder.path(),
       .seed = 2,
       .config = {.steps = 8},
       .show = tune::Show::None,
       .in_process = true});
  const auto page = tune::drawn_report(folder, results.folder());
  const auto slices = section_of(page, "slices");
  CHECK(has(texts_in(slices, "text"), "lion"));
  // Of three places in a chart that is 490 wide, the last one is the new value's.
  std::size_t with_lion = 0;
  for (const auto& dot : shapes_in(slices, "circle", "slice-dot")) {
    const bool is_of_first_chart = dot.number("cx") < 560;
    if (!is_of_first_chart || dot.hint.find("optimizer=lion") == std::string::npos) continue;
    ++with_lion;
    CHECK(dot.number("cx") == Approx(58 + 490 * 5 / 6.0));
  }
  CHECK(with_lion > 0);
}

TEST_CASE("a browser writes round texts at axes, each of them once", "[tune][report][browser]") {
  if (!has_browser()) return;
  const auto page = drawn({{"lr", tune::loguniform(1e-5, 1)}}, 40);
  const auto texts = texts_in(section_of(page, "slices"), "text");
  for (const auto* power : {"0.0001", "0.001", "0.01", "0.1"}) CHECK(has(texts, power));
  // The values of the metric are all nearly 1e6.
  const auto history = texts_in(section_of(page, "history"), "text");
  CHECK(history.size() > 8);
  CHECK(std::set(history.begin(), history.end()).size() == history.size());
}

TEST_CASE("a browser writes integers beyond 2^53 digit by digit", "[tune][report][browser]") {
  if (!has_browser()) return;
  constexpr std::int64_t kFar = std::int64_t{1} << 60;
  const auto page = drawn({{"id", tune::grid({kFar + 1, kFar + 2, kFar + 3})}}, 0);
  const auto cells = texts_in(section_of(page, "trials"), "td");
  const auto dots = shapes_in(section_of(page, "history"), "circle", "dot");
  REQUIRE(dots.size() == 3);
  for (const auto id : {kFar + 1, kFar + 2, kFar + 3}) {
    CHECK(has(cells, std::to_string(id)));
    CHECK(std::ranges::count_if(dots, [&](const auto& dot) {
            return dot.hint.ends_with("id=" + std::to_string(id));
          }) == 1);
  }
}

TEST_CASE("a browser draws a field of one value in the middle", "[tune][report][browser]") {
  if (!has_browser()) return;
  const auto page = drawn({{"decay", tune::uniform(1e20, 2e20)}}, 1);
  const auto slices = section_of(page, "slices");
  const auto dots = shapes_in(slices, "circle", "slice-dot");
  REQUIRE(dots.size() == 1);
  CHECK(dots[0].number("cx") == Approx((58 + 1108) / 2.0));
  // One text at each axis, and the field's name.
  CHECK(shapes_in(slices, "text").size() == 3);
}

}  // namespace html_fields_test
