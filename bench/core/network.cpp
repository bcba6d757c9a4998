// Between hosts, each with a node of its own: large values, beside what one plain TCP connection
// carries on the same link in the same run, and small calls and tasks.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "built.hpp"
#include "cases.hpp"
#include "hosts.hpp"
#include "processes.hpp"

namespace troupe::bench {
namespace {

constexpr int kHosts = 5;
constexpr int kPort = 7420;

/// What a program printed as "figure NAME VALUE".
double figure(const std::string& printed, const std::string& name) {
  const auto at = printed.find("figure " + name + " ");
  if (at == std::string::npos)
    throw std::runtime_error(fmt::format("no figure '{}' in: {}", name, printed));
  return std::strtod(printed.c_str() + at + name.size() + 8, nullptr);
}

/// A head with a node on host 0, where the driver will be, and a node on each other host.
class Cluster {
 public:
  explicit Cluster(const Hosts& hosts) : hosts_(hosts) {
    const auto address = fmt::format("{}:{}", Hosts::address(0), kPort);
    start(0, {"head", "--host", Hosts::address(0), "--port", std::to_string(kPort)}, "token file:");
    for (int host = 1; host < kHosts; ++host)
      start(host, {"worker", "--head", address}, "of the cluster at");
  }

  std::string run(std::vector<std::string> program) {
    Command command(hosts_.on(0, std::move(program)), environment());
    return command.wait_for("done", std::chrono::seconds(120));
  }

 private:
  std::vector<std::string> environment() const {
    return {"XDG_STATE_HOME=" + folder_.path(), "TROUPE_TOKEN=", "TROUPE_ADDRESS="};
  }
  void start(int host, std::vector<std::string> arguments, const std::string& greeting) {
    arguments.insert(arguments.begin(), TROUPE_PROGRAM);
    const auto label = fmt::format("host={}", host);
    arguments.insert(arguments.end(),
                     {"--cpus", "2", "--object-store-memory", "3GiB", "--label", label});
    commands_.push_back(std::make_unique<Command>(hosts_.on(host, arguments), environment()));
    commands_.back()->wait_for(greeting);
  }

  const Hosts& hosts_;
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<Command>> commands_;
};

/// Seconds of one plain connection between two of the hosts.
double link(const Hosts& hosts, std::size_t bytes) {
  const auto size = std::to_string(bytes);
  Command receiver(hosts.on(1, {TROUPE_ACROSS_HOSTS, "--plain-receive", "7421", size}), {});
  receiver.wait_for("listening");
  Command sender(
      hosts.on(0, {TROUPE_ACROSS_HOSTS, "--plain-send", Hosts::address(1), "7421", size}), {});
  return figure(sender.wait_for("done", std::chrono::seconds(60)), "link");
}

}  // namespace

void network(const Report& report) {
  if (!report.wants_any(kNetworkCases)) return;
  const Hosts hosts(kHosts);
  if (!hosts.ok()) {
    for (const auto name : kNetworkCases)
      report.missing(std::string(name), "",
                     "cannot run here: network namespaces need root and iproute2");
    return;
  }
  const auto bytes = static_cast<std::size_t>(sized(report, 1024, 16)) << 20;
  const auto gigabytes = static_cast<double>(bytes) / 1e9;
  const auto plain = gigabytes / link(hosts, bytes);
  const auto printed = Cluster(hosts).run({TROUPE_ACROSS_HOSTS, "--address",
                                           fmt::format("{}:{}", Hosts::address(0), kPort),
                                           std::to_string(bytes), std::to_string(kHosts)});
  const auto print = [&](const std::string& name, double value, const std::string& unit,
                         const std::string& note = {}) {
    if (report.wants(name)) report.print(name, value, unit, note);
  };
  const auto transfer = gigabytes / figure(printed, "transfer");
  print("link_1GiB_GBps", plain, "GB/s", "one plain TCP connection between the same hosts");
  print("transfer_1GiB_GBps", transfer, "GB/s",
        fmt::format("{:.2f} of the link", transfer / plain));
  print("broadcast_1GiB_to_4_s", figure(printed, "broadcast"), "s",
        fmt::format("the link carries it four times in {:.2f} s", 4 * gigabytes / plain));
  print("remote_calls_async", figure(printed, "remote_calls_async"), "1/s",
        "on an actor of another host");
  print("remote_task_sync", figure(printed, "remote_task_sync"), "1/s", "on another host");
  print("remote_tasks_async", figure(printed, "remote_tasks_async"), "1/s", "on another host");
}

}  // namespace troupe::bench
