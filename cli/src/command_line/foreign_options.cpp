#include "command_line/foreign_options.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <CLI/App.hpp>

namespace troupe::cli {
namespace {

struct Foreign {
  std::string_view command;  ///< that may be given it; empty: any that has `here`
  std::string_view option;   ///< with '-' also where theirs may have '_'
  std::string_view here;     ///< the option in its place; empty: there is none
  std::string_view why = {};
};

constexpr std::string_view kMeeting =
    "it is not needed here: rank 0's node has a free port, which all ranks are told";
constexpr std::string_view kNodes =
    "the ranks' nodes are those of a cluster: `troupe worker` on each machine adds one";

constexpr std::array kForeign{
    // torchrun
    Foreign{"run", "--nproc-per-node", "-n"},
    Foreign{"run", "--nnodes", "", "'-n' counts the ranks of all nodes, '--per-node' those of one"},
    Foreign{"run", "--node-rank", "", "it is not needed here: nodes are numbered as they are used"},
    Foreign{"run", "--standalone", "", "a run that names no cluster stays on this machine"},
    Foreign{"run", "--master-addr", "", kMeeting},
    Foreign{"run", "--master-port", "", kMeeting},
    Foreign{"run", "--rdzv-backend", "", kMeeting},
    Foreign{"run", "--rdzv-endpoint", "", kMeeting},
    Foreign{"run", "--rdzv-id", "", kMeeting},
    Foreign{"run", "--rdzv-conf", "", kMeeting},
    Foreign{"run", "--module", "", "name the interpreter: -- python3 -m MODULE"},
    Foreign{"run", "-m", "", "name the interpreter: -- python3 -m MODULE"},
    Foreign{"run", "--no-python", "", "the program after '--' is started as it is"},
    // mpirun, horovodrun
    Foreign{"run", "--np", "-n"},
    Foreign{"run", "--num-proc", "-n"},
    Foreign{"run", "-x", "--env"},
    Foreign{"run", "-H", "", kNodes},
    Foreign{"run", "--host", "", kNodes},
    Foreign{"run", "--hosts", "", kNodes},
    Foreign{"run", "--hostfile", "", kNodes},
    Foreign{"run", "--machinefile", "", kNodes},
    // Ray
    Foreign{"", "--num-cpus", "--cpus"},
    Foreign{"", "--num-gpus", "--gpus"},
    Foreign{"", "--resources", "--resource"},
    Foreign{"", "--labels", "--label"},
    Foreign{"", "--node-name", "--name"},
    Foreign{"", "--node-ip-address", "--node-host"},
    Foreign{"worker", "--block", "", "it runs in the foreground until it is stopped"},
    Foreign{"head", "--block", "", "it runs in the foreground until it is stopped"},
    Foreign{"submit", "--working-dir", "--workdir"},
    Foreign{"submit", "--entrypoint-num-cpus", "--cpus"},
    Foreign{"submit", "--entrypoint-num-gpus", "--gpus"},
    Foreign{"submit", "--submission-id", "--name"},
    Foreign{"submit", "--runtime-env", "", "'--workdir' and '--env' say what the program has"},
    Foreign{"submit", "--runtime-env-json", "", "'--workdir' and '--env' say what the program has"},
    Foreign{"submit", "--no-wait", "", "nothing waits for the program unless '--wait' is said"},
};

bool has(const CLI::App& command, std::string_view option) {
  return command.get_option_no_throw(std::string(option)) != nullptr;
}

}  // namespace

std::string instead_of_foreign(const CLI::App& command, const std::string& option) {
  std::string name = option;
  if (name.starts_with("--")) std::ranges::replace(name, '_', '-');
  for (const auto& foreign : kForeign) {
    if (foreign.option != name) continue;
    if (!foreign.command.empty() && foreign.command != command.get_name()) continue;
    if (foreign.here.empty()) return fmt::format("; {}", foreign.why);
    if (has(command, foreign.here)) return fmt::format("; it is '{}' here", foreign.here);
  }
  return {};
}

}  // namespace troupe::cli
