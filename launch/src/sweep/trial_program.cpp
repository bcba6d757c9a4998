#include "sweep/trial_program.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <troupe/errors.hpp>
#include <troupe/gang_context.hpp>
#include <troupe/tune/detail/program_words.hpp>
#include <troupe/tune/detail/search.hpp>

#include "config/name.hpp"
#include "host/error_file.hpp"
#include "host/host_facts.hpp"
#include "host/programs.hpp"
#include "host/reserved_port.hpp"
#include "plan/environment.hpp"
#include "sweep/left_programs.hpp"
#include "sweep/trial_reports.hpp"
#include "words/indented.hpp"
#include "workdir/workdir.hpp"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLook{100};
/// For a key of the rendezvous that is most often not there: on rank 0, which keeps it, and on other
/// hosts.
constexpr std::chrono::milliseconds kAnswerHere{2};
constexpr std::chrono::milliseconds kLookElsewhere{400};  // nobody reads output meanwhile
constexpr std::chrono::milliseconds kAnswer{20};
constexpr std::chrono::seconds kMeet{60};
constexpr std::chrono::seconds kUntilLeftEnd{20};  // less: other hosts of the gang wait to meet
constexpr std::size_t kLastLines = 10;

/// All hosts tell each other where they are, and make the same plan of it.
GangPlan meet(GangContext& gang, const HostFacts& own, int per_host) {
  auto& rendezvous = gang.rendezvous();
  const auto key = [](int rank) { return fmt::format("troupe-tune/place/{}", rank); };
  if (gang.size() > 1) {
    rendezvous.set(key(gang.rank()), nlohmann::json{{"node_rank", own.node_rank},
                                                    {"address", own.address},
                                                    {"node", own.node},
                                                    {"gpus", own.gpus},
                                                    {"ports", own.ports},
                                                    {"interface", own.interface},
                                                    {"rendezvous_port", own.rendezvous_port}}
                                         .dump());
  }
  std::vector<HostFacts> hosts;
  for (int rank = 0; rank < gang.size(); ++rank) {
    if (rank == gang.rank()) {
      hosts.push_back(own);
      continue;
    }
    const auto told = nlohmann::json::parse(rendezvous.get(key(rank), kMeet));
    hosts.push_back({.node_rank = told.at("node_rank"),
                     .address = told.at("address"),
                     .node = told.at("node"),
                     .gpus = told.at("gpus"),
                     .ports = told.at("ports"),
                     .interface = told.at("interface"),
                     .rendezvous_port = told.at("rendezvous_port")});
  }
  return plan_gang(hosts, per_host);
}

/// The folder that was sent, on this node; none where none was.
std::unique_ptr<LiveFolder> workdir_of(const TrialProgram& program) {
  if (program.workdir.empty()) return nullptr;
  const auto archive = has_archive(program.workdir) ? std::string() : program.archive.at(0).get();
  return receive_folder(program.workdir, archive, program.run_id);
}

/// "trial 3", for people, of the folder runs/run-1/trials/3 or one within it.
std::string trial_in(const std::string& storage) {
  const auto folder = trial_folder_of(storage);
  return folder.empty() ? "a trial" : "trial " + fs::path(folder).filename().string();
}

/// The programs of this host's ranks, and what they printed.
class TrialRun {
 public:
  TrialRun(tune::Context& context, const TrialProgram& program)
      : context_(context),
        program_(program),
        workdir_(workdir_of(program)),
        reports_({program.metric, program.pattern, folder_of_events()}),
        ports_(static_cast<std::size_t>(ports_of_host(program.per_host))),
        ranks_(static_cast<std::size_t>(program.per_host)),
        is_first_attempt_(context.restore_from().empty()),
        programs_(specs()) {}

