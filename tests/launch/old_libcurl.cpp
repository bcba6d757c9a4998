// A library with the functions of libcurl that Troupe loads, of a version that is too old.
struct Version {  // the beginning of curl_version_info_data
  int age = 0;
  const char* version = "7.74.0";
  unsigned version_num = 0x074a00;
};

extern "C" {

const Version* curl_version_info(int) {
  static const Version version;
  return &version;
}

// Nobody calls the others, whatever they take.
#define UNUSED(function) \
  void function() {}
UNUSED(curl_global_init)
UNUSED(curl_slist_append)
UNUSED(curl_slist_free_all)
UNUSED(curl_easy_init)
UNUSED(curl_easy_setopt)
UNUSED(curl_easy_getinfo)
UNUSED(curl_easy_header)
UNUSED(curl_easy_strerror)
UNUSED(curl_easy_cleanup)
UNUSED(curl_multi_init)
UNUSED(curl_multi_add_handle)
UNUSED(curl_multi_remove_handle)
UNUSED(curl_multi_perform)
UNUSED(curl_multi_poll)
UNUSED(curl_multi_info_read)
UNUSED(curl_multi_cleanup)
}
