#pragma once

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <troupe/tune/space.hpp>

namespace troupe::tune {

/// A function of real numbers to minimise whose lowest value is known.
struct TestFunction {
  std::string name = {};
  SearchSpace space = {};
  double (*value)(const std::vector<double>& x) = nullptr;
  double optimum = 0;
};

inline double branin(const std::vector<double>& x) {
  using std::numbers::pi;
  const double bend = x[1] - 5.1 / (4 * pi * pi) * x[0] * x[0] + 5 / pi * x[0] - 6;
  return bend * bend + 10 * (1 - 1 / (8 * pi)) * std::cos(x[0]) + 10;
}

inline double hartmann_6(const std::vector<double>& x) {
  constexpr double alpha[] = {1.0, 1.2, 3.0, 3.2};
  constexpr double a[][6] = {{10, 3, 17, 3.5, 1.7, 8},
                             {0.05, 10, 17, 0.1, 8, 14},
                             {3, 3.5, 1.7, 10, 17, 8},
                             {17, 8, 0.05, 10, 0.1, 14}};
  constexpr double p[][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                             {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                             {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                             {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
  double sum = 0;
  for (std::size_t hill = 0; hill < 4; ++hill) {
    double distance = 0;
    for (std::size_t i = 0; i < 6; ++i)
      distance += a[hill][i] * (x[i] - p[hill][i]) * (x[i] - p[hill][i]);
    sum += alpha[hill] * std::exp(-distance);
  }
  return -sum;
}

inline double sphere(const std::vector<double>& x) {
  double sum = 0;
  for (const double each : x) sum += each * each;
  return sum;
}

inline double rastrigin(const std::vector<double>& x) {
  double sum = 10 * static_cast<double>(x.size());
  for (const double each : x) sum += each * each - 10 * std::cos(2 * std::numbers::pi * each);
  return sum;
}

inline double rosenbrock(const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const double valley = x[i + 1] - x[i] * x[i], along = 1 - x[i];
    sum += 100 * valley * valley + along * along;
  }
  return sum;
}

/// x0, x1, ... in the same range.
inline SearchSpace cube(int dimensions, double low, double high) {
  SearchSpace space;
  for (int i = 0; i < dimensions; ++i)
    space.push_back({"x" + std::to_string(i), uniform(low, high)});
  return space;
}

/// Branin, Hartmann-6, Sphere-5, Rastrigin-5, Rosenbrock-2.
inline const std::vector<TestFunction>& test_functions() {
  static const std::vector<TestFunction> all{
      {"branin", {{"x0", uniform(-5, 10)}, {"x1", uniform(0, 15)}}, branin, 0.39788735772973816},
      {"hartmann6", cube(6, 0, 1), hartmann_6, -3.3223680114155152},
      {"sphere5", cube(5, -5, 5), sphere, 0},
      {"rastrigin5", cube(5, -5.12, 5.12), rastrigin, 0},
      {"rosenbrock2", cube(2, -5, 10), rosenbrock, 0}};
  return all;
}

}  // namespace troupe::tune
