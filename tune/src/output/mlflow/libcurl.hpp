#pragma once

#include <curl/curl.h>

namespace troupe::tune {

/// The functions of libcurl that HttpClient calls. They are loaded at run time: a worker process is
/// a fork of its program, which takes the longer the more the program has mapped, and libcurl brings
/// some thirty libraries. So only a driver that has an MLflow server pays for them.
struct Libcurl {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_version_info) version_info;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_header) easy_header;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_multi_init) multi_init;
  decltype(&::curl_multi_add_handle) multi_add_handle;
  decltype(&::curl_multi_remove_handle) multi_remove_handle;
  decltype(&::curl_multi_perform) multi_perform;
  decltype(&::curl_multi_poll) multi_poll;
  decltype(&::curl_multi_info_read) multi_info_read;
  decltype(&::curl_multi_cleanup) multi_cleanup;
};

/// Loaded once, when it is first called, by any thread. It stays until the process ends, so a
/// program may use libcurl as well. Throws std::runtime_error, which names the Debian package, where
/// libcurl is missing or older than 7.87.
const Libcurl& libcurl();

}  // namespace troupe::tune
