#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "text/json.hpp"

namespace troupe::tune {

/// The part of MLflow's REST API 2.0 that tells of runs, as mlflow.org documents it: a request that
/// it does not allow is refused as a server does. Metrics are kept in the order in which they come,
/// those that come twice too.
class MlflowStub {
 public:
  struct Run {
    Json info = {};
    std::map<std::string, std::string> params = {}, tags = {};
    std::vector<Json> metrics = {};
  };

  enum class Listens { AtOnce, Later };

  /// On a port of 127.0.0.1 that is this object's own, also while connections are refused there.
  explicit MlflowStub(Listens when = Listens::AtOnce) {
    acceptor_.open(boost::asio::ip::tcp::v4());
    acceptor_.bind({boost::asio::ip::address_v4::loopback(), 0});
    if (when == Listens::AtOnce) listen();
  }
  enum class Clients { Any, Certified };

  /// Over TLS, with this certificate. `Clients::Certified`: a client has to show the same one.
  explicit MlflowStub(const std::filesystem::path& certificate, Clients clients = Clients::Any)
      : MlflowStub(Listens::Later) {
    namespace ssl = boost::asio::ssl;
    tls_.emplace(ssl::context::tls_server);
    tls_->use_certificate_chain_file(certificate.string());
    tls_->use_private_key_file(certificate.string(), ssl::context::pem);
    tls_->load_verify_file(certificate.string());
    if (clients == Clients::Certified)
      tls_->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
    listen();
  }
  ~MlflowStub() {
    hold(false);
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    if (acceptor_thread_.joinable()) acceptor_thread_.join();
    close_connections();
    for (auto& connection : connections_) connection.thread.join();
  }

  /// Once, where it does not from the beginning.
  void listen() {
    acceptor_.listen();
    acceptor_thread_ = std::thread([this] { accept(); });
  }
  unsigned short port() const { return acceptor_.local_endpoint().port(); }
  std::string url() const {
    return (tls_ ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port());
  }

  /// Each request whose path ends so is answered with this status from now on; 0: none is.
  /// `location`: to which the answers point; empty: to none.
  void answer_with(unsigned status, const std::string& path = "",
                   const std::string& location = "") {
    const std::lock_guard lock(mutex_);
    status_ = status;
    location_ = location;
    failing_path_ = path;
  }
  /// A request that has a metric, a parameter or a tag of this name is refused from now on.
  void refuse_name(const std::string& name) {
    const std::lock_guard lock(mutex_);
    refused_names_.insert(name);
  }
  /// Whether a metric or a parameter may have this name: mlflow/utils/validation.py.
  static bool is_name(const std::string& name) {
    const auto is_taken = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
             std::string_view("_-./: ").find(c) != std::string_view::npos;
    };
    // That of posixpath.normpath(), where it is what it was.
    const auto is_folder = [](std::string_view part) {
      return part.empty() || part == "." || part == "..";
    };
    for (std::size_t at = 0; at <= name.size();) {
      const auto end = std::min(name.find('/', at), name.size());
      if (is_folder(std::string_view(name).substr(at, end - at))) return false;
      at = end + 1;
    }
    return name.size() <= 250 && !name.starts_with("..") && std::ranges::all_of(name, is_taken);
  }
  /// Requests that were answered with another status than 200.
  int refused() const { return refused_; }
  /// As a server does with connections that are idle.
  void close_connections() {
    const std::lock_guard lock(connections_mutex_);
    for (auto& connection : connections_) ::shutdown(connection.socket.native_handle(), SHUT_RDWR);
  }
  /// Requests wait for their answers.
  void hold(bool is_held) {
    const std::lock_guard lock(mutex_);
    is_held_ = is_held;
    let_go_.notify_all();
  }
  std::map<std::string, Run> runs() const {
    const std::lock_guard lock(mutex_);
    return runs_;
  }
  /// The one whose tag has this value.
  Run run_with(const std::string& tag, const std::string& value) const {
    for (const auto& [id, run] : runs()) {
      if (run.tags.contains(tag) && run.tags.at(tag) == value) return run;
    }
    throw std::runtime_error("no run has " + tag + " " + value);
  }
  std::map<std::string, std::string> experiments() const {
    const std::lock_guard lock(mutex_);
    return experiments_;
  }
  std::set<std::string> authorizations() const {
    const std::lock_guard lock(mutex_);
    return authorizations_;
  }
  std::size_t requests() const { return requests_; }
  /// That were ever made.
  std::size_t connections() const {
    const std::lock_guard lock(connections_mutex_);
    return connections_.size();
  }

