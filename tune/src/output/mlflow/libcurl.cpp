#include "output/mlflow/libcurl.hpp"

#include <stdexcept>
#include <string>

#include <dlfcn.h>

#include <fmt/format.h>

namespace troupe::tune {
namespace {

constexpr auto* kLibcurl = "libcurl.so.4";
constexpr unsigned kOldestLibcurl =
    0x075700;  // 7.87: CURLOPT_QUICK_EXIT, and no SIGPIPE from a TLS socket

[[noreturn]] void refuse_libcurl(const std::string& why) {
  throw std::runtime_error(
      fmt::format("tune: .mlflow needs libcurl 7.87 or newer: {}; install the Debian package "
                  "libcurl4 on the machine of the driver, or leave .mlflow out",
                  why));
}

class Library {
 public:
  Library() : handle_{::dlopen(kLibcurl, RTLD_NOW | RTLD_LOCAL)} {
    if (handle_ == nullptr) refuse_libcurl(::dlerror());
  }

  template <class Function>
  void load(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(::dlsym(handle_, name));
    if (function == nullptr) refuse_libcurl(fmt::format("{} has no {}", kLibcurl, name));
  }

 private:
  void* handle_;
};

Libcurl load() {
  const Library library;
  Libcurl curl{};
  library.load(curl.global_init, "curl_global_init");
  library.load(curl.version_info, "curl_version_info");
  library.load(curl.slist_append, "curl_slist_append");
  library.load(curl.slist_free_all, "curl_slist_free_all");
  library.load(curl.easy_init, "curl_easy_init");
  library.load(curl.easy_setopt, "curl_easy_setopt");
  library.load(curl.easy_getinfo, "curl_easy_getinfo");
  library.load(curl.easy_header, "curl_easy_header");
  library.load(curl.easy_strerror, "curl_easy_strerror");
  library.load(curl.easy_cleanup, "curl_easy_cleanup");
  library.load(curl.multi_init, "curl_multi_init");
  library.load(curl.multi_add_handle, "curl_multi_add_handle");
  library.load(curl.multi_remove_handle, "curl_multi_remove_handle");
  library.load(curl.multi_perform, "curl_multi_perform");
  library.load(curl.multi_poll, "curl_multi_poll");
  library.load(curl.multi_info_read, "curl_multi_info_read");
  library.load(curl.multi_cleanup, "curl_multi_cleanup");
  const auto* version = curl.version_info(CURLVERSION_NOW);
  if (version->version_num < kOldestLibcurl)
    refuse_libcurl(fmt::format("{} is {}", kLibcurl, version->version));
  // Counted by libcurl, which locks for it: the program may have called it too, or call it later.
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) refuse_libcurl("it cannot be initialised");
  return curl;
}

}  // namespace

const Libcurl& libcurl() {
  static const auto loaded = load();
  return loaded;
}

}  // namespace troupe::tune
