#include <algorithm>

#include <fmt/format.h>

#include "commands.hpp"
#include "config/json.hpp"
#include "doctor/finding.hpp"
#include "output.hpp"

namespace troupe::cli {
namespace {

using Level = Finding::Level;

std::string finding_text(const Finding& finding) {
  auto text = fmt::format("{:<7}  {}: {}\n", to_string(finding.level), finding.what, finding.value);
  if (!finding.remedy.empty()) text += fmt::format("         -> {}\n", finding.remedy);
  return text;
}

std::string findings_json(const Findings& findings) {
  auto rows = nlohmann::json::array();
  for (const auto& finding : findings.all()) {
    rows.push_back({{"level", to_string(finding.level)},
                    {"what", finding.what},
                    {"value", finding.value},
                    {"remedy", finding.remedy}});
  }
  return config::to_text({{"problems", findings.count(Level::Problem)},
                          {"notes", findings.count(Level::Note)},
                          {"findings", std::move(rows)}},
                         2) +
         '\n';
}

std::string counted(std::size_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

}  // namespace

const char* to_string(Level level) {
  switch (level) {
    case Level::Ok:
      return "ok";
    case Level::Note:
      return "note";
    case Level::Problem:
      return "problem";
  }
  return "unknown";
}

std::size_t Findings::count(Level level) const {
  return static_cast<std::size_t>(std::ranges::count(all_, level, &Finding::level));
}

int run_doctor(const DoctorArguments& arguments) {
  Findings findings;
  check_versions(findings);
  check_limits(findings, has_rdma());
  check_memory(findings, has_gpus());
  check_cgroup(findings);
  check_gpus(findings);
  check_state_folder(findings);
  check_spill_folder(findings);
  check_token(findings, arguments.token_file);
  const auto answer = check_head(findings, arguments.head, arguments.token_file);
  check_port(findings, kDefaultPort, answer, arguments.token_file);
  check_clock(findings, answer);
  if (answer) check_nodes(findings, *answer);
  const auto problems = findings.count(Level::Problem);
  if (arguments.as_json) {
    say_all(findings_json(findings));
  } else {
    std::string text;
    for (const auto& finding : findings.all()) text += finding_text(finding);
    text += fmt::format("{}, {}\n", counted(problems, "problem"),
                        counted(findings.count(Level::Note), "note"));
    say_all(text);
  }
  return problems == 0 ? 0 : 1;
}

}  // namespace troupe::cli
