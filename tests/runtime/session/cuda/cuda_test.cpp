// Where a program has initialized CUDA before troupe::init, copies of it cannot use CUDA: its worker
// processes are executed, and not forked. With a library in the place of CUDA's driver.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <dlfcn.h>
#include <catch2/catch.hpp>

#include <troupe/troupe.hpp>
#include "built.hpp"
#include "guard.hpp"
#include "run_tests.hpp"

using namespace troupe;
using troupe::test::kGuard;

namespace {

constexpr const char* kInMain = "TROUPE_TEST_CUDA_IN_MAIN";

/// -> what cuInit gives.
int initialize_cuda() {
  auto* library = ::dlopen(std::string(TROUPE_FAKE_CUDA).c_str(), RTLD_NOW);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  return reinterpret_cast<int (*)(unsigned)>(::dlsym(library, "cuInit"))(0);
}

struct Trainer {
  int cuda() const { return initialize_cuda(); }
};

void check_workers() {
  const auto cluster = init({.cpus = 2});
  CHECK(task<initialize_cuda>().get(kGuard) == 0);
  CHECK(spawn<Trainer>().call<&Trainer::cuda>().get(kGuard) == 0);
}

}  // namespace

TEST_CASE("worker processes can use CUDA where no program did before troupe::init",
          "[runtime][session][cuda]") {
  check_workers();
}

TEST_CASE("worker processes can use CUDA where the driver did before troupe::init",
          "[runtime][session][cuda]") {
  CHECK(initialize_cuda() == 0);
  check_workers();
}

TEST_CASE("worker processes can use CUDA where main does on each node before troupe::init",
          "[runtime][session][cuda]") {
  CHECK(initialize_cuda() == 0);
  ::setenv(kInMain, "1", 1);
  check_workers();
}

int main(int argc, char** argv) {
  if (std::getenv("TROUPE_BOOT") != nullptr) {
    if (std::getenv(kInMain) != nullptr) initialize_cuda();
    const auto never = troupe::init(argc, argv);
    return 1;
  }
  return troupe::test::run_tests(argc, argv);
}
