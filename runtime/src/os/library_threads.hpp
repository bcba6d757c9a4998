#pragma once

namespace troupe::os {

/// Looks up which libraries with threads of their own (OpenMP, MKL, OpenBLAS, LibTorch) this process
/// has loaded. A copy that is forked from it knows.
void find_threaded_libraries();

/// That many threads for what the calling thread has these libraries do: through their functions,
/// as they read the environment when they were loaded, and by OMP_NUM_THREADS, MKL_NUM_THREADS and
/// OPENBLAS_NUM_THREADS, for those that are loaded later and for programs that are started from
/// here. A variable that is set already stays as it is, with its library; OMP_NUM_THREADS stands
/// for all of them. Where there are other threads, which may read the
/// environment meanwhile, it is left as it is.
void set_library_threads(unsigned threads);

}  // namespace troupe::os
