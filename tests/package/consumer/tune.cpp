#include <iostream>

#include <troupe/tune.hpp>

int main() {
  troupe::tune::Random random(1);
  const auto rates = troupe::tune::loguniform(1e-3, 1.0);
  if (rates.contains(rates.sample(random))) std::cout << "consumer: it works\n";
}
