#include "text/cause.hpp"

#include <algorithm>
#include <string_view>

#include <troupe/tune/detail/program_words.hpp>

namespace troupe::tune {
namespace {

using namespace std::string_view_literals;

/// A machine ends a process that has no more memory so, too: it tells nothing of other trials. A shell
/// ends with the second one if a program of its own was killed so.
bool is_kill(std::string_view how) { return how == "9 (Killed)" || how == "137"; }

/// "3" of "3; its last lines"; "11 (Segmentation fault)" of "11 (Segmentation fault); its log".
std::string_view number_and_name(std::string_view text) {
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (!text.substr(digits).starts_with(" (")) return text.substr(0, digits);
  return text.substr(0, std::min(text.find(')', digits), text.size() - 1) + 1);
}

/// What follows "process 7 (pid 4711) ", also behind "rank 0 is gone: " or "rank 0 of a gang of actors
/// f: ".
std::string_view after_process(std::string_view error) {
  if (error.starts_with("rank ")) {
    constexpr auto kBegin = ": process "sv;
    error.remove_prefix(std::min(error.find(kBegin), error.size() - 2) + 2);
  }
  if (!error.starts_with("process ")) return {};
  constexpr auto kAfterPid = ") "sv;
  const auto pid = error.find(" (pid ");
  const auto end = pid == std::string_view::npos ? pid : error.find(kAfterPid, pid);
  return end == std::string_view::npos ? std::string_view() : error.substr(end + kAfterPid.size());
}

}  // namespace

std::string end_of_process(const std::string& error) {
  const std::string_view text = error;
  if (text.starts_with(detail::kEndedUnreported))
    return error.substr(0, std::min(text.find("', "), text.size() - 1) + 1);
  const auto process = after_process(text);
  for (const auto words : {detail::kEndedWithCode, detail::kEndedBySignal,
                           "was killed by signal "sv, "ended with exit code "sv}) {
    const auto end = text.starts_with(words) ? text : process;
    if (!end.starts_with(words)) continue;
    const auto how = number_and_name(end.substr(words.size()));
    if (is_kill(how)) return {};
    return std::string(words) + std::string(how);
  }
  return {};
}

std::string cause_of(const std::string& error) {
  const auto place = error.rfind(" (");
  const bool has_place = place != std::string::npos && error.ends_with(')') &&
                         error.find("pid ", place) != std::string::npos;
  auto cause = error.substr(0, has_place ? place : std::string::npos);
  if (!after_process(cause).empty())
    if (auto end = end_of_process(cause); !end.empty()) return end;
  const auto log = cause.rfind(detail::kOutputIsIn);
  if (log != std::string::npos && cause.starts_with(detail::kOfProgram)) cause.resize(log);
  return cause;
}

std::string cause_without_report(const std::string& error) {
  auto end = end_of_process(error);
  return end.empty() ? cause_of(error) : end;
}

}  // namespace troupe::tune
