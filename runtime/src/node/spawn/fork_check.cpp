#include "node/spawn/fork_check.hpp"

#include <cstddef>
#include <cstring>

#include <dlfcn.h>
#include <link.h>

#include "os/threads.hpp"

namespace troupe::node {
namespace {

/// The driver's library, if some library of this process has loaded it; nullptr: none has.
const char* path_of_cuda() {
  const char* path = nullptr;
  ::dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* found) {
        if (std::strstr(library->dlpi_name, "/libcuda.so") == nullptr) return 0;
        *static_cast<const char**>(found) = library->dlpi_name;
        return 1;
      },
      &path);
  return path;
}

}  // namespace

bool has_initialized_cuda() {
  const auto* path = path_of_cuda();
  if (path == nullptr) return false;
  auto* library = ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  // CUDA_ERROR_NOT_INITIALIZED, from any call before cuInit, and CUDA_ERROR_STUB_LIBRARY, from a
  // library that is there for linkers.
  constexpr int kNotInitialized = 3, kStub = 34;
  using GetCurrent = int (*)(void** context);
  const auto get_current = reinterpret_cast<GetCurrent>(::dlsym(library, "cuCtxGetCurrent"));
  void* context = nullptr;
  const int state = get_current != nullptr ? get_current(&context) : kNotInitialized;
  ::dlclose(library);
  return state != kNotInitialized && state != kStub;
}

std::string why_not_to_fork() {
  if (has_initialized_cuda()) return "initialized CUDA";  // which has threads, too
  return os::has_other_threads() ? os::describe_threads(os::thread_names()) : "";
}

}  // namespace troupe::node
