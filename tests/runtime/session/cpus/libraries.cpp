#include "libraries.hpp"

#include <omp.h>

namespace {
int open_blas = 0, mkl = 0;
}

extern "C" {
void openblas_set_num_threads(int threads) { open_blas = threads; }
void MKL_Set_Num_Threads(int threads) { mkl = threads; }
}

namespace troupe::test {

int most_threads() { return omp_get_max_threads(); }

int team_size() {
#if defined(__SANITIZE_THREAD__)
  return most_threads();  // it does not see how the threads of libgomp wait for each other
#else
  int size = 0;
#pragma omp parallel
#pragma omp single
  size = omp_get_num_threads();
  return size;
#endif
}

int told_open_blas() { return open_blas; }
int told_mkl() { return mkl; }

}  // namespace troupe::test
