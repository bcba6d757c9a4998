#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "commands.hpp"
#include "config/token.hpp"
#include "head/head.hpp"
#include "node/guard/guardian.hpp"
#include "node/node.hpp"
#include "output.hpp"
#include "transport/socket/socket.hpp"

namespace troupe::cli {
namespace {

/// Where others reach a head that listens there: not at "any address".
std::string reached_at(const std::string& host) {
  if (host != "0.0.0.0" && host != "::") return host;
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : host;
}

/// `before`: the head that commands without an address meant; empty: none, or this one.
void greet(const head::Head& head, const HeadArguments& arguments, const std::string& token_file,
           const std::string& before) {
  const auto listens = transport::format_endpoint(arguments.host, head.port());
  const auto address = transport::format_endpoint(reached_at(arguments.host), head.port());
  auto text = fmt::format(
      "troupe {}: the head of cluster {} listens on {}\n"
      "  add a machine:  troupe worker --head {}\n"
      "  run a program:  TROUPE_ADDRESS={} ./program\n"
      "  token file:     {} (each machine needs a copy, mode 0600)\n",
      kVersion, head.cluster(), listens, address, address, token_file);
  if (!before.empty()) {
    text += fmt::format(
        "  note:           commands here without --address meant the head at {} until now, and "
        "mean this one now\n",
        before);
  }
  if (!transport::is_loopback(arguments.host)) {
    text += fmt::format(
        "  warning:        {} is not loopback, and what crosses it is authenticated but not "
        "encrypted: use a trusted network\n",
        arguments.host);
  }
  say(stdout, text);
}

/// Names this head to `troupe status` and its siblings on this machine, as long as it lives and no
/// later one takes its place.
class AddressFile {
 public:
  explicit AddressFile(const std::string& address) : address_(address), before_(named()) {
    std::filesystem::create_directories(config::state_directory());
    std::ofstream(address_file()) << address_ << '\n';
  }
  ~AddressFile() {
    if (named() == address_) std::filesystem::remove(address_file());
  }
  AddressFile(const AddressFile&) = delete;
  AddressFile& operator=(const AddressFile&) = delete;

  /// The head whose place this one took, which may live on; empty: none.
  std::string other() const { return before_ == address_ ? std::string() : before_; }

 private:
  static std::string named() {
    std::string line;
    std::ifstream in(address_file());
    std::getline(in, line);
    return line;
  }

  const std::string address_;
  const std::string before_;
};

}  // namespace

int run_head(const HeadArguments& arguments) {
  auto guardian = arguments.no_node ? os::UniqueFd() : node::run_under_guardian();
  signal(SIGPIPE, SIG_IGN);
  boost::asio::io_context loop{1};
  const auto token_file =
      arguments.token_file.empty() ? config::default_token_file() : arguments.token_file;
  head::HeadOptions options;
  options.host = arguments.host;
  options.port = arguments.port;
  options.token = config::load_or_create_token(token_file);
  options.directory = arguments.state_directory.empty()
                          ? fmt::format("{}/head-{}", config::state_directory(), arguments.port)
                          : arguments.state_directory;
  options.rejoin_patience =
      std::chrono::milliseconds(std::llround(1000 * arguments.rejoin_patience));
  options.log = [](const std::string& line) { say(stderr, line + '\n'); };
  head::Head head(loop, options);
  std::optional<node::Node> node;
  int exit_code = 0;
  bool stopping = false;
  int running = arguments.no_node ? 1 : 2;  // the head, its node
  const auto one_stopped = [&] {
    if (--running == 0) loop.stop();
  };
  const auto stop = [&](const std::string& why) {  // the node hears of it like every other
    if (std::exchange(stopping, true)) return;
    say(stderr, fmt::format("stopping: {}\n", why));
    head.stop(why, one_stopped);
  };
  if (!arguments.no_node) {
    auto offer =
        node_options(arguments.node, {.host = arguments.host, .port = head.port(), .unix_name = {}},
                     {.secret = options.token, .from = "token file " + token_file});
    offer.guardian = guardian.release();
    node.emplace(loop, std::move(offer));
    node->start([](runtime::NodeId) {},
                [&](const std::string& why, bool failed) {
                  if (failed && !stopping) {
                    say(stderr, fmt::format("the head's own node ended: {}\n", why));
                    exit_code = 1;
                    stop(why);
                  }
                  one_stopped();
                });
  }
  boost::asio::signal_set signals(loop, SIGINT, SIGTERM);
  signals.async_wait([&](const boost::system::error_code& error, int number) {
    if (!error) stop(number == SIGINT ? "interrupted" : "terminated");
  });
  head.on_stop_asked([&] { stop("asked by `troupe stop`"); });
  const AddressFile file(transport::format_endpoint(arguments.host, head.port()));
  greet(head, arguments, token_file, file.other());
  loop.run();
  return exit_code;
}

}  // namespace troupe::cli
