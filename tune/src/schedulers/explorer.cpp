#include "schedulers/explorer.hpp"

#include "schedulers/explore.hpp"

namespace troupe::tune {
namespace {

class FactorExplorer final : public Explorer {
 public:
  FactorExplorer(const PbtOptions& options, std::uint64_t seed)
      : mutate_{options.mutate},
        resample_{options.resample},
        factors_{options.factors},
        seed_{seed} {}

  std::string_view name() const override { return "pbt"; }
  Configuration explored(TrialId, const From& from, std::uint64_t draw) override {
    return tune::explored(from.config, {mutate_, resample_, factors_}, seed_, draw);
  }

 private:
  SearchSpace mutate_;
  double resample_;
  std::vector<double> factors_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Explorer> factor_explorer(const PbtOptions& options, std::uint64_t seed) {
  return std::make_unique<FactorExplorer>(options, seed);
}

}  // namespace troupe::tune