 private:
  using Socket = boost::asio::ip::tcp::socket;
  struct Connection {
    Socket socket;
    std::thread thread = {};
  };
  struct Refusal {
    unsigned status = 400;
    std::string code = "INVALID_PARAMETER_VALUE";
    std::string message = {};
    std::string location = {};
  };

  static void require(bool holds, const std::string& what) {
    if (!holds) throw Refusal{.message = what};
  }

  void accept() {
    while (true) {
      boost::system::error_code error;
      Socket socket(io_);
      acceptor_.accept(socket, error);
      if (error) return;
      const std::lock_guard lock(connections_mutex_);
      auto& connection = connections_.emplace_back(Connection{std::move(socket)});
      connection.thread = std::thread([this, &connection] { greet(connection.socket); });
    }
  }

  void greet(Socket& socket) {
    if (!tls_) return serve(socket);
    boost::system::error_code error;
    boost::asio::ssl::stream<Socket&> stream(socket, *tls_);
    stream.handshake(boost::asio::ssl::stream_base::server, error);
    if (!error) return serve(stream);
    socket.shutdown(Socket::shutdown_both, error);
  }

  template <class Stream>
  void serve(Stream& socket) {
    namespace http = boost::beast::http;
    boost::beast::flat_buffer buffer;
    while (true) {
      boost::system::error_code error;
      http::request<http::string_body> request;
      http::read(socket, buffer, request, error);
      if (error) return;
      ++requests_;
      http::response<http::string_body> response(http::status::ok, 11);
      response.set(http::field::content_type, "application/json");
      try {
        response.body() = dump(answer(request));
      } catch (const Refusal& refusal) {
        response.result(refusal.status);
        if (!refusal.location.empty()) response.set(http::field::location, refusal.location);
        response.body() = refusal.status == 502  // of a gateway before it
                              ? R"({"error_code":502,"message":null})"
                              : dump({{"error_code", refusal.code}, {"message", refusal.message}});
        ++refused_;
      } catch (const std::exception& wrong) {
        response.result(400);
        response.body() =
            dump({{"error_code", "INVALID_PARAMETER_VALUE"}, {"message", wrong.what()}});
      }
      response.prepare_payload();
      http::write(socket, response, error);
      if (error) return;
    }
  }

  template <class Request>
  Json answer(const Request& request) {
    std::unique_lock lock(mutex_);
    let_go_.wait(lock, [&] { return !is_held_; });
    const std::string target(request.target());
    if (status_ != 0 && target.ends_with(failing_path_))
      throw Refusal{status_, "STUBBED", "as the test says", location_};
    authorizations_.insert(std::string(request["Authorization"]));
    const std::string api = "/api/2.0/mlflow/";
    require(target.starts_with(api), "no such path");
    const auto path = target.substr(api.size(), target.find('?') - api.size());
    if (path == "experiments/get-by-name") {
      require(request.method_string() == "GET", "GET");
      return experiment(target.substr(target.find('=') + 1));
    }
    require(request.method_string() == "POST", "POST");
    require(request["Content-Type"] == "application/json", "Content-Type");
    const auto body = Json::parse(request.body());
    if (path == "experiments/create") return create_experiment(body);
    if (path == "runs/create") return create_run(body);
    if (path == "runs/log-batch") return log_batch(body);
    if (path == "runs/update") return update(body);
    throw Refusal{404, "ENDPOINT_NOT_FOUND", path};
  }

  static void allow_only(const Json& body, const std::set<std::string>& fields) {
    for (const auto& [name, value] : body.items())
      require(fields.contains(name), "no such field: " + name);
  }

  Json experiment(const std::string& name) {
    const auto at = experiments_.find(name);
    if (at == experiments_.end()) throw Refusal{404, "RESOURCE_DOES_NOT_EXIST", name};
    return {{"experiment",
             {{"experiment_id", at->second}, {"name", name}, {"lifecycle_stage", "active"}}}};
  }

  Json create_experiment(const Json& body) {
    allow_only(body, {"name"});
    const auto name = body.at("name").get<std::string>();
    if (experiments_.contains(name)) throw Refusal{400, "RESOURCE_ALREADY_EXISTS", name};
    experiments_[name] = std::to_string(experiments_.size() + 1);
    return {{"experiment_id", experiments_[name]}};
  }

