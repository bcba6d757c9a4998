#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <boost/algorithm/hex.hpp>

#include "admin.hpp"
#include "commands.hpp"
#include "os/files/file_content.hpp"
#include "output.hpp"
#include "timeline/chrome_trace.hpp"

namespace troupe::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using runtime::CallTrace;
using runtime::NodeId;
using runtime::ProcessId;

constexpr std::uint64_t kMostBytes = 4 << 20;  // of one answer

/// What the head is asked, again and again.
class Questions {
 public:
  /// `timeline`: which lacks the calls of a node that does not answer.
  Questions(const TimelineArguments& arguments, Timeline& timeline)
      : timeline_(timeline),
        head_(find_head(arguments.head)),
        token_(find_token(head_, arguments.token_file)),
        job_(arguments.job) {}

  json status() const { return ask_head(head_, token_, {{"do", "status"}}); }

  /// Which nodes there are, with their clocks: nothing is read, so that the answer comes at once.
  json nodes() const { return ask(json::array(), 0, 0); }

  json traces(NodeId node, std::uint64_t after) const {
    return ask(json::array({node.value()}), after, kMostBytes);
  }

 private:
  /// `nodes`: none: all.
  json ask(const json& nodes, std::uint64_t after, std::uint64_t most) const {
    auto answer = ask_nodes(
        head_, token_,
        {{"do", "timeline"}, {"job", job_}, {"nodes", nodes}, {"after", after}, {"most", most}});
    if (!say_who_is_silent(answer, "its calls are missing")) timeline_.is_incomplete = true;
    return answer;
  }

  Timeline& timeline_;
  FoundHead head_;
  config::FoundToken token_;
  std::uint64_t job_;
};

/// The first parts have their content; one that has none may have ended without any. -> the process
/// to go on behind; 0: there are no more.
std::uint64_t take(const json& parts, std::vector<CallTrace>& into) {
  std::uint64_t last = 0;
  for (const auto& part : parts) {
    const auto text = part.at("text").get<std::string>();
    if (text.empty() && last != 0) continue;
    last = part.at("process").get<std::uint64_t>();
    auto trace = runtime::decode_call_trace(boost::algorithm::unhex(text));
    if (trace) into.push_back(std::move(*trace));
  }
  return last;
}

void read_node(const Questions& questions, NodeId node, Timeline& timeline) {
  for (std::uint64_t after = 0;;) {
    const auto answer = questions.traces(node, after);
    after = take(answer.at("parts"), timeline.traces);
    if (after == 0) return;
  }
}

std::map<ProcessId, std::string> drivers_in(const json& status) {
  std::map<std::uint64_t, std::string> jobs;
  for (const auto& job : status.at("jobs"))
    jobs[job.at("job").get<std::uint64_t>()] = job.at("name").get<std::string>();
  std::map<ProcessId, std::string> drivers;
  for (const auto& process : status.at("processes")) {
    if (process.at("state") != "driver") continue;
    const auto job = process.at("job").get<std::uint64_t>();
    drivers[ProcessId(process.at("process").get<std::uint64_t>())] = fmt::format(
        "driver of job {}: {} (pid {})", job, jobs[job], process.at("pid").get<std::uint64_t>());
  }
  return drivers;
}

/// 0 is every job.
bool runs_in(const json& status, std::uint64_t job) {
  return job == 0 || std::ranges::any_of(status.at("jobs"), [job](const json& one) {
           return one.at("job").get<std::uint64_t>() == job;
         });
}

[[noreturn]] void raise_no_job(std::uint64_t job) {
  throw std::runtime_error(
      fmt::format("there is no job {} here, nor a trace of one: `troupe list jobs` has those that "
                  "run, and `troupe timeline` without --job draws what is known of all",
                  job));
}

