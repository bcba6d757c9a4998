#pragma once

namespace troupe::test {

/// Runs this program's tests, for a main that has something to do first. Compiled once: Catch2's
/// runner takes long.
int run_tests(int argc, char** argv);

}  // namespace troupe::test
