// A searcher of one's own, by ask and tell: an evolution strategy with one parent and one child,
// whose step grows after a success and shrinks after a failure.
//
//   own_searcher [--address HOST:PORT]
//
// How the trials go is shown on standard error. It prints:
//
//   60 trials, lowest loss below 0.02: yes
#include <cmath>
#include <iostream>

#include <troupe/troupe.hpp>
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

namespace {

struct Config {
  double lr = 0.1;
  int layers = 1;
};

void train(tune::Context& ctx, const Config& config) {
  const double off = std::log10(config.lr) + 2;  // lr 0.01 and 6 layers are best
  ctx.report({{"loss", off * off + std::pow(0.1 * (config.layers - 6), 2)}});
}

// [searcher]
/// For ranges of numbers: a (1+1) evolution strategy with the rule of one success in five.
class EvolutionStrategy final : public tune::OwnSearch {
 public:
  explicit EvolutionStrategy(const tune::SearchSetup& setup) : setup_{setup} {}

  tune::Suggestion ask(tune::Random& random) override {
    tune::Configuration child;
    for (const auto& [name, domain] : setup_.space) {
      const auto place = child.size();
      child.emplace_back(name, parent_.empty() ? domain.sample(random)
                                               : near(domain, parent_[place].second, random));
    }
    return child;
  }

  void tell(const tune::Configuration& child, const tune::TrialEnd& end) override {
    const bool is_better = end.best && setup_.objective.better(*end.best, best_);
    step_ *= is_better ? 1.5 : 0.9;
    if (!is_better) return;
    parent_ = child;
    best_ = *end.best;
  }

 private:
  tune::Scalar near(const tune::Domain& domain, const tune::Scalar& from, tune::Random& random) {
    const auto range = domain.range();
    if (!range) return from;  // a constant, or a choice, which has no neighbours
    const double bell = random.unit() + random.unit() + random.unit() - 1.5;
    const auto* real = std::get_if<double>(&from.value());
    const double x = real ? *real : double(std::get<std::int64_t>(from.value()));
    return domain.nearest(range->is_log ? x * std::pow(range->high / range->low, step_ * bell)
                                        : x + (range->high - range->low) * step_ * bell);
  }

  tune::SearchSetup setup_;
  tune::Configuration parent_;
  double best_ = std::nan("");  // worse than any value
  double step_ = 0.3;
};
// [/searcher]

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    // [search]
    const auto results = tune::run<train>(
        {.space = {{"lr", tune::loguniform(1e-5, 1.0)}, {"layers", tune::integer(1, 12)}},
         .trials = 60,
         .metric = "loss",
         .searcher = tune::own_searcher<EvolutionStrategy>("evolution strategy"),
         .max_concurrent = 1});
    // [/search]
    if (const int code = results.exit_code()) return code;
    std::cout << results.trials().size() << " trials, lowest loss below 0.02: "
              << (results.best().value() < 0.02 ? "yes" : "no") << '\n';
  } catch (const std::exception& error) {
    std::cerr << "own_searcher: " << error.what() << '\n';
    return 1;
  }
}
