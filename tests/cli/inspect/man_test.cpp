#include <filesystem>
#include <fstream>
#include <iterator>

#include <catch2/catch.hpp>

#include "inspect/texts.hpp"
#include "terminal.hpp"

using namespace troupe::test;
namespace fs = std::filesystem;

namespace {

/// All of them, in a folder.
struct Pages {
  TemporaryFolder folder;
  Pages() { REQUIRE(run({TROUPE_PROGRAM, "man", "--write-to", folder.path()}).exit_code == 0); }
  std::string file(const std::string& path) const {
    const auto name = std::regex_replace(path.empty() ? path : " " + path, std::regex(" "), "-");
    return folder.path() + "/troupe" + name + ".1";
  }
  std::string text(const std::string& command) const {
    std::ifstream in(file(command));
    std::string all{std::istreambuf_iterator<char>(in), {}};
    return std::regex_replace(all, std::regex(R"(\\-)"), "-");
  }
};

}  // namespace

TEST_CASE("every command has a manual page with all of its options", "[cli][man]") {
  const Pages pages;
  const auto commands = all_commands();
  REQUIRE(commands.size() > 15);
  CHECK(static_cast<std::size_t>(std::distance(fs::directory_iterator(pages.folder.path()), {})) ==
        commands.size() + 1);
  for (const auto& command : commands) {
    INFO(command);
    const auto page = pages.text(command);
    CHECK_THAT(page, Catch::Contains(".SH EXIT STATUS") && Catch::Contains(".SH OPTIONS"));
    CHECK_THAT(page, Catch::Contains("\\fBtroupe\\fR \\fB" + command + "\\fR"));
    const auto space = command.rfind(' ');
    const auto group = space == command.npos ? "" : command.substr(0, space);
    CHECK_THAT(pages.text(group), Catch::Contains("\n\\fB" + command.substr(space + 1) + "\\fR\n"));
    const auto options = options_of(command);
    CHECK(options.contains("--help"));
    for (const auto& option : options) CHECK_THAT(page, Catch::Contains("\\fB" + option + "\\fR"));
  }
  CHECK(run({TROUPE_PROGRAM, "man", "run"}).output.size() == fs::file_size(pages.file("run")));
}

TEST_CASE("a group and its commands have pages that name each other", "[cli][man]") {
  const Pages pages;
  const auto size = fs::file_size(pages.file("job submit"));
  CHECK(run({TROUPE_PROGRAM, "man", "job", "submit"}).output.size() == size);
  CHECK(run({TROUPE_PROGRAM, "man", "job submit"}).output.size() == size);
  const auto group = pages.text("job");
  CHECK_THAT(group, Catch::Contains("\\fBtroupe-job-submit\\fR(1)"));
  CHECK_THAT(group, Catch::Contains(".SH COMMANDS\n.TP\n\\fBsubmit\\fR\n"));
  CHECK_THAT(pages.text("job submit"),
             Catch::Contains(".SH SEE ALSO\n\\fBtroupe\\fR(1),\n\\fBtroupe-job\\fR(1)\n"));
}

TEST_CASE("the exit codes are in the help and in the manual pages", "[cli][man]") {
  for (const auto& command : all_commands()) {
    INFO(command);
    CHECK_THAT(run(command_line(command, {"--help"})).output,
               Catch::Contains("Exit status:\n  0 "));
  }
  CHECK_THAT(run({TROUPE_PROGRAM, "--help"}).output, Catch::Contains("Exit status:\n  0 "));
  CHECK_THAT(run({TROUPE_PROGRAM, "run", "--help"}).output, Catch::Contains("124 "));
  if (has_tune())
    CHECK_THAT(run(command_line("tune run", {"--help"})).output, Catch::Contains("best trial"));
  const Pages pages;
  CHECK_THAT(pages.text("run"), Catch::Contains("\\fB124\\fR\n--timeout is over."));
  CHECK_THAT(pages.text("job submit"), Catch::Contains("\\fB128+N\\fR\nwith --wait: "));
}

TEST_CASE("what reads manual pages has nothing to say against them", "[cli][man]") {
  const Pages pages;
  bool read = false;
  for (const auto& page : fs::directory_iterator(pages.folder.path())) {
    const auto file = page.path().string();
    if (is_installed("groff")) {
      read = true;
      CHECK(shell("groff -man -ww -z -Tascii " + file) == "");
    }
    if (is_installed("mandoc")) {
      read = true;
      CHECK(shell("mandoc -T lint -W error " + file) == "");
    }
    if (is_installed("man")) {
      read = true;
      CHECK_THAT(shell("MANPAGER=cat man -l " + file), Catch::Contains("SYNOPSIS"));
    }
  }
  if (!read) WARN("skipped: neither man nor groff nor mandoc is installed");
}

TEST_CASE("pages for a folder that cannot be made are refused with why", "[cli][man][refusal]") {
  const auto refused = run({TROUPE_PROGRAM, "man", "--write-to", "/proc/pages"});
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.output, Catch::Contains("/proc/pages"));
  CHECK(run({TROUPE_PROGRAM, "man", "nothing"}).exit_code == 2);
  const auto nothing = run({TROUPE_PROGRAM, "man", "job", "sumbit"});
  CHECK(nothing.exit_code == 2);
  CHECK_THAT(nothing.output, Catch::Contains("troupe job: there is no command 'sumbit', only") &&
                                 Catch::Contains("did you mean 'submit'?"));
  CHECK(run({TROUPE_PROGRAM, "man", "list", "nodes"}).exit_code == 2);
}

TEST_CASE("on a terminal a manual page is shown by man, and printed where that is not there",
          "[cli][man]") {
  const TemporaryFolder folder;
  const auto man = folder.path() + "/man";
  std::ofstream(man) << "#!/bin/sh\necho \"man was given $*\"\nexec grep -c SYNOPSIS\n";
  fs::permissions(man, fs::perms::owner_all);
  const std::vector<std::vector<std::string>> all{{"man", "run"}, {"help", "--man", "run"}};
  for (const auto& words : all) {
    std::vector<std::string> command{TROUPE_PROGRAM};
    command.insert(command.end(), words.begin(), words.end());
    Terminal shown(command, {"PATH=" + folder.path() + ":/usr/bin:/bin"});
    shown.wait_for_output("man was given -l -");
    CHECK(shown.end() == 0);
    CHECK_THAT(shown.output(), !Catch::Contains(".SH SYNOPSIS"));
  }
  fs::remove(man);
  Terminal printed({TROUPE_PROGRAM, "man", "run"}, {"PATH=" + folder.path()});
  printed.wait_for_output(".SH SYNOPSIS");
  CHECK(printed.end() == 0);
}
