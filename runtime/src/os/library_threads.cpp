#include "os/library_threads.hpp"

#include <cstdlib>
#include <string>

#include <dlfcn.h>

#include "os/threads.hpp"

namespace troupe::os {
namespace {

using SetThreads = void (*)(int);

SetThreads find(const char* symbol) {
  return reinterpret_cast<SetThreads>(::dlsym(RTLD_DEFAULT, symbol));
}

struct Libraries {
  SetThreads open_mp = find("omp_set_num_threads");
  SetThreads mkl = find("MKL_Set_Num_Threads");
  SetThreads open_blas = find("openblas_set_num_threads");
  SetThreads torch = find("_ZN2at15set_num_threadsEi");  // at::set_num_threads(int)
};

const Libraries& libraries() {
  static const Libraries found;
  return found;
}

constexpr auto kOpenMp = "OMP_NUM_THREADS";
constexpr auto kMkl = "MKL_NUM_THREADS";
constexpr auto kOpenBlas = "OPENBLAS_NUM_THREADS";

bool is_set(const char* variable) {
  const auto* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

/// Another thread may be reading the environment: then only the libraries that are here are told.
void tell(SetThreads library, const char* variable, unsigned threads) {
  if (!has_other_threads()) ::setenv(variable, std::to_string(threads).c_str(), 1);
  if (library != nullptr) library(static_cast<int>(threads));
}

}  // namespace

void find_threaded_libraries() { libraries(); }

void set_library_threads(unsigned threads) {
  if (is_set(kOpenMp)) return;
  const auto& found = libraries();
  tell(found.open_mp, kOpenMp, threads);
  if (!is_set(kOpenBlas)) tell(found.open_blas, kOpenBlas, threads);
  if (is_set(kMkl)) return;  // which LibTorch goes by too
  tell(found.mkl, kMkl, threads);
  if (found.torch != nullptr) found.torch(static_cast<int>(threads));
}

}  // namespace troupe::os
