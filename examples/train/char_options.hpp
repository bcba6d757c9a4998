#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>
#include <troupe/ref.hpp>
#include <troupe/train/mixed_precision.hpp>

#include "text.hpp"
#include "transformer.hpp"

/// What the ranks of char_transformer are told.
struct Config {
  troupe::Ref<text::Text> text;
  transformer::Size size;
  std::int64_t steps = 2000;
  std::int64_t batch = 12;  // of all ranks together
  double rate = 1e-3;
  std::int64_t warmup = 100;  // steps
  std::int64_t report_every = 250;
  std::int64_t sample = 300;  // characters
  std::string save_initial;   // a file; empty: none
};

/// The options of char_transformer's command line.
struct Options {
  std::string data;  // a file; empty: the text is made up
  Config config;
  int ranks = 2;
  double gpus = 0;  // of each rank
  int zero = 0;
  troupe::train::MixedPrecision::Type precision = troupe::train::MixedPrecision::Type::Float32;
};

inline void add_training(CLI::App& app, Config& config) {
  const auto positive = CLI::Range(std::int64_t{1}, std::int64_t{1'000'000});
  const auto add = [&](const char* name, std::int64_t& value, const char* text) {
    app.add_option(name, value, text)->check(positive)->capture_default_str();
  };
  add("--steps", config.steps, "of the optimizer");
  add("--batch", config.batch, "rows of a step, on all ranks together");
  add("--layers", config.size.layers, "of the transformer");
  add("--heads", config.size.heads, "of the attention in each layer");
  add("--width", config.size.width, "numbers for each character between the layers");
  add("--context", config.size.context, "characters in a row");
  add("--warmup", config.warmup, "steps in which the learning rate rises");
  add("--report-every", config.report_every, "steps");
  add("--sample", config.sample, "characters that the model writes at the end");
  app.add_option("--rate", config.rate, "the highest learning rate")->capture_default_str();
  app.add_option("--save-initial", config.save_initial, "file for the weights before step 1");
}

inline void add_to(CLI::App& app, Options& options) {
  using Type = troupe::train::MixedPrecision::Type;
  static const std::map<std::string, Type> kPrecisions{
      {"float32", Type::Float32}, {"bfloat16", Type::BFloat16}, {"float16", Type::Float16}};
  app.add_option("--address", "the head, HOST:PORT; without it a private cluster");
  app.add_option("--token-file", "the cluster's secret");  // Both are read by troupe::init.
  app.add_option("--data", options.data, "a plain text; without it a text is made up");
  app.add_option("--ranks", options.ranks, "that train together")->check(CLI::Range(1, 64));
  app.add_option("--gpus", options.gpus, "of each rank")->check(CLI::Range(0, 1));
  app.add_option("--zero", options.zero, "stage of ZeRO")->check(CLI::Range(0, 3));
  app.add_option("--precision", options.precision, "of the layers")
      ->transform(CLI::CheckedTransformer(kPrecisions));
  add_training(app, options.config);
}

/// Throws std::runtime_error for numbers that do not fit each other.
inline void check(const Options& options) {
  const auto divide = [](const std::string& what, std::int64_t all, const std::string& by,
                         std::int64_t parts) {
    if (all % parts == 0) return;
    throw std::runtime_error(what + " " + std::to_string(all) + " is not a multiple of " + by +
                             " " + std::to_string(parts));
  };
  divide("--batch", options.config.batch, "--ranks", options.ranks);
  divide("--width", options.config.size.width, "--heads", options.config.size.heads);
}
