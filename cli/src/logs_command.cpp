#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <boost/algorithm/hex.hpp>

#include <troupe/errors.hpp>

#include "admin.hpp"
#include "commands.hpp"
#include "config/name.hpp"
#include "config/nearest.hpp"
#include "job/job.hpp"
#include "output.hpp"
#include "store/types.hpp"

namespace troupe::cli {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostBytes = 1 << 20;  // of each node, of one answer
constexpr std::chrono::milliseconds kLook{500};

/// What the head has sent of some logs, and how far that is.
class Printer {
 public:
  /// `names`: of each line's process, which is one of several.
  explicit Printer(bool names) : names_(names) {}

  /// -> there is more to be asked for at once.
  bool print(const json& answer) {
    bool more = false;
    for (const auto& part : answer.at("parts")) {
      print_part(part);
      more = more || (part.at("more").get<bool>() &&
                      !part.at("text").get_ref<const std::string&>().empty());
    }
    flush_output();
    return more;
  }
  const std::map<std::string, std::uint64_t>& places() const { return places_; }

 private:
  void print_part(const json& part) {
    const auto text = boost::algorithm::unhex(part.at("text").get<std::string>());
    const auto process = std::to_string(part.at("process").get<std::uint64_t>());
    const auto next = part.at("next").get<std::uint64_t>();
    if (!places_.contains(process) && next > text.size()) {
      say(stderr,
          fmt::format("troupe: the first {} of process {} are left out: they are in {} of "
                      "node {}\n",
                      store::format_bytes(next - text.size()), process,
                      part.at("file").get<std::string>(), part.at("node_name").get<std::string>()));
    }
    places_[process] = next;
    const auto name = names_ ? fmt::format("(process={} node={}) ", process,
                                           part.at("node_name").get<std::string>())
                             : std::string();
    for (std::string_view rest = text; !rest.empty();) {
      const auto end = rest.find('\n');
      fmt::print("{}{}\n", name, rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
  }

  const bool names_;
  std::map<std::string, std::uint64_t> places_;  // by process
};

/// Whether this is the name of a job of `troupe job`, which detached actors hold.
bool is_submitted_job(const json& status, const std::string& name) {
  for (const char* rows : {"actors", "lost_actors"}) {
    for (const auto& actor : status.value(rows, json::array())) {
      const auto held = actor.value("name", "");
      if (held == launch::actor_name(name) || held == launch::keeper_name(name)) return true;
    }
  }
  return false;
}

constexpr const char* kLacking = "its lines are missing";  // of a silent node

[[noreturn]] void raise_error(const LogsArguments& arguments, std::string error,
                              const FoundHead& head, const config::FoundToken& token) {
  if (!arguments.job.empty()) {
    error = fmt::format("there is no job '{}' in this cluster: `troupe job list` has all",
                        config::printable(arguments.job));
  } else if (is_submitted_job(ask_head(head, token, {{"do", "status"}}), arguments.which)) {
    error = fmt::format("'{0}' is a job of `troupe job`: `troupe job logs {0}` has what it printed",
                        config::printable(arguments.which));
  }
  raise({.kind = Failure::Kind::Refused, .message = std::move(error)});
}

json ask_for_logs(const LogsArguments& arguments, const FoundHead& head,
                  const config::FoundToken& token, const json& request) {
  try {
    return ask_nodes(head, token, request);
  } catch (const Refused& refused) {
    raise_error(arguments, refused.what(), head, token);
  }
}

/// None of the processes has printed anything, and all of them are asked for from their beginning.
bool has_no_text(const json& answer) {
  return std::ranges::all_of(answer.at("parts"), [](const json& part) {
    return part.at("text").get_ref<const std::string&>().empty() &&
           part.at("next").get<std::uint64_t>() == 0;
  });
}

/// Behind "job 3 has printed nothing". Nobody knows what a job was that is over; ranks are gangs.
std::string where_ranks_print(const LogsArguments& arguments, const json& status, bool is_over) {
  if (arguments.what != "job" || !arguments.job.empty()) return {};
  const bool has_gang = std::ranges::any_of(status.at("gangs"), [&](const json& gang) {
    return gang.at("job").dump() == arguments.which;
  });
  if (!is_over && !has_gang) return {};
  return "; what the ranks of a `troupe run` print is on its terminal, or in the files of its "
         "--log-dir, and in no log";
}

int print_logs(const LogsArguments& arguments, FoundHead head, const config::FoundToken& token) {
  Printer printer(arguments.what == "job");
  const auto name = arguments.job.empty() ? fmt::format("{} {}", arguments.what, arguments.which)
                                          : "job " + arguments.job;
  auto what = arguments.what;
  auto which = arguments.which;
  bool was_over = false;
  for (bool first = true;; first = false) {
    const bool job_is_over = arguments.follow && arguments.job_is_over && arguments.job_is_over();
    const auto answer = ask_for_logs(arguments, head, token,
                                     {{"do", "logs"},
                                      {what, which},
                                      {"known", printer.places()},
                                      {"follows", arguments.follow},
                                      {"most", kMostBytes}});
    head.file.clear();  // it was there: that it is gone later says nothing of the file
    const bool more = printer.print(answer);
    // The name of an actor is its own while it lives; its last words come after that.
    if (what == "actor" && !answer.at("parts").empty()) {
      what = "process";
      which = answer.at("parts").at(0).at("process").dump();
    }
    const bool is_whole = say_who_is_silent(answer, kLacking);
    const int exit_code = is_whole ? 0 : 1;  // -f asks again
    if (first && answer.at("parts").empty()) {
      say(stderr, fmt::format("troupe: no node that is there has a log of {}: `troupe logs` "
                              "lists what there is\n",
                              name));
      if (!arguments.follow) return 1;
    } else if (first && has_no_text(answer) && is_whole) {
      const bool is_over =
          answer.at("over").get<bool>() || (arguments.job_is_over && arguments.job_is_over());
      const auto status = ask_head(head, token, {{"do", "status"}});
      say(stderr,
          fmt::format("troupe: {} has printed nothing{}{}\n", name, is_over ? "" : " so far",
                      where_ranks_print(arguments, status, is_over)));
    }
    if (!arguments.follow) return exit_code;
    // What a job has printed last may come to its log a moment after its end.
    const bool over = was_over || (answer.at("over").get<bool>() && !answer.at("parts").empty());
    if (over && !more) {
      if (arguments.job.empty()) say(stderr, fmt::format("troupe: {} has ended\n", name));
      return exit_code;
    }
    was_over = job_is_over;
    if (!more) std::this_thread::sleep_for(kLook);
  }
}

void list_line(const std::string& words, const std::string& about) {
  fmt::print("  troupe logs {:<20} {}\n", words, about);
}

/// By the number of a job, how many bytes it has printed.
using Printed = std::map<std::uint64_t, std::uint64_t>;

/// The jobs of which nodes have lines.
Printed jobs_in(const json& logs) {
  Printed bytes;
  for (const auto& part : logs.at("parts"))
    bytes[part.at("job").get<std::uint64_t>()] += part.at("next").get<std::uint64_t>();
  std::erase_if(bytes, [](const auto& job) { return job.second == 0; });
  return bytes;
}

Printed ended_of(Printed jobs, const json& status) {
  for (const auto& job : status.at("jobs")) jobs.erase(job.at("job").get<std::uint64_t>());
  return jobs;
}

/// A command that shows something: the last of the jobs that have ended, else of all. Empty where no
/// job has printed anything.
std::string example_of(const Printed& ended, const Printed& all) {
  const auto& jobs = ended.empty() ? all : ended;
  return jobs.empty() ? "" : fmt::format(", as in `troupe logs job {}`", jobs.rbegin()->first);
}

void list_ended(const Printed& jobs) {
  constexpr std::size_t kMost = 20;
  const auto left_out = jobs.size() - std::min(jobs.size(), kMost);
  if (left_out > 0) fmt::print("  {} jobs that ended before these are left out\n", left_out);
  for (auto job = std::next(jobs.begin(), static_cast<std::ptrdiff_t>(left_out)); job != jobs.end();
       ++job) {
    list_line(fmt::format("job {}", job->first),
              fmt::format("has ended; its processes printed {}", store::format_bytes(job->second)));
  }
}

/// What there is that has printed, each as the words that print its log.
void list(const json& status, const json& logs) {
  fmt::print("`troupe logs` prints what one of these has printed (-f: and goes on):\n");
  for (const auto& job : status.at("jobs")) {
    list_line(fmt::format("job {}", job.at("job").get<std::uint64_t>()),
              job.at("name").get<std::string>());
  }
  for (const auto& actor : status.at("actors")) {
    const auto name = actor.at("name").get<std::string>();
    const auto number = std::to_string(actor.at("actor").get<std::uint64_t>());
    list_line("actor " + (name.empty() ? number : name),
              fmt::format("{} of job {}", actor.at("type").get<std::string>(),
                          actor.at("job").get<std::uint64_t>()));
  }
  for (const auto& process : status.at("processes")) {
    if (process.at("state") == "driver") continue;  // it prints for itself
    list_line(fmt::format("process {}", process.at("process").get<std::uint64_t>()),
              fmt::format("of job {}, on node {}", process.at("job").get<std::uint64_t>(),
                          process.at("node").get<std::uint64_t>()));
  }
  const auto printed = jobs_in(logs);
  const auto ended = ended_of(printed, status);
  list_ended(ended);
  fmt::print(
      "Jobs and processes that have ended are known by their numbers{}, for as long\n"
      "as their files are there:\n",
      example_of(ended, printed));
  for (const auto& node : status.at("nodes")) {
    if (!node.contains("logs")) continue;
    fmt::print("  {}/job-JOB-process-PROCESS.log on node {} ({})\n",
               node.at("logs").get<std::string>(), node.at("node").get<std::uint64_t>(),
               node.at("name").get<std::string>());
  }
  flush_output();
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char letter) { return letter >= '0' && letter <= '9'; });
}

/// A number alone is a job's, and a word that is none of the three an actor's name. -> why the
/// arguments mean nothing; empty: they do.
std::string complete(LogsArguments& arguments) {
  const auto& what = arguments.what;
  if (what == "job" || what == "actor" || what == "process") {
    return arguments.which.empty() ? fmt::format("which {}? `troupe logs` lists them", what) : "";
  }
  if (!arguments.which.empty())
    return fmt::format("there are logs of a job, an actor and a process, and not of a '{}'{}",
                       config::printable(what),
                       config::nearest_in_words(what, {"job", "actor", "process"}));
  arguments.which = what;
  arguments.what = is_number(arguments.which) ? "job" : "actor";
  return "";
}

}  // namespace

int run_logs(const LogsArguments& given) {
  auto arguments = given;
  if (!arguments.job_number.empty()) {
    arguments.what = "job";
    arguments.which = arguments.job_number;
  }
  const bool lists = arguments.what.empty();
  if (const auto why = lists ? std::string() : complete(arguments); !why.empty()) {
    say(stderr, fmt::format("troupe: {}\n", why));
    return 2;
  }
  const auto head = find_head(arguments.head);
  const auto token = find_token(head, arguments.token_file);
  if (!lists) return print_logs(arguments, head, token);
  // The logs first: a job that is over by then is not among those that run.
  const auto logs = ask_nodes(head, token, {{"do", "logs"}, {"all", true}});
  list(ask_head(head, token, {{"do", "status"}}), logs);
  return say_who_is_silent(logs, kLacking) ? 0 : 1;
}

}  // namespace troupe::cli
