// The first search: with which learning rate does a descent end closest to its goal? What is
// searched is plain C++. Each trial runs in a process of its own, and bad ones are stopped early.
//
//   first_sweep [--address HOST:PORT]
//
// How the trials go is shown on standard error. It prints:
//
//   the best of 20 learning rates is 1.2
// [program]
#include <iomanip>
#include <iostream>

#include <troupe/troupe.hpp>
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

namespace {

struct Config {
  double lr = 0.1;
};

void descend(tune::Context& ctx, const Config& config) {  // along the parabola x * x
  for (double x = 1 - config.lr;; x -= config.lr * x)
    if (ctx.report({{"loss", x * x}}) == troupe::Verdict::Stop) return;
}

int search() {
  auto results = tune::run<descend>({.space = {{"lr", tune::loguniform(1e-3, 2.0)}},
                                     .trials = 20,
                                     .metric = "loss",
                                     .mode = tune::Min,
                                     .scheduler = tune::asha({.max_t = 9, .eta = 3})});
  if (const int code = results.exit_code()) return code;
  std::cout << "the best of " << results.trials().size() << " learning rates is "
            << std::setprecision(2) << results.best().config.lr << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    return search();
  } catch (const std::exception& error) {
    std::cerr << "first_sweep: " << error.what() << '\n';
    return 1;
  }
}
// [/program]
