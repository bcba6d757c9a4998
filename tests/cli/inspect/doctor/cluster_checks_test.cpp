// What the doctor says where programs would not reach a cluster, or it runs nothing.
#include <filesystem>
#include <fstream>
#include <optional>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "doctor/examined.hpp"

using namespace troupe::test;
using Catch::Contains;

TEST_CASE("the doctor notes that a cluster has no nodes, with the command that adds one",
          "[cli][cluster][doctor]") {
  const TestCluster cluster(0);
  const auto examined = doctor(cluster);
  CHECK(examined.level("head") == "ok");
  CHECK(examined.level("nodes") == "note");
  CHECK_THAT(examined.remedy("nodes"),
             Contains("`troupe worker --head " + cluster.address() + "`"));
  CHECK(examined.exit_code == (examined.report.at("problems") == 0 ? 0 : 1));
}

TEST_CASE("the doctor finds a token that is another cluster's, and not a firewall",
          "[cli][cluster][doctor]") {
  const TestCluster cluster(0);
  const Alone alone;
  const auto other = "TROUPE_TOKEN=" + std::string(64, 'a');
  const auto examined = alone.doctor_with({"TROUPE_ADDRESS=" + cluster.address(), other});
  CHECK(examined.exit_code == 1);
  CHECK(examined.level("token") == "ok");
  CHECK(examined.level("head") == "problem");
  CHECK_THAT(examined.value("head"), Contains("the token differs"));
  CHECK_THAT(examined.remedy("head"), Contains("set TROUPE_TOKEN to the 64 digits") &&
                                          Contains(cluster.address()) && !Contains("firewall"));
  const auto file = alone.folder.path() + "/other";
  std::ofstream(file) << std::string(64, 'a') << std::flush;
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  const auto copied = alone.doctor({"--head", cluster.address(), "--token-file", file});
  CHECK(copied.level("head") == "problem");
  CHECK_THAT(copied.remedy("head"),
             Contains("copy the token file of the head at " + cluster.address()));
}

TEST_CASE("the doctor finds a TROUPE_TOKEN that is none, whether there is a head or not",
          "[cli][cluster][doctor]") {
  const Alone alone;
  const auto examined = alone.doctor_with({"TROUPE_TOKEN=secret"});
  CHECK(examined.exit_code == 1);
  CHECK(examined.level("token") == "problem");
  CHECK_THAT(examined.remedy("token"), Contains("set TROUPE_TOKEN to the 64 digits"));
  const TestCluster cluster(0);
  const auto with_head =
      alone.doctor_with({"TROUPE_TOKEN=secret", "TROUPE_ADDRESS=" + cluster.address()});
  CHECK(with_head.level("head") == "problem");
  CHECK_THAT(with_head.remedy("head"), Contains("set TROUPE_TOKEN to the 64 digits"));
}

TEST_CASE("the doctor says which of three places holds an address that is none", "[cli][doctor]") {
  const Alone alone;
  const auto variable = alone.doctor_with({"TROUPE_ADDRESS=nowhere"});
  CHECK(variable.exit_code == 1);
  CHECK(variable.level("head") == "problem");
  CHECK_THAT(variable.value("head"), Contains("TROUPE_ADDRESS: 'nowhere' is not an address"));
  CHECK_THAT(variable.remedy("head"), Contains("unset it"));
  const auto option = alone.doctor({"--head", "10.0.0.5:70000"});
  CHECK(option.level("head") == "problem");
  CHECK_THAT(option.remedy("head"), Contains("--head") && !Contains("TROUPE_ADDRESS"));
  const auto file = alone.folder.path() + "/troupe/address";
  std::filesystem::create_directories(alone.folder.path() + "/troupe");
  std::ofstream(file) << "garbage\n";
  const auto left = alone.doctor();
  CHECK(left.exit_code == 1);
  CHECK(left.level("head") == "problem");
  CHECK_THAT(left.remedy("head"), Contains("remove " + file));
}

TEST_CASE("the doctor notes that another program has the port of a head, and how to find it",
          "[cli][doctor]") {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(7420);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool is_ours =
      bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 && listen(listener, 8) == 0;
  std::optional<Examined> examined;
  if (is_ours) examined = Alone().doctor();
  close(listener);
  if (!is_ours) {
    WARN("skipped: something listens on port 7420 already");
    return;
  }
  CHECK(examined->level("port 7420") == "note");
  CHECK_THAT(examined->value("port 7420"), Contains("7420"));
  CHECK_THAT(examined->remedy("port 7420"),
             Contains("ss -ltnp 'sport = :7420'") && Contains("troupe head --port N"));
}
