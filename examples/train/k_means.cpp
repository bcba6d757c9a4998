// A gang with a collective, and no LibTorch: k-means on values that are spread over two ranks. The
// ranks are placed together or not at all, and know each other. Each has values of its own; in
// every step they add up their sums, and so all of them have the same centres.
//
//   k_means [--address HOST:PORT]
//
// It prints:
//
//   200000 values on 2 ranks have their centres at -1.0 0.5 4.0
#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include <troupe/train/communicator.hpp>
#include <troupe/troupe.hpp>

namespace train = troupe::train;

namespace {

constexpr int kRanks = 2;
constexpr int kSteps = 30;
constexpr int kValuesOfARank = 100'000;
using Centres = std::array<double, 3>;

std::size_t nearest(const Centres& centres, double value) {
  auto distance = [&](double centre) { return std::abs(centre - value); };
  const auto found = std::ranges::min_element(centres, {}, distance);
  return static_cast<std::size_t>(found - centres.begin());
}

/// One rank: an actor that is made together with the others, which this_gang() knows.
class Rank {
 public:
  Rank() : communicator_(train::make_host_communicator(*troupe::this_gang())) {
    std::mt19937 random(static_cast<unsigned>(communicator_->rank()));
    std::normal_distribution<double> noise(0.0, 0.3);
    constexpr Centres truth{-1.0, 0.5, 4.0};
    for (int n = 0; n < kValuesOfARank; ++n)
      values_.push_back(truth[random() % truth.size()] + noise(random));
  }

  Centres find_centres() {
    Centres centres{0.0, 1.0, 2.0};  // a guess, the same on all ranks
    for (int step = 0; step < kSteps; ++step) {
      std::array<double, 3> sums{};
      std::array<double, 3> counts{};
      for (const double value : values_) {
        const auto at = nearest(centres, value);
        sums[at] += value;
        counts[at] += 1;
      }
      // All ranks make the same calls in the same order, and get the same bits.
      communicator_->all_reduce(std::span<double>(sums));
      communicator_->all_reduce(std::span<double>(counts));
      for (std::size_t at = 0; at < centres.size(); ++at) centres[at] = sums[at] / counts[at];
    }
    return centres;
  }

 private:
  std::unique_ptr<train::Communicator> communicator_;
  std::vector<double> values_;
};

void find_centres() {
  const auto gang = troupe::gang<Rank>({.size = kRanks});
  const auto found = troupe::get(gang.all<&Rank::find_centres>());  // one result of each rank
  if (found.front() != found.back()) throw std::logic_error("the ranks do not agree");
  std::cout << kRanks * kValuesOfARank << " values on " << gang.size()
            << " ranks have their centres at" << std::fixed << std::setprecision(1);
  for (const double centre : found.front()) std::cout << ' ' << centre;
  std::cout << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    find_centres();
  } catch (const std::exception& error) {
    std::cerr << "k_means: " << error.what() << '\n';
    return 1;
  }
}
