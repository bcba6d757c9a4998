#pragma once

/// Who reads what this process says: somebody who calls the C++ API, or somebody at a command line,
/// whom advice about C++ leads nowhere. A driver's program is described with it
/// (node/program/program.hpp), so that the nodes and the head know it too.
namespace troupe::config {

enum class Audience : unsigned char { Api, CommandLine };

/// Of this process: Api, where nothing else is said. The program `troupe` says it first in main(),
/// before there are threads; read by any thread from then on.
Audience audience();
void speak_to(Audience audience);

}  // namespace troupe::config
