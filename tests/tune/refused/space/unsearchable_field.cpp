// refused: a field of this type can not be searched
#include <map>
#include <string>

#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Config {
  double lr = 0.1;
  std::map<std::string, int> table = {};
};

void trains(tune::Context& ctx, const Config& config) { ctx.report({{"loss", config.lr}}); }

int main() {
  tune::run<trains>(
      {.space = {{&Config::table, tune::integer(1, 3)}}, .trials = 3, .metric = "loss"});
}
