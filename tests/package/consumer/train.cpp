#include <iostream>

#include <ATen/core/Tensor.h>
#include <troupe/train/communicator.hpp>

int main() {
  using troupe::train::DataType;
  if (troupe::train::size_of(DataType::Float64) == 8 && !at::Tensor().defined())
    std::cout << "consumer: it works\n";
}