  void run() {
    while (!over_) {
      auto news = programs_.next(kLook);
      for (const auto& written : news.written) on_written(written);
      for (const auto& end : news.ends) on_end(end);
      over_ = news.over;
      read_events();
      if (!stopping_ && is_told_to_stop()) stop();
    }
    if (context_.rank() == 0) tell_to_stop();
    if (!stopping_ && failed_) throw error_of(*failed_);
    if (!stopping_ && context_.rank() == 0 && is_first_attempt_ && !reports_.has_any())
      throw std::runtime_error(reports_.why_none(own_file("output", 0, "log")));
  }

 private:
  /// Of a host's rank.
  struct Rank {
    std::ofstream output;
    std::deque<std::string> last;  // lines
  };

  int rank_of(int local) const { return context_.rank() * program_.per_host + local; }

  /// Before any host of this attempt starts its programs: all meet() later than this.
  void end_earlier_attempt() {
    const auto folder = trial_folder_of(context_.storage());
    std::error_code ignored;
    if (folder.empty() || !fs::exists(folder, ignored)) return;  // it is the first
    left_ = end_left_programs(folder, kUntilLeftEnd);
  }

  std::vector<ProgramSpec> specs() {
    end_earlier_attempt();
    auto plan =
        meet(context_.gang(), facts_of(context_.gang(), ports_, rendezvous_), program_.per_host);
    plan.run_id = "troupe-tune";
    plan.cpus = program_.cpus;
    const auto variables = with_defaults(merged(environment_for_programs(), program_.environment));
    const auto of_trial = merged(trial_variables(), threads_of_user(program_.environment));
    std::vector<ProgramSpec> specs;
    for (int local = 0; local < program_.per_host; ++local) {
      auto environment = merged(variables, rank_environment(plan, rank_of(local)));
      environment = merged(std::move(environment), of_trial);
      environment = merged(std::move(environment), variables_of(local));
      specs.push_back({filled_in(program_.command, fields(), program_.left_out),
                       merged(std::move(environment),
                              filled_in(program_.variables, fields(), program_.left_out)),
                       directory()});
    }
    if (left_ > 0)
      note(fmt::format("ended {} that an earlier attempt of this trial had left running",
                       left_ == 1 ? "a process" : fmt::format("{} processes", left_)));
    return specs;
  }

  std::vector<Field> fields() const { return with_paths(program_.fields, context_.storage()); }

  /// Empty: the trial has no folder.
  std::string own_file(const char* name, int local, const char* extension) const {
    if (context_.storage().empty()) return {};
    return context_.storage() / fmt::format("{}-rank-{}.{}", name, rank_of(local), extension);
  }
  std::string error_file(int local) const { return own_file("error", local, "json"); }

  std::string directory() const { return workdir_ ? workdir_->path() : program_.directory; }

  /// Relative to where the program runs; empty: there are none to read.
  std::string folder_of_events() const {
    if (program_.event_folder.empty() || context_.rank() != 0) return {};
    const auto folder = filled_in(program_.event_folder, fields());
    return (fs::path(directory()) / folder).string();
  }

  Variables trial_variables() {
    Variables variables{{"TROUPE_TRIAL", "1"},
                        {"TROUPE_TRIAL_CONFIG", json_of(program_.fields)},
                        {"TROUPE_TRIAL_SEED", std::to_string(context_.seed())}};
    if (!context_.storage().empty()) {
      std::error_code ignored;
      fs::create_directories(context_.storage(), ignored);
      variables.emplace_back("TROUPE_CHECKPOINT_DIR", context_.storage());
      if (write_config())
        variables.emplace_back("TROUPE_TRIAL_CONFIG_FILE", config_file_in(context_.storage()));
    }
    if (!context_.restore_from().empty())
      variables.emplace_back("TROUPE_RESTORE_FROM", context_.restore_from());
    return variables;
  }

