#include <algorithm>
#include <string>

#include <catch2/catch.hpp>

#include "sweep_support.hpp"

using namespace troupe::test;
using Catch::Contains;

/// What `troupe tune` makes of output of its programs that is no text.
namespace sweep_output_test {
namespace {

/// For a shell: bytes that are no UTF-8, zeros and control characters, with and without a line end.
constexpr const char* kBinary = "printf 'a\\000b\\377\\033[1m\\n\\200\\000 \\r\\n\\376\\000'\n";
const std::string kPrinted("a\0b\xff\x1b[1m\n\x80\0 \r\n\xfe\0", 16);

bool has_control_characters(const std::string& text) {
  return std::ranges::any_of(text, [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r' && c != '\t';
  });
}

/// One trial after the other of a program that reports and ends where x is 1, and else does `body`.
Sweep sweep_of(const std::string& body) {
  return Sweep("[ $1 = 1 ] && { echo \"troupe: {\\\"loss\\\": $1}\"; exit; }\n" + body,
               "max_concurrent = 1\n" + std::string(kGrid));
}

/// What it printed, without a control character.
std::string run_to_the_end(const Sweep& sweep) {
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_FALSE(has_control_characters(done.output));
  return done.output;
}

/// `show`, `show --json` and the report read the run.
void check_is_shown(const Sweep& sweep, const std::string& best) {
  const auto shown = sweep.tune("show");
  CHECK(shown.exit_code == 0);
  CHECK_THAT(shown.output, Contains(best));
  CHECK_FALSE(has_control_characters(shown.output));
  const auto json = nlohmann::json::parse(sweep.tune("show", {"--json"}).output);
  CHECK(json.at("trials").size() >= 2);
  CHECK(sweep.tune("report", {"-o", sweep.folder() + "/page.html"}).exit_code == 0);
  CHECK(sweep.content("page.html").find('\0') == std::string::npos);
}

}  // namespace

TEST_CASE("reports are read among bytes that are no text, which the log has as they are",
          "[sweep]") {
  const auto body = std::string(kBinary) +
                    "echo \"troupe: {\\\"loss\\\": 1.$1}\"\n"
                    "head -c 100000 /dev/urandom; echo\n"
                    "printf '\\377\\000'; echo \"troupe: {\\\"loss\\\": 0.$1}\"\n";
  const Sweep sweep(body, "print = true\nmax_concurrent = 1\n[space]\nx = { grid = [3, 1] }\n");
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Contains("best: trial 1, loss 0.1"));
  CHECK_THAT(done.output, Contains("[trial 0] " + std::string("a\0b\xff\x1b[1m\n", 9)));
  const auto log = sweep.content("runs/run-1/trials/0/output-rank-0.log");
  CHECK(log.starts_with(kPrinted + "troupe: {\"loss\": 1.3}\n"));
  CHECK(log.ends_with(std::string("\n\xff\0troupe: {\"loss\": 0.3}\n", 25)));
  const auto summary = sweep.summary();
  for (const auto& trial : summary.at("trials")) CHECK(trial.at("t") == 2);
  check_is_shown(sweep, "best: trial 1, loss 0.1");
}

TEST_CASE("a program that fails after bytes that are no text is told of with all its last lines",
          "[sweep]") {
  const auto sweep = sweep_of(
      "[ $1 = 2 ] && echo '{\"message\": \"b\\u0000\\u001b[1m no disk\"}' > "
      "$TORCHELASTIC_ERROR_FILE\n" +
      std::string(kBinary) + "echo; echo no memory; exit 9\n");
  CHECK_THAT(run_to_the_end(sweep), Contains("ended with exit code 9; its last lines:") &&
                                        Contains("no memory") && Contains("no disk"));
  const auto trials = sweep.summary().at("trials");
  CHECK_THAT(trials.at(0).at("error").get<std::string>(),
             Contains("no memory\n") && Contains("output-rank-0.log"));
  CHECK_THAT(trials.at(2).at("error").get<std::string>(),
             Contains("its traceback:") && Contains(" no disk\n") && Contains("output-rank-0.log"));
  check_is_shown(sweep, "best: trial 1, loss 1");
}

TEST_CASE("a report that is no text is refused in printable words", "[sweep]") {
  const auto sweep = sweep_of("printf 'troupe: {\"loss\\377\\000\": 1}\\n'\n");
  CHECK_THAT(run_to_the_end(sweep), Contains("which is no report (it is no JSON)"));
  check_is_shown(sweep, "best: trial 1, loss 1");
}

}  // namespace sweep_output_test