  /// All of the list or nothing.
  void check_texts(const std::map<std::string, std::string>& texts, const Json& list,
                   std::size_t most, bool may_change) const {
    require(list.size() <= most, "too many");
    std::set<std::string> keys;
    for (const auto& item : list) {
      allow_only(item, {"key", "value"});
      const auto key = item.at("key").get<std::string>();
      const auto value = item.at("value").get<std::string>();
      require(key.size() <= 250 && value.size() <= 5000, "too long");
      require(!refused_names_.contains(key), "Invalid name: " + key);
      require(may_change || is_name(key), "Invalid parameter name: " + key);
      require(may_change || keys.insert(key).second, "a parameter stands twice");
      require(may_change || !texts.contains(key) || texts.at(key) == value, "params do not change");
    }
  }

  static void set(std::map<std::string, std::string>& texts, const Json& list) {
    for (const auto& item : list)
      texts[item.at("key").get<std::string>()] = item.at("value").get<std::string>();
  }

  Json create_run(const Json& body) {
    allow_only(body, {"experiment_id", "run_name", "start_time", "tags"});
    const auto id = "run" + std::to_string(runs_.size());
    Run run{.info = body};
    const auto& experiment = body.at("experiment_id").get_ref<const std::string&>();
    require(
        std::ranges::any_of(experiments_, [&](const auto& e) { return e.second == experiment; }),
        "no such experiment");
    require(body.at("start_time").get<std::int64_t>() > 1'500'000'000'000, "milliseconds");
    check_texts(run.tags, body.at("tags"), 100, true);
    set(run.tags, body.at("tags"));
    run.info["status"] = "RUNNING";
    run.info["run_id"] = id;
    runs_[id] = run;
    return {{"run", {{"info", runs_[id].info}}}};
  }

  Run& run_of(const Json& body) {
    const auto at = runs_.find(body.at("run_id").get<std::string>());
    if (at == runs_.end()) throw Refusal{404, "RESOURCE_DOES_NOT_EXIST", "no such run"};
    return at->second;
  }

  Json log_batch(const Json& body) {
    allow_only(body, {"run_id", "metrics", "params", "tags"});
    auto& run = run_of(body);
    require(body.at("metrics").size() <= 1000, "too many metrics");
    require(body.at("metrics").size() + body.at("params").size() + body.at("tags").size() <= 1000,
            "too many entities");
    for (const auto& metric : body.at("metrics")) {
      allow_only(metric, {"key", "value", "timestamp", "step"});
      const auto key = metric.at("key").get<std::string>();
      require(is_name(key) && !refused_names_.contains(key), "Invalid metric name: " + key);
      const std::set<Json> not_finite{"NaN", "Infinity", "-Infinity"};
      require(metric.at("value").is_number() || not_finite.contains(metric.at("value")), "value");
      require(metric.at("timestamp").get<std::int64_t>() > 1'500'000'000'000, "milliseconds");
      require(metric.at("step").is_number_integer(), "step");
    }
    check_texts(run.params, body.at("params"), 100, false);
    check_texts(run.tags, body.at("tags"), 100, true);
    set(run.params, body.at("params"));
    set(run.tags, body.at("tags"));
    for (const auto& metric : body.at("metrics")) run.metrics.push_back(metric);
    return Json::object();
  }

  Json update(const Json& body) {
    allow_only(body, {"run_id", "status", "end_time"});
    const std::set<std::string> statuses{"RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"};
    require(statuses.contains(body.at("status").get<std::string>()), "status");
    auto& info = run_of(body).info;
    info.update(body);
    return {{"run_info", info}};
  }

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_{io_};
  std::optional<boost::asio::ssl::context> tls_;
  mutable std::mutex connections_mutex_;  // of the list
  std::list<Connection> connections_;
  std::thread acceptor_thread_;
  std::atomic<std::size_t> requests_{0};
  std::atomic<int> refused_ = 0;
  mutable std::mutex mutex_;  // of all below
  std::condition_variable let_go_;
  bool is_held_ = false;
  unsigned status_ = 0;
  std::string failing_path_;
  std::set<std::string> refused_names_;
  std::string location_;
  std::map<std::string, std::string> experiments_;  // by name
  std::map<std::string, Run> runs_;
  std::set<std::string> authorizations_;
};

}  // namespace troupe::tune