  /// Of one rank; opens what it prints to.
  Variables variables_of(int local) {
    const auto file = error_file(local);
    if (file.empty()) return {};
    auto& rank = ranks_.at(static_cast<std::size_t>(local));
    rank.output.open(own_file("output", local, "log"), std::ios::app);
    rank.output.seekp(0, std::ios::end);
    if (rank.output.tellp() > 0) is_first_attempt_ = false;
    std::remove(file.c_str());  // of an attempt that failed
    return {{kErrorFileVariable, file}};
  }

  /// Whether `{config_file}` stands in the command or in a variable.
  bool names_config_file() const {
    const auto names = [](std::string_view text) {
      return text.find("{config_file}") != std::string_view::npos;
    };
    return std::ranges::any_of(program_.command, names) ||
           std::ranges::any_of(program_.variables, names, &Variables::value_type::second);
  }

  /// Hosts of several nodes may share the folder: each writes the whole file, and none half of it.
  /// False where it cannot be written, as on a node that lacks the folder. Throws where the program
  /// is told of the file by its sweep.
  bool write_config() const {
    const auto file = config_file_in(context_.storage());
    const auto own = fmt::format("{}.{}", file, context_.rank());
    std::ofstream out(own, std::ios::binary);
    out << json_of(program_.fields) << "\n";
    out.close();
    if (out && std::rename(own.c_str(), file.c_str()) == 0) return true;
    if (!names_config_file()) return false;
    throw std::runtime_error(fmt::format(
        "the configuration of the trial cannot be written to '{}' ({}): name another folder with "
        "`storage`",
        file, std::strerror(errno)));
  }

  void on_written(const Written& written) {
    std::string_view text = written.text;
    auto& rank = ranks_.at(static_cast<std::size_t>(written.local));
    if (rank.output.is_open()) rank.output << text << std::flush;
    while (!text.empty()) {
      const auto line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      if (program_.prints) print(written, line);
      rank.last.emplace_back(line.substr(0, 400));
      if (rank.last.size() > kLastLines) rank.last.pop_front();
      if (rank_of(written.local) == 0 && !stopping_) on_line(line);
    }
  }

  /// "[trial 3] " or, of several ranks, "[trial 3 rank 1] " before the line.
  void print(const Written& written, std::string_view line) const {
    const bool is_one = context_.size() * program_.per_host == 1;
    const auto rank = is_one ? std::string() : fmt::format(" rank {}", rank_of(written.local));
    const auto text = fmt::format("[{}{}] {}\n", trial_in(context_.storage()), rank, line);
    std::fwrite(text.data(), 1, text.size(), written.to_error ? stderr : stdout);
  }

  /// The first failure of a rank ends the host's others, and is told once they have ended.
  void on_end(const RankEnd& end) {
    const bool well = end.exit_code == 0 && end.signal == 0 && end.not_started.empty();
    if (well || end.was_told_to || failed_) return;
    failed_ = end;
    programs_.stop(grace());
  }

  void on_line(std::string_view line) {
    const auto report = reports_.in_line(line);
    if (const auto notice = reports_.take_notice(); !notice.empty()) note(notice);
    if (report) on_report(*report);
  }

  void read_events() {
    for (const auto& report : reports_.in_event_files(over_)) {
      if (!stopping_) on_report(report);
    }
  }

  /// In the log of the first rank here, and where its output is shown.
  void note(const std::string& notice) {
    const auto line = fmt::format("[troupe: {}]", notice);
    auto& log = ranks_.front().output;
    if (log.is_open()) log << line << "\n" << std::flush;
    if (program_.prints) print({.local = 0, .to_error = true, .text = {}}, line);
  }

  void on_report(const ReportLine& report) {
    std::string checkpoint;
    if (!report.checkpoint.empty()) checkpoint = checkpoint_of(report);
    const auto verdict = checkpoint.empty() ? context_.report(report.metrics)
                                            : context_.report(report.metrics, checkpoint);
    if (verdict == Verdict::Stop) stop();
  }

