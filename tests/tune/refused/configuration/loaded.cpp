// refused: a configuration is copied to its trials
#include <iostream>
#include <mutex>

#include <troupe/tune.hpp>

namespace tune = troupe::tune;

struct Config {
  double lr = 0.1;
  std::mutex mutex;
};

int main() { std::cout << tune::load<Config>("results").best().value(); }
