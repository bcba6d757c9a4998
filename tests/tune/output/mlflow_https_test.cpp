// Searches that tell an MLflow server over TLS, and by which certificates and proxies they do.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "guard.hpp"
#include "support/certificate.hpp"
#include "support/http_answer.hpp"
#include "support/mlflow_search.hpp"
#include "support/temporary_folder.hpp"
#include "support/variables.hpp"

namespace mlflow_https_test {

using namespace troupe;
using namespace troupe::tune;
using namespace std::chrono_literals;
using namespace mlflow_search;
using troupe::test::kGuard;

namespace {

constexpr auto* kAuthorities = "MLFLOW_TRACKING_SERVER_CERT_PATH";
constexpr auto* kInsecure = "MLFLOW_TRACKING_INSECURE_TLS";

/// Of a search that is told to a server over TLS, and came to its end with all of its results.
tune::Results<Config> search(const MlflowStub& server, const fs::path& storage,
                             std::chrono::milliseconds deadline = kGuard) {
  auto wanted = options(server.url(), storage);
  wanted.mlflow.deadline = deadline;
  auto results = tune::run<train>(wanted);
  on_report = {};
  CHECK(results.ended_early() == "");
  CHECK(results.trials().size() == 12);
  CHECK_FALSE(results.best().trial.history.empty());
  return results;
}

/// The same, of a search that refuses the server. It goes on until it has come there once more,
/// and so knows why the first time was in vain.
tune::Results<Config> refusing_search(const MlflowStub& server, const fs::path& storage) {
  on_20th_report([&] { return server.connections() >= 2; });
  return search(server, storage, 50ms);
}

}  // namespace

TEST_CASE("an MLflow server is told over TLS where its certificate is trusted",
          "[tune][mlflow][https]") {
  const TemporaryFolder folder;
  const auto certificate = Certificate::make(folder.path(), "IP:127.0.0.1");
  const MlflowStub server(certificate.file);
  REQUIRE(server.url().starts_with("https://"));
  const Variables variables{{kAuthorities, certificate.file}};
  const auto results = search(server, folder.path() / "sweep");
  INFO(results.summary());
  CHECK(occurrences(results.summary(), "MLflow") == 0);
  check_told(server, results);
  CHECK(server.connections() <= 4);  // kept between requests
}

TEST_CASE(
    "a certificate that nobody vouches for is refused with what to set, and a later run "
    "tells all",
    "[tune][mlflow][https]") {
  const TemporaryFolder folder;
  const auto certificate = Certificate::make(folder.path(), "IP:127.0.0.1");
  const MlflowStub server(certificate.file);
  const auto results = refusing_search(server, folder.path() / "sweep");
  INFO(results.summary());
  CHECK(occurrences(results.summary(), "MLflow at " + server.url() +
                                           ": its certificate is not trusted (SSL certificate ") ==
        1);
  CHECK(occurrences(results.summary(), "set MLFLOW_TRACKING_SERVER_CERT_PATH to a file") == 1);
  CHECK(occurrences(results.summary(), "MLFLOW_TRACKING_INSECURE_TLS=true to verify none") == 1);
  CHECK(server.requests() == 0);
  const Variables variables{{kAuthorities, certificate.file}};
  tune::resume<train>(results.folder(), options(server.url(), ""));
  check_told(server, results);
}

TEST_CASE("a certificate of another host is refused, and none is verified where one asks for that",
          "[tune][mlflow][https]") {
  const TemporaryFolder folder;
  const auto certificate = Certificate::make(folder.path(), "DNS:tracking.example");
  const MlflowStub server(certificate.file);
  {
    const Variables variables{{kAuthorities, certificate.file}};
    const auto results = refusing_search(server, folder.path() / "refused");
    INFO(results.summary());
    CHECK(occurrences(results.summary(), "its certificate is of another host (") == 1);
    CHECK(occurrences(results.summary(), "name the server in the URL as its certificate does") ==
          1);
    CHECK(server.requests() == 0);
  }
  const Variables variables{{kInsecure, "true"}};
  check_told(server, search(server, folder.path() / "told"));
}

TEST_CASE("a server that asks for a certificate gets the one that the environment names",
          "[tune][mlflow][https]") {
  const TemporaryFolder folder;
  const auto certificate = Certificate::make(folder.path(), "IP:127.0.0.1");
  const MlflowStub server(certificate.file, MlflowStub::Clients::Certified);
  const Variables variables{{kAuthorities, certificate.file}};
  CHECK(answer_of(server.url()).status == 0);
  const Variables certified{{"MLFLOW_TRACKING_CLIENT_CERT_PATH", certificate.file}};
  CHECK(answer_of(server.url()).status == 400);
}

TEST_CASE("variables for TLS that cannot be are refused before anything is made",
          "[tune][mlflow][https]") {
  const TemporaryFolder folder;
  const auto there = folder.path() / "certificate.pem";
  std::ofstream(there) << "none";
  const auto storage = folder.path() / "sweep";
  const auto run = [&] { tune::run<train>(options("https://tracking", storage)); };
  {
    const Variables variables{{kAuthorities, "/nowhere/ca.pem"}};
    CHECK_THROWS_WITH(run(), Catch::Contains("MLFLOW_TRACKING_SERVER_CERT_PATH is "
                                             "'/nowhere/ca.pem', where there is no file"));
  }
  {
    const Variables variables{{kInsecure, "maybe"}};
    CHECK_THROWS_WITH(run(), Catch::Contains("is 'maybe'; set it to true or false"));
  }
  {
    const Variables variables{{kInsecure, "1"}, {kAuthorities, there}};
    CHECK_THROWS_WITH(run(), Catch::Contains("unset one of them"));
  }
  CHECK_FALSE(fs::exists(storage));
}

TEST_CASE("a file of authorities that has no certificate is named in the error",
          "[tune][mlflow][https]") {
  const TemporaryFolder folder;
  const auto certificate = Certificate::make(folder.path(), "IP:127.0.0.1");
  const MlflowStub server(certificate.file);
  const auto empty = folder.path() / "empty.pem";
  std::ofstream(empty) << "none";
  const Variables variables{{kAuthorities, empty}};
  const auto answer = answer_of(server.url());
  CHECK(answer.status == 0);
  CHECK_THAT(answer.error, Catch::Contains(empty.string()) &&
                               Catch::Contains("MLFLOW_TRACKING_SERVER_CERT_PATH is to name"));
}

TEST_CASE(
    "a server of another machine is reached by the proxy of the environment, one of this "
    "machine is not",
    "[tune][mlflow][https]") {
  const MlflowStub proxy;
  const MlflowStub away(MlflowStub::Listens::Later);
  {
    const Variables variables{{"http_proxy", proxy.url()}};
    CHECK(answer_of("http://tracking.invalid:5000").status == 400);
    CHECK(proxy.requests() == 1);
  }
  const Variables variables{{"http_proxy", away.url()}, {"https_proxy", away.url()}};
  CHECK(answer_of(proxy.url()).status == 400);
}

TEST_CASE("a proxy that asks who is there refuses at once, and one that is down is named",
          "[tune][mlflow][https]") {
  MlflowStub proxy;
  proxy.answer_with(407);
  const MlflowStub away(MlflowStub::Listens::Later);
  const std::string protocol = GENERATE("http", "https"),
                    url = protocol + "://tracking.invalid:5000";
  {
    const Variables variables{{protocol + "_proxy", proxy.url()}};
    CHECK(answer_of(url).status == 407);
  }
  const Variables variables{{protocol + "_proxy", away.url()}};
  CHECK_THAT(answer_of(url).error, Catch::Contains("port " + std::to_string(away.port())));
}

}  // namespace mlflow_https_test
