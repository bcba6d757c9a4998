// refused: a view does not own what it shows
#include <troupe/troupe.hpp>

#include <span>
#include <vector>

double first(std::span<const double> numbers) { return numbers[0]; }

int main() {
  const std::vector<double> numbers{1};
  return static_cast<int>(troupe::task<first>(std::span(numbers)).get());
}
