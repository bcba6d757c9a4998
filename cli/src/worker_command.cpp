#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "commands.hpp"
#include "config/token.hpp"
#include "node/guard/guardian.hpp"
#include "node/node.hpp"
#include "output.hpp"
#include "transport/socket/socket.hpp"
#include "workdir/workdir.hpp"

namespace troupe::cli {

int run_worker(const WorkerArguments& arguments) {
  auto guardian = node::run_under_guardian("troupe worker");
  signal(SIGPIPE, SIG_IGN);
  boost::asio::io_context loop{1};
  const auto head = find_head(arguments.head);
  auto options = node_options(arguments.node, head.at, find_token(head, arguments.token_file));
  options.head_silence = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::duration<double>(arguments.head_silence));
  options.guardian = guardian.lifeline.release();
  options.guardian_described = guardian.described;
  options.head_advice = head.advice();
  note_missing_gpus(arguments.node);
  const auto logs = options.log_directory;
  node::Node node(loop, std::move(options));
  int exit_code = 0;
  node.start(
      [&](runtime::NodeId number) {
        say(stdout,
            fmt::format("node {} of the cluster at {}; output of its processes: {}\n", number,
                        transport::format_endpoint(head.at.host, head.at.port), logs));
      },
      [&](const std::string& why, bool failed) {
        say(stderr, fmt::format("{}{}\n", failed ? "troupe: " : "stopped: ", why));
        exit_code = failed ? 1 : 0;
        loop.stop();
      });
  boost::asio::signal_set signals(loop, SIGINT, SIGTERM);
  signals.async_wait([&](const boost::system::error_code& error, int number) {
    if (!error) node.stop(number == SIGINT ? "interrupted" : "terminated");
  });
  loop.run();
  launch::remove_left_of_programs();
  return exit_code;
}

}  // namespace troupe::cli
