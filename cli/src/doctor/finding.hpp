#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "options.hpp"

/// What `troupe doctor` looks at. Every check adds at least one finding, and throws nothing: what
/// keeps it from looking is a finding too.
namespace troupe::cli {

struct Finding {
  enum class Level : unsigned char { Ok, Note, Problem };
  Level level = Level::Ok;
  std::string what;
  std::string value;
  std::string remedy;  // of a note and a problem
};
const char* to_string(Finding::Level level);

class Findings {
 public:
  void ok(std::string what, std::string value) {
    add({Finding::Level::Ok, std::move(what), std::move(value), {}});
  }
  void note(std::string what, std::string value, std::string remedy) {
    add({Finding::Level::Note, std::move(what), std::move(value), std::move(remedy)});
  }
  void problem(std::string what, std::string value, std::string remedy) {
    add({Finding::Level::Problem, std::move(what), std::move(value), std::move(remedy)});
  }
  const std::vector<Finding>& all() const { return all_; }
  std::size_t count(Finding::Level level) const;

 private:
  void add(Finding finding) { all_.push_back(std::move(finding)); }
  std::vector<Finding> all_;
};

/// What the head said, and when it was asked and had answered, in seconds since 1970.
struct Answer {
  nlohmann::json status;
  transport::Endpoint at;
  double asked = 0;
  double answered = 0;
};

// ---- the cluster (cluster_checks.cpp)
/// `head`: as --head has it, or empty. -> its answer; none: there is no head, or it is silent.
std::optional<Answer> check_head(Findings& findings, const std::string& head,
                                 const std::string& token_file);
void check_clock(Findings& findings, const std::optional<Answer>& answer);
void check_nodes(Findings& findings, const Answer& answer);
// ---- what is configured here (place_checks.cpp)
/// Whether a head could listen there, or the one that has answered does, or another of Troupe.
void check_port(Findings& findings, std::uint16_t port, const std::optional<Answer>& answer,
                const std::string& token_file);
void check_token(Findings& findings, const std::string& token_file);
void check_state_folder(Findings& findings);
void check_spill_folder(Findings& findings);
// ---- the machine (machine_checks.cpp)
void check_limits(Findings& findings, bool moves_by_rdma);
void check_memory(Findings& findings, bool gpus);
void check_cgroup(Findings& findings);
// ---- what is installed (software_checks.cpp)
void check_versions(Findings& findings);
void check_gpus(Findings& findings);
bool has_rdma();
bool has_gpus();

}  // namespace troupe::cli
