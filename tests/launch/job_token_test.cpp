#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <catch2/catch.hpp>

#include "job_support.hpp"

using namespace troupe::test;
namespace fs = std::filesystem;

/// A job's program joins its cluster, wherever its node has the token from.
namespace {

enum class Source { File, Variable };

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// A cluster whose only node has the token from --token-file or TROUPE_TOKEN, and whose state
/// folder has none.
class Elsewhere {
 public:
  explicit Elsewhere(Source source)
      : worker_(command(source == Source::File), environment(source == Source::Variable)) {
    worker_.wait_for_output("of the cluster at");
  }

  const TestCluster& cluster() const { return cluster_; }
  /// `script`: for sh, with the environment of the node's user.
  Finished run_job(const std::string& script) const {
    return job(cluster_,
               {"submit", "--wait", "--name", "joins", "--no-env", "--", "sh", "-c", script});
  }
  std::string printed() const { return job(cluster_, {"logs", "joins"}).output; }

 private:
  std::vector<std::string> command(bool with_file) const {
    std::vector<std::string> all{TROUPE_PROGRAM,     "worker", "--head",
                                 cluster_.address(), "--cpus", "2"};
    if (with_file) all.insert(all.end(), {"--token-file", cluster_.token_file()});
    return all;
  }
  std::vector<std::string> environment(bool with_token) const {
    return {"XDG_STATE_HOME=" + folder_.path(), "TROUPE_ADDRESS=", "TROUPE_TOKEN_FILE=",
            "TROUPE_TOKEN=" + (with_token ? text_of(cluster_.token_file()) : std::string())};
  }

  const TestCluster cluster_{0};
  const TemporaryFolder folder_;
  Child worker_;
};

const std::string kRun = std::string(TROUPE_PROGRAM) + " run -n 1 -- ";

}  // namespace

TEST_CASE("a job's program joins its cluster wherever its node has the token from",
          "[launch][cluster]") {
  for (const auto source : {Source::File, Source::Variable}) {
    const Elsewhere elsewhere(source);
    const auto done = elsewhere.run_job(kRun + "sh -c 'echo rank $RANK'");
    INFO(done.output << elsewhere.printed());
    CHECK(done.exit_code == 0);
    CHECK_THAT(elsewhere.printed(), Catch::Contains("rank 0"));
  }
}

TEST_CASE("a job's program has the token in a private file, which goes with the job",
          "[launch][cluster]") {
  const Elsewhere elsewhere(Source::Variable);
  const auto done = elsewhere.run_job(
      "echo mode $(stat -c %a $TROUPE_TOKEN_FILE $(dirname $TROUPE_TOKEN_FILE)); echo file "
      "$TROUPE_TOKEN_FILE; echo variable ${TROUPE_TOKEN-none}; " +
      kRun + "sh -c 'echo rank has ${TROUPE_TOKEN_FILE-none} ${TROUPE_TOKEN-none}'");
  const auto printed = elsewhere.printed();
  INFO(done.output << printed);
  CHECK(done.exit_code == 0);
  CHECK_THAT(printed, Catch::Contains("mode 600 700\n") && Catch::Contains("variable none\n") &&
                          Catch::Contains("rank has none none\n"));
  const auto at = printed.find("file /");
  REQUIRE(at != std::string::npos);
  const auto file = printed.substr(at + 5, printed.find('\n', at) - at - 5);
  CHECK_FALSE(fs::exists(file));
  CHECK_FALSE(fs::exists(fs::path(file).parent_path()));
}

TEST_CASE("a job's program has the token file that it was submitted with", "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto done =
      job(cluster, {"submit", "--wait", "--name", "own", "--env", "TROUPE_TOKEN_FILE=/own", "--",
                    "sh", "-c", "[ $TROUPE_TOKEN_FILE = /own ]"});
  CHECK(done.exit_code == 0);
}

TEST_CASE("the file of the token and the folder of a job that runs go with its node",
          "[launch][cluster]") {
  TestCluster cluster(0);
  const auto sent = cluster.folder() + "/sent";
  const auto temporary = cluster.folder() + "/tmp";
  for (const auto& folder : {sent, temporary}) fs::create_directory(folder);
  std::ofstream(sent + "/file") << "sent\n";
  cluster.add_worker({"--cpus", "1"}, {"TMPDIR=" + temporary});
  CHECK(job(cluster, {"submit", "--workdir", sent, "--", "sleep", "300"}).exit_code == 0);
  const auto left = [&] {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(cluster.folder())) {
      const auto name = entry.path().filename().string();
      const bool is_secret = name == "token" && entry.path().string() != cluster.token_file();
      if (is_secret || name.starts_with("run-job-")) found.push_back(entry.path().string());
    }
    return found;
  };
  CHECK(left().size() == 3);  // with the lock of the folder
  cluster.worker(0).signal(SIGTERM);
  CHECK(cluster.worker(0).wait());
  CHECK(left() == std::vector<std::string>());
}

TEST_CASE(
    "a job whose node has no folder for temporary files runs, and its log says what is missing",
    "[launch][cluster]") {
  TestCluster cluster(0);
  cluster.add_worker({"--cpus", "1"}, {"TMPDIR=" + cluster.folder() + "/none"});
  CHECK(job(cluster, {"submit", "--wait", "--name", "runs", "--", "true"}).exit_code == 0);
  CHECK_THAT(job(cluster, {"logs", "runs"}).output,
             Catch::Contains("TMPDIR names '" + cluster.folder() + "/none', which is no folder"));
}
