// A trial of a sweep in C++, which is not linked with Troupe.
#include <cmath>
#include <cstdlib>
#include <fstream>

#include <troupe/trial.hpp>

int main(int argc, char** argv) {
  if (argc != 2 || !troupe::trial::is_trial()) return 2;
  const double x = std::atof(argv[1]);
  if (troupe::trial::config().find("\"x\": ") == std::string::npos) return 3;
  if (!troupe::trial::restore_from().empty()) return 4;
  troupe::trial::report({{"loss", std::nan("")}, {"a \"name\"", 1}});
  std::ofstream(troupe::trial::checkpoint_dir() / "made") << x;
  troupe::trial::report({{"loss", x}, {"step", 1}}, "made");
  return 0;
}
