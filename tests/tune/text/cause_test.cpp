#include "text/cause.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace cause_test {

using namespace troupe::tune;

namespace {

const std::string kPlace = " (rank 0 of 1, pid 4711 on node 1)";

std::string failed(const std::string& code, const std::string& line, const std::string& trial) {
  return "the program ended with exit code " + code + "; its last lines:\n    " + line +
         "\n  all of its output is in runs/run-1/trials/" + trial + "/output-rank-0.log" + kPlace;
}

}  // namespace

TEST_CASE("programs that never reported fail alike by their exit code or signal", "[tune][cause]") {
  const auto cause = cause_without_report(failed("3", "lr=0.1", "0"));
  CHECK(cause == "the program ended with exit code 3");
  CHECK(cause_without_report(failed("3", "lr=0.2", "7")) == cause);
  CHECK(cause_without_report("the program ended with exit code 3, and printed nothing") == cause);
  CHECK(cause_without_report("the program ended with exit code 3") == cause);
  CHECK(cause_without_report(failed("31", "lr=0.1", "0")) != cause);
  CHECK(cause_without_report("the program was ended by signal 6 (Aborted); its last lines: (a)") ==
        "the program was ended by signal 6 (Aborted)");
  CHECK(cause_without_report("the program ended without a report of 'loss', its reports have a") ==
        cause_without_report("the program ended without a report of 'loss', and has no other: b"));
}

TEST_CASE("worker processes die alike by their signal or exit code", "[tune][cause]") {
  const std::string cause = "was killed by signal 11 (Segmentation fault)";
  CHECK(cause_without_report("process 7 (pid 4711) " + cause + "; its log is 7.log (node 1)") ==
        cause);
  CHECK(cause_without_report("rank 1 is gone: process 8 (pid 4712) " + cause +
                             "; its log, 8.log, ends with: 'x'") == cause);
  CHECK(cause_without_report("rank 0 of a gang of actors a::f: process 8 (pid 4712) " + cause +
                             "; its log, 8.log, ends with: 'y'") == cause);
  CHECK(cause_of("process 9 (pid 4713) " + cause + "; its log is 9.log") == cause);
  CHECK(cause_of("process 9 (pid 4713) ended with exit code 3 before it was ready") ==
        "ended with exit code 3");
  CHECK(end_of_process("process 9 (pid 4713) was ended: its node shuts down").empty());
  CHECK(end_of_process("process 9 (pid 4713) was killed by signal 9 (Killed); out of memory: it "
                       "had 3 GiB (node 1)")
            .empty());
  CHECK(end_of_process("the program was ended by signal 9 (Killed)").empty());
  CHECK(end_of_process("the program ended with exit code 137").empty());
  CHECK(end_of_process("rank 1 is late").empty());
  CHECK(end_of_process("process").empty());
}

TEST_CASE("of programs that reported and of exceptions the text counts, without its place",
          "[tune][cause]") {
  CHECK(cause_of(failed("3", "lr=0.1", "0")) == cause_of(failed("3", "lr=0.1", "7")));
  CHECK(cause_of(failed("3", "lr=0.1", "0")) != cause_of(failed("3", "lr=0.2", "0")));
  CHECK(cause_without_report("no memory" + kPlace) == "no memory");
  CHECK(cause_of("all of its output is in /a: no row") != cause_of("all of its output is in /b"));
  CHECK(cause_without_report("no memory (of 3)") == "no memory (of 3)");
  CHECK(end_of_process("no memory" + kPlace).empty());
}

}  // namespace cause_test
