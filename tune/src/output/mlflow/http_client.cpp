#include "output/mlflow/http_client.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <sys/socket.h>

#include <fmt/format.h>

#include "output/mlflow/libcurl.hpp"

namespace troupe::tune {
namespace {

constexpr std::size_t kMostBody = 1 << 20;
constexpr unsigned kProxyAsks = 407;
constexpr long kNotOfChain = 1;  // X509_V_ERR_UNSPECIFIED: libcurl's, before a chain is refused

curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* address) {
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/// -> how much of it is taken; less than all ends the request.
std::size_t keep(char* data, std::size_t, std::size_t size, void* kept) {
  auto& body = *static_cast<std::string*>(kept);
  if (body.size() + size > kMostBody) return 0;
  body.append(data, size);
  return size;
}

}  // namespace

/// Not moved until it is answered: libcurl has pointers to its parts.
struct HttpClient::Request {
  explicit Request(const Libcurl& library) : curl{library}, easy{library.easy_init()} {
    if (easy == nullptr) throw std::bad_alloc();
  }
  ~Request() {
    curl.slist_free_all(fields);
    curl.easy_cleanup(easy);
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  template <class Value>
  void set(CURLoption option, Value value) const {
    curl.easy_setopt(easy, option, value);
  }
  void add_field(const char* field) {
    auto* longer = curl.slist_append(fields, field);
    if (longer == nullptr) throw std::bad_alloc();
    fields = longer;
  }
  long info(CURLINFO which) const {
    long value = 0;
    curl.easy_getinfo(easy, which, &value);
    return value;
  }
  HttpAnswer answer(CURLcode result);
  std::string why(CURLcode result) const;

  const Libcurl& curl;
  CURL* const easy;
  curl_slist* fields = nullptr;
  std::string body = {}, answer_body = {};
  std::array<char, CURL_ERROR_SIZE> error = {};
  Answered answered = {};
  bool may_be_proxy = false;  ///< to which it is connected, and which libcurl names then
};

HttpClient::HttpClient(ServerUrl server, MlflowAccess access)
    : curl_{libcurl()},
      server_{std::move(server)},
      access_{std::move(access)},
      multi_{curl_.multi_init()} {
  if (multi_ == nullptr) throw std::bad_alloc();
}

HttpClient::~HttpClient() {
  for (auto& request : requests_) curl_.multi_remove_handle(multi_, request.easy);
  requests_.clear();
  curl_.multi_cleanup(multi_);
}

// ---- requests -----------------------------------------------------------------------------------

void HttpClient::send(const std::string& path, std::string body, std::chrono::milliseconds time,
                      Answered answered) {
  std::list<Request> made;
  auto& request = made.emplace_back(curl_);
  request.body = std::move(body);
  request.answered = std::move(answered);
  request.set(CURLOPT_URL, server_.url_of(path).c_str());
  set_options(request, time);
  set_tls_options(request);
  set_credentials(request);
  if (const auto code = curl_.multi_add_handle(multi_, request.easy); code != CURLM_OK)
    throw std::runtime_error(fmt::format("libcurl takes no request: code {}", int{code}));
  requests_.splice(requests_.end(), made);
  perform();
}

void HttpClient::set_options(Request& request, std::chrono::milliseconds time) const {
  request.set(CURLOPT_ERRORBUFFER, request.error.data());
  request.set(CURLOPT_NOSIGNAL, 1L);
  request.set(CURLOPT_QUICK_EXIT, 1L);  // a look-up without end holds up nobody
  request.set(CURLOPT_OPENSOCKETFUNCTION, &open_socket);
  request.set(CURLOPT_PROTOCOLS_STR, "http,https");
  request.set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  request.set(CURLOPT_TIMEOUT_MS, static_cast<long>(time.count()));
  request.may_be_proxy = !server_.is_local();
  if (server_.is_local()) request.set(CURLOPT_PROXY, "");
  request.set(CURLOPT_USERAGENT, "troupe");
  request.set(CURLOPT_WRITEFUNCTION, &keep);
  request.set(CURLOPT_WRITEDATA, &request.answer_body);
  request.add_field("Accept: application/json");
  if (!request.body.empty()) {
    request.add_field("Content-Type: application/json");
    request.add_field("Expect:");  // nothing is gained by asking before a large body is sent
    request.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    request.set(CURLOPT_POSTFIELDS, request.body.c_str());
  }
  request.set(CURLOPT_HTTPHEADER, request.fields);
}

/// libcurl's default are the system's authorities.
void HttpClient::set_tls_options(const Request& request) const {
  if (!access_.is_verified) {
    request.set(CURLOPT_SSL_VERIFYPEER, 0L);
    request.set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (const auto& path = access_.authorities; !path.empty()) {
    std::error_code gone;  // libcurl says so then
    const bool is_folder = std::filesystem::is_directory(path, gone);
    request.set(CURLOPT_CAINFO, is_folder ? nullptr : path.c_str());
    request.set(CURLOPT_CAPATH, is_folder ? path.c_str() : nullptr);
  }
  if (!access_.client_certificate.empty())
    request.set(CURLOPT_SSLCERT, access_.client_certificate.c_str());
}

void HttpClient::set_credentials(const Request& request) const {
  if (!access_.token.empty()) {
    request.set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
    request.set(CURLOPT_XOAUTH2_BEARER, access_.token.c_str());
  } else if (!access_.user.empty()) {
    request.set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    request.set(CURLOPT_USERNAME, access_.user.c_str());
    request.set(CURLOPT_PASSWORD, access_.password.c_str());
  }
}

void HttpClient::advance() {
  int left = 0;
  perform();
  while (const auto* message = curl_.multi_info_read(multi_, &left)) {
    const auto result = message->data.result;
    const auto request = std::ranges::find(requests_, message->easy_handle, &Request::easy);
    curl_.multi_remove_handle(multi_, request->easy);
    const auto answer = request->answer(result);
    const auto answered = std::move(request->answered);
    requests_.erase(request);
    answered(answer);
  }
}

void HttpClient::perform() {
  // After an error nothing has ended that wait() would have to see.
  if (curl_.multi_perform(multi_, &running_) != CURLM_OK)
    running_ = static_cast<int>(requests_.size());
}

void HttpClient::wait(std::chrono::milliseconds time) {
  // A fast server may have answered while its request was sent: libcurl waits for nothing then, as
  // long as it may.
  if (static_cast<std::size_t>(running_) < requests_.size()) return;
  curl_.multi_poll(multi_, nullptr, 0, static_cast<int>(time.count()), nullptr);
}

// ---- answers ------------------------------------------------------------------------------------

HttpAnswer HttpClient::Request::answer(CURLcode result) {
  // Of a tunnel through a proxy the server's status is not that of the proxy.
  if (result != CURLE_OK && info(CURLINFO_HTTP_CONNECTCODE) == kProxyAsks)
    return {.status = kProxyAsks};
  if (result != CURLE_OK) return {.error = why(result)};
  HttpAnswer answer{.status = static_cast<unsigned>(info(CURLINFO_RESPONSE_CODE)),
                    .body = std::move(answer_body)};
  curl_header* location = nullptr;
  if (curl.easy_header(easy, "Location", 0, CURLH_HEADER, -1, &location) == CURLHE_OK)
    answer.location = location->value;
  return answer;
}

std::string HttpClient::Request::why(CURLcode result) const {
  const std::string text = error[0] != '\0' ? error.data() : curl.easy_strerror(result);
  switch (result) {
    case CURLE_OPERATION_TIMEDOUT:
      return "it does not answer in time";
    case CURLE_WRITE_ERROR:
      return "its answer is longer than 1 MiB";
    case CURLE_COULDNT_CONNECT:
      if (const auto number = info(CURLINFO_OS_ERRNO); number != 0 && !may_be_proxy)
        return std::strerror(static_cast<int>(number));
      return text;
    case CURLE_PEER_FAILED_VERIFICATION:
      return info(CURLINFO_SSL_VERIFYRESULT) <= kNotOfChain
                 ? fmt::format(
                       "its certificate is of another host ({}): name the server in the URL as its "
                       "certificate does, or set MLFLOW_TRACKING_INSECURE_TLS=true to verify none",
                       text)
                 : fmt::format(
                       "its certificate is not trusted ({}): set MLFLOW_TRACKING_SERVER_CERT_PATH "
                       "to a file with the certificates of the authorities that vouch for it, or "
                       "MLFLOW_TRACKING_INSECURE_TLS=true to verify none",
                       text);
    case CURLE_SSL_CACERT_BADFILE:
      return text + ": MLFLOW_TRACKING_SERVER_CERT_PATH is to name a file of PEM certificates";
    case CURLE_SSL_CERTPROBLEM:
      return text +
             ": MLFLOW_TRACKING_CLIENT_CERT_PATH is to name a file of PEM with a certificate "
             "and its key";
    default:
      return text;
  }
}

}  // namespace troupe::tune
