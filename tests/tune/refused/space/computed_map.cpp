// refused: a field of a space holds a domain, such as tune::uniform(0, 1)
#include <map>
#include <vector>

#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Config {
  double lr = 0.1;
  std::vector<int> widths = {};
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  tune::run<trains>({.space = {{"widths", [](const Config&) { return std::map<int, int>(); }}},
                     .trials = 3,
                     .metric = "loss"});
}