/// -> the time now, by the head's clock.
std::uint64_t read_cluster(const TimelineArguments& arguments, Timeline& timeline) {
  const Questions questions(arguments, timeline);
  const auto status = questions.status();
  timeline.drivers = drivers_in(status);
  std::map<NodeId, NodeClock> clocks;
  const auto answer = questions.nodes();
  for (const auto& clock : answer.at("clocks")) {
    const NodeId node(clock.at("node").get<std::uint32_t>());
    clocks[node] = {.ahead_ns = clock.at("ahead_ns").get<std::int64_t>(),
                    .error_ns = clock.at("error_ns").get<std::int64_t>()};
  }
  for (const auto& [node, clock] : clocks) read_node(questions, node, timeline);
  if (timeline.traces.empty() && !runs_in(status, arguments.job)) raise_no_job(arguments.job);
  align_clocks(timeline, clocks);
  return answer.at("now_unix_ns").get<std::uint64_t>();
}

/// -> the time at which the last process of them ended.
std::uint64_t read_folder(const TimelineArguments& arguments, Timeline& timeline) {
  std::uint64_t last = 0;
  for (const auto& entry : fs::recursive_directory_iterator(arguments.folder)) {
    if (entry.path().extension() != ".trace" || !entry.is_regular_file()) continue;
    const auto [bytes, why_not] = os::read_file(entry.path());
    if (!why_not.empty()) {
      say(stderr, fmt::format("troupe: {} cannot be read: {}\n", entry.path().string(), why_not));
      continue;
    }
    auto trace = runtime::decode_call_trace(bytes);
    if (!trace) {
      say(stderr, fmt::format("troupe: {} is no trace of this version\n", entry.path().string()));
      continue;
    }
    if (arguments.job != 0 && trace->job.value() != arguments.job) continue;
    last = std::max(last, trace->read);
    timeline.traces.push_back(std::move(*trace));
  }
  if (timeline.traces.empty() && arguments.job != 0) raise_no_job(arguments.job);
  return last;
}

void write_file(const std::string& path, const Timeline& timeline) {
  if (path == "-") {
    write_chrome_trace(std::cout, timeline);
    return flush_output();
  }
  std::ostringstream out;
  out.exceptions(std::ios::badbit);  // or a text without room in memory would be cut off
  write_chrome_trace(out, timeline);
  replace_file(path, std::move(out).str());
}

std::string plural(std::size_t count, const char* what, const char* ending = "s") {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : ending);
}

/// Of a timeline without any call.
std::string why_empty(const TimelineArguments& arguments) {
  const auto where =
      arguments.folder.empty()
          ? std::string("no worker process of this cluster has run")
          : fmt::format("{} has traces of no worker process that has run", arguments.folder);
  auto text = fmt::format("nothing is recorded: {} a call", where);
  if (arguments.job != 0) text += fmt::format(" for job {}", arguments.job);
  if (arguments.last > 0) {
    text += fmt::format(" in the last {:g} s (without --last all is drawn that there is)",
                        arguments.last);
  } else if (arguments.folder.empty()) {
    text += " yet";
  }
  return text;
}

}  // namespace

int run_timeline(const TimelineArguments& arguments) {
  if (arguments.output.empty()) {
    say(stderr,
        "troupe timeline: OUT is required: the file to write, or - for standard output\n"
        "`troupe timeline --help` has more.\n");
    return 2;
  }
  Timeline timeline;
  const auto now = arguments.folder.empty() ? read_cluster(arguments, timeline)
                                            : read_folder(arguments, timeline);
  if (arguments.last > 0) {
    const auto span = static_cast<std::uint64_t>(std::min(arguments.last, 1e9) * 1e9);
    keep_since(timeline, now - std::min(now, span));
  }
  write_file(arguments.output, timeline);
  const auto size = size_of(timeline);
  if (size.calls == 0) {
    say(stderr, fmt::format("troupe: 0 calls of {}: {}; {} has none\n",
                            plural(size.processes, "process", "es"), why_empty(arguments),
                            arguments.output == "-" ? "the trace" : arguments.output));
    return timeline.is_incomplete ? 1 : 0;
  }
  say(stderr,
      fmt::format(
          "troupe: {} of {} on {} in {:.3g} s{}{}\n", plural(size.calls, "call"),
          plural(size.processes, "process", "es"), plural(size.nodes, "node"), size.seconds,
          size.forgotten == 0 ? "" : fmt::format(" ({} before them are forgotten)", size.forgotten),
          arguments.output == "-" ? ""
                                  : ": open " + arguments.output + " in https://ui.perfetto.dev"));
  return timeline.is_incomplete ? 1 : 0;
}

}  // namespace troupe::cli
