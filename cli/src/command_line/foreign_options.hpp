#pragma once

#include <string>

namespace CLI {
class App;
}

namespace troupe::cli {

/// For who comes from torchrun, mpirun, horovodrun or Ray: what stands here in the place of an
/// option of theirs, or why nothing needs to, as the rest of a sentence ("; it is '-n' here").
/// Empty where `option` is none of theirs. `command`: the one that was given it, such as `run`.
std::string instead_of_foreign(const CLI::App& command, const std::string& option);

}  // namespace troupe::cli
