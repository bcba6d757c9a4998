#include <fmt/format.h>

#include "admin.hpp"
#include "commands.hpp"
#include "config/token.hpp"
#include "output.hpp"
#include "transport/socket/socket.hpp"

namespace troupe::cli {

int run_stop(const StopArguments& arguments) {
  const auto head = find_head(arguments.head);
  const auto answer = stop_head(head, config::find_token(arguments.token_file));
  say(stdout, fmt::format("stopped the cluster at {} ({} nodes)\n",
                          transport::format_endpoint(head.at.host, head.at.port),
                          answer.value("nodes", 0)));
  return 0;
}

}  // namespace troupe::cli
