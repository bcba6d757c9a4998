#include "values/cpu_loans.hpp"
#include "id_format.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace troupe::scheduler {

Amount CpuLoans::lend(Process& process) {
  auto& loan = process.loan;
  assert(loan.wait_ == Wait::Runs);
  loan.wait_ = Wait::Blocked;
  loan.lent_ = process.held.resources.cpu();
  return loan.lent_;
}

void CpuLoans::block_in_debt(Process& process) {
  assert(process.loan.wait_ == Wait::Owing);
  std::erase(process.node->cpu_lines.owing_, &process);
  process.loan.wait_ = Wait::Blocked;
}

bool CpuLoans::unblock(Process& process, TimePoint now) {
  auto& loan = process.loan;
  assert(loan.wait_ != Wait::Resuming);
  if (loan.wait_ != Wait::Blocked) return true;
  if (loan.lent_.is_zero()) {
    loan.wait_ = Wait::Runs;
    return true;
  }
  loan.wait_ = Wait::Resuming;
  resuming_.emplace(std::pair{now, process.id}, &process);
  process.node->cpu_lines.resuming_.push_back({&process, now});
  return false;
}

std::vector<Process*> CpuLoans::run_in_debt(TimePoint resuming_since) {
  std::vector<Process*> indebted;
  while (!resuming_.empty() && resuming_.begin()->first.first <= resuming_since) {
    auto& process = *resuming_.begin()->second;
    leave_resuming(process);
    process.node->cpu_lines.owing_.push_back(&process);
    process.loan.wait_ = Wait::Owing;
    indebted.push_back(&process);
  }
  return indebted;
}

bool CpuLoans::end_loan(Process& process) {
  leave_resuming(process);
  std::erase(process.node->cpu_lines.owing_, &process);
  process.loan = {};
  return true;
}

void CpuLoans::leave_resuming(Process& process) {
  auto& line = process.node->cpu_lines.resuming_;
  const auto at = std::ranges::find(line, &process, &CpuLines::Resuming::process);
  if (at == line.end()) return;
  resuming_.erase({at->since, process.id});
  line.erase(at);
}

std::optional<std::string> CpuLoans::broken(const Process& process, const Node& node) {
  const auto& loan = process.loan;
  const auto& lines = node.cpu_lines;
  const auto& resuming = lines.resuming_;
  const auto resumes = std::ranges::count(resuming, &process, &CpuLines::Resuming::process);
  const auto owes = std::ranges::count(lines.owing_, &process);
  if (resumes != (loan.wait_ == Wait::Resuming) || owes != (loan.wait_ == Wait::Owing))
    return fmt::format("process {}: it waits for its CPU in no line, or in the wrong one",
                       process.id);
  if (loan.wait_ == Wait::Runs && !loan.lent_.is_zero())
    return fmt::format("process {}: it runs and has lent its CPU", process.id);
  const bool in_line = loan.wait_ == Wait::Resuming || loan.wait_ == Wait::Owing;
  if (in_line && loan.lent_.is_zero())
    return fmt::format("process {}: it waits for a CPU that it has not lent", process.id);
  return std::nullopt;
}

std::optional<std::string> CpuLoans::broken_invariant(const std::vector<const Node*>& nodes) const {
  std::size_t resuming = 0;
  for (const auto* node : nodes) {
    for (const auto& process : node->processes) {
      if (auto wrong = broken(process, *node)) return wrong;
    }
    const auto is_strange = [node](const Process* process) { return process->node != node; };
    const auto& lines = node->cpu_lines;
    if (std::ranges::any_of(lines.resuming_, is_strange, &CpuLines::Resuming::process) ||
        std::ranges::any_of(lines.owing_, is_strange))
      return fmt::format("node {}: a process of another node waits for a CPU there", node->id);
    for (const auto& [process, since] : lines.resuming_) {
      if (!resuming_.contains({since, process->id}))
        return fmt::format("process {}: it resumes, and since when is not known", process->id);
    }
    resuming += node->cpu_lines.resuming_.size();
  }
  if (resuming != resuming_.size()) return "processes that resume are miscounted";
  return std::nullopt;
}

}  // namespace troupe::scheduler
