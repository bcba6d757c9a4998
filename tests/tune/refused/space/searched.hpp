// What the programs of this folder search. Each includes <troupe/tune.hpp> before it, which the tests parse once for all.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tune = troupe::tune;

struct Layer {
  int width = 64;
  double dropout = 0;
};
struct Config {
  double lr = 0.1;
  int width = 64;
  Layer layer = {};
  std::vector<int> widths = {};
  std::map<std::string, int> table = {};
};

inline void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }
