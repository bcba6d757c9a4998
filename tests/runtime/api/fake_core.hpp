#pragma once

/// A cluster inside the test: the templates of the public headers run against it as they do against
/// the runtime. Tasks and actors run on the thread that waits, and nothing runs until somebody
/// does, so that a test sees refs that are not ready. The ranks of a gang have a thread each.
namespace fake {

/// Runs everything that was started, but for the ranks of gangs.
void run_all();

/// How many stored values there are: large ones are, as in the runtime.
int stored_values();

}  // namespace fake
