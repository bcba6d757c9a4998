#include <iostream>

#include <troupe/train/communicator.hpp>
#include <troupe/troupe.hpp>

// A gang of one has nobody to wait for: what is tested is that it links without LibTorch and CUDA.
struct Rank {
  double sum(double value) {
    auto communicator = troupe::train::make_host_communicator(*troupe::this_gang());
    communicator->all_reduce(std::span(&value, 1));
    return value;
  }
};

int main(int argc, char** argv) {
  const auto cluster = troupe::init(argc, argv);
  const auto gang = troupe::gang<Rank>({.size = 1});
  if (gang.rank(0).call<&Rank::sum>(2.5).get() == 2.5) std::cout << "consumer: it works\n";
}