  /// What is not there can be restored by nobody, and would be found missing only then.
  std::string checkpoint_of(const ReportLine& report) const {
    auto folder = (context_.storage() / report.checkpoint).string();
    std::error_code failed;
    if (fs::exists(folder, failed)) return folder;
    throw std::invalid_argument(fmt::format(
        "the program reported the checkpoint '{}', and there is no folder {}: write it before the "
        "report that names it, in TROUPE_CHECKPOINT_DIR",
        config::printable(report.checkpoint), folder));
  }

  void stop() {
    stopping_ = true;
    if (context_.rank() == 0) tell_to_stop();
    programs_.stop(grace());
  }
  std::chrono::milliseconds grace() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(program_.grace_s * 1e3));
  }
  void tell_to_stop() {
    if (context_.size() == 1 || std::exchange(told_, true)) return;
    context_.gang().rendezvous().set("troupe-tune/end", stopping_ ? "stop" : "over");
  }
  /// By rank 0, which stops with its verdict, or by the search, which ends before the trial does.
  /// Asked now and then only: the answer is waited for.
  bool is_told_to_stop() {
    const auto now = Programs::Clock::now();
    if (now < ask_at_) return false;
    ask_at_ = now + (context_.rank() == 0 ? kLook : kLookElsewhere);
    return (context_.rank() != 0 && told(context_.gang(), "troupe-tune/end") == "stop") ||
           told(*this_gang(), tune::detail::kToldToEnd);
  }
  std::optional<std::string> told(GangContext& gang, const char* key) const {
    try {
      return gang.rendezvous().get(key, gang.rank() == 0 ? kAnswerHere : kAnswer);
    } catch (const TimedOut&) {
      return std::nullopt;
    }
  }

  std::runtime_error error_of(const RankEnd& end) const {
    auto words = in_words(end);
    std::ranges::replace(words, '\0', ' ');  // at which the text of an exception would end
    return std::runtime_error(words);
  }
  std::string in_words(const RankEnd& end) const {
    if (!end.not_started.empty()) return "the program could not be started: " + end.not_started;
    if (end.signal != 0) {
      return fmt::format("{}{} ({}){}", tune::detail::kEndedBySignal, end.signal,
                         ::strsignal(end.signal), last_words(end.local));
    }
    return fmt::format("{}{}{}", tune::detail::kEndedWithCode, end.exit_code,
                       last_words(end.local));
  }

  std::string last_words(int local) const {
    if (const auto traceback = traceback_of(error_file(local)); !traceback.empty())
      return "; its traceback:" + indented(traceback) + where_output_is(local);
    std::string text;
    for (const auto& line : ranks_.at(static_cast<std::size_t>(local)).last) text += indented(line);
    if (text.empty()) return ", and printed nothing";
    return "; its last lines:" + text + where_output_is(local);
  }

  std::string where_output_is(int local) const {
    const auto file = own_file("output", local, "log");
    if (file.empty()) return {};
    return fmt::format("\n  all of {}{}", tune::detail::kOutputIsIn, file);
  }

  tune::Context& context_;
  const TrialProgram& program_;
  std::unique_ptr<LiveFolder> workdir_;
  TrialReports reports_;
  std::vector<ReservedPort> ports_;
  std::unique_ptr<RendezvousServer> rendezvous_;
  std::vector<Rank> ranks_;
  std::size_t left_ = 0;  // processes of an earlier attempt
  bool stopping_ = false;
  bool over_ = false;
  bool told_ = false;             // the other hosts
  bool is_first_attempt_ = true;  // else an earlier one may have reported all that there was
  Programs::Clock::time_point ask_at_;
  std::optional<RankEnd> failed_;  // the first that did
  Programs programs_;              // last: it begins with all of the above
};

}  // namespace

void run_trial_program(tune::Context& context, const TrialProgram& program) {
  TrialRun(context, program).run();
}

}  // namespace troupe::launch
