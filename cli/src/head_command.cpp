#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <troupe/errors.hpp>

#include "admin.hpp"
#include "commands.hpp"
#include "config/token.hpp"
#include "head/head.hpp"
#include "node/guard/guardian.hpp"
#include "node/node.hpp"
#include "output.hpp"
#include "transport/find_token.hpp"
#include "transport/socket/socket.hpp"
#include "words/shell_word.hpp"
#include "workdir/workdir.hpp"

namespace troupe::cli {
namespace {

/// Where others reach a head that listens there: not at "any address".
std::string reached_at(const std::string& host) {
  if (host != "0.0.0.0" && host != "::") return host;
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : host;
}

/// `before`: what there is to say of the head that commands without an address meant; may be empty.
void greet(const head::Head& head, const HeadArguments& arguments, const std::string& token_file,
           const std::string& before) {
  const auto listens = transport::format_endpoint(arguments.host, head.port());
  const auto address = transport::format_endpoint(reached_at(arguments.host), head.port());
  // One that is not looked for by itself is named in what is to be typed.
  const bool is_named = !arguments.token_file.empty();
  const auto file =
      is_named ? launch::shell_word(std::filesystem::absolute(token_file)) : token_file;
  auto text = fmt::format(
      "troupe {}: the head of cluster {} listens on {}\n"
      "  add a machine:  troupe worker --head {}{}\n"
      "  run a program:  TROUPE_ADDRESS={}{} ./program\n"
      "  token file:     {} (each machine needs a copy, mode 0600)\n",
      kVersion, head.cluster(), listens, address, is_named ? " --token-file " + file : "", address,
      is_named ? " TROUPE_TOKEN_FILE=" + file : "", token_file);
  if (!before.empty()) text += fmt::format("  note:           {}\n", before);
  if (transport::is_loopback(arguments.host)) {
    text +=
        "  reach:          this machine alone; --host with an address of this machine lets others "
        "in\n";
  } else {
    text += fmt::format(
        "  warning:        {} is not loopback, and what crosses it is authenticated but not "
        "encrypted: use a trusted network\n",
        arguments.host);
  }
  say(stdout, text);
}

/// Beside config::address_file(), which scripts read: the address once more, and the process of that head.
std::string process_file() { return config::address_file() + ".process"; }

/// The head that config::address_file() names.
struct Named {
  std::string address;  // empty: none
  std::string process;  // "pid 1234"; empty: not known

  static Named read() {
    Named named{.address = config::known_head(), .process = {}};
    std::string of;
    std::ifstream process(process_file());
    if (std::getline(process, of) && of == named.address) std::getline(process, named.process);
    return named;
  }
  void write() const {
    std::ofstream(process_file()) << address << '\n' << process << '\n';
    std::ofstream(config::address_file()) << address << '\n';
  }
  static void remove() {
    std::error_code ignored;
    std::filesystem::remove(config::address_file(), ignored);
    std::filesystem::remove(process_file(), ignored);
  }
};

bool is_listening(const std::string& address) {
  try {
    return !transport::why_nobody_listens(transport::parse_endpoint(address));
  } catch (const Error&) {
    return false;  // it is no address
  }
}

/// Names this head to `troupe status` and its siblings on this machine, as long as it lives and no
/// later one takes its place. Then the one before it has its place again, if that lives.
class AddressFile {
 public:
  explicit AddressFile(const std::string& address)
      : own_{address, fmt::format("pid {}", ::getpid())}, before_(Named::read()) {
    if (before_.address == address) before_ = {};
    lives_ = !before_.address.empty() && is_listening(before_.address);
    std::filesystem::create_directories(config::state_directory());
    own_.write();
  }
  ~AddressFile() {
    if (Named::read().address != own_.address) return;
    if (lives_ && is_listening(before_.address))
      before_.write();
    else
      Named::remove();
  }
  AddressFile(const AddressFile&) = delete;
  AddressFile& operator=(const AddressFile&) = delete;

  /// What there is to say of the head whose place this one took; empty: there was none.
  std::string about_other() const {
    const auto& [address, process] = before_;
    if (address.empty()) return {};
    if (!lives_) {
      return fmt::format(
          "{} named the head at {}, which has ended without removing that: it names "
          "this one now",
          config::address_file(), address);
    }
    return fmt::format(
        "another head runs here: commands here without --address meant the head at {} until now, "
        "and mean this one now, as long as it runs; --address {} means the other one{}",
        address, address, process.empty() ? "" : fmt::format(" ({})", process));
  }

 private:
  const Named own_;
  Named before_;
  bool lives_ = false;
};

/// " (pid 1234)" of the head that this machine's commands mean, if it is the one on this port.
std::string process_on(std::uint16_t port) {
  const auto named = Named::read();
  const bool is_it = named.address.ends_with(fmt::format(":{}", port));
  return is_it && !named.process.empty() ? fmt::format(" ({})", named.process) : "";
}

/// Throws what keeps it from listening, and where that is another head of this cluster's token, how
/// to end it.
std::unique_ptr<head::Head> make_head(boost::asio::io_context& loop,
                                      const head::HeadOptions& options,
                                      const config::FoundToken& token) {
  try {
    return std::make_unique<head::Head>(loop, options);
  } catch (const Refused& refused) {
    const std::string why = refused.what();
    if (options.port == 0 || why.find("troupe stop") != std::string::npos) throw;
    const auto host = options.host == "0.0.0.0" ? "127.0.0.1" : options.host;
    const transport::Endpoint at{.host = host, .port = options.port, .unix_name = {}};
    const auto there = troupe_at(at, &token);
    if (!there) throw refused;
    const auto address = transport::format_endpoint(host, options.port);
    raise({.kind = Failure::Kind::Refused,
           .message = fmt::format(
               "{}; what listens there is {}{}{}", why, there->what, process_on(options.port),
               there->has_our_token
                   ? fmt::format(": use it with --address {0}, or end it with `troupe stop --head "
                                 "{0}`",
                                 address)
                   : "")});
  }
}

}  // namespace

int run_head(const HeadArguments& arguments) {
  auto guardian = arguments.no_node ? node::Guardian() : node::run_under_guardian("troupe head");
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
  const config::FoundToken token{.secret = options.token, .from = "token file " + token_file};
  const auto made = make_head(loop, options, token);
  auto& head = *made;
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
    auto offer = node_options(
        arguments.node, {.host = arguments.host, .port = head.port(), .unix_name = {}}, token);
    offer.guardian = guardian.lifeline.release();
    offer.guardian_described = guardian.described;
    note_missing_gpus(arguments.node);
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
  greet(head, arguments, token_file, file.about_other());
  loop.run();
  if (node) launch::remove_left_of_programs();
  return exit_code;
}

}  // namespace troupe::cli
