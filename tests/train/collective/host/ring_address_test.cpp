#include <troupe/train/communicator.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <unistd.h>
#include <catch2/catch.hpp>

#include "guard.hpp"
#include "support/forked_gang.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using troupe::test::kGuard;

namespace {

/// "socket:[4711]" for every socket that a process has open.
std::set<std::string> sockets_of(const std::string& pid) {
  std::set<std::string> sockets;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + pid + "/fd", gone)) {
    const auto target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with("socket:[")) sockets.insert(target);
  }
  return sockets;
}

/// The address, as /proc has it ("0100007F"), of the first TCP socket on which a process listens;
/// empty: it does not.
std::string listening_address_of(const std::string& pid) {
  const auto own = sockets_of(pid);
  std::ifstream table("/proc/" + pid + "/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
        timeout >> inode;
    if (state == "0A" && own.contains("socket:[" + inode + "]"))
      return local.substr(0, local.find(':'));
  }
  return "";
}

/// Where rank 0's ring listens while it waits for rank 1, which looks before it comes.
std::string where_it_listens(const std::string& address) {
  const auto outcomes = ForkedGang::on_nodes(2, 2).run([&](GangContext& context) {
    const HostOptions options{.timeout = kGuard, .address = address};
    if (context.rank() == 0) {
      context.rendezvous().set("pid", std::to_string(::getpid()));
      make_host_communicator(context, options)->barrier();
      return;
    }
    const auto pid = context.rendezvous().get("pid", kGuard);
    std::string found;
    expect(eventually([&] { return !(found = listening_address_of(pid)).empty(); }),
           "rank 0 listens");
    make_host_communicator(context, options)->barrier();
    throw std::runtime_error("listens on " + found);
  });
  CHECK_FALSE(outcomes[0].threw);
  return outcomes[1].message;
}

}  // namespace

TEST_CASE("the ring between nodes listens on the address of the gang's node and no other",
          "[train][collective][ring]") {
  CHECK(where_it_listens("") == "listens on 0100007F");
}

TEST_CASE("the ring between nodes listens where it is told to", "[train][collective][ring]") {
  CHECK(where_it_listens("127.0.0.2") == "listens on 0200007F");
  CHECK(where_it_listens("0.0.0.0") == "listens on 00000000");
}

TEST_CASE("an address that is not this machine's is refused by name",
          "[train][collective][ring][failure]") {
  const auto outcomes = ForkedGang::on_nodes(2, 2).run([](GangContext& context) {
    make_host_communicator(context, {.timeout = kGuard, .address = "192.0.2.1"});
  });
  CHECK_THAT(outcomes[0].message, Catch::Contains("cannot listen on \"192.0.2.1\""));
}
