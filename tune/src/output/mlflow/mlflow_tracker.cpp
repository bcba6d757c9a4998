#include "output/mlflow/mlflow_tracker.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "output/folder/earlier_run.hpp"
#include "run/checkpoints/checkpoint_names.hpp"
#include "text/format.hpp"

namespace troupe::tune {
namespace {

constexpr std::size_t kMostRequests = 4;
constexpr std::chrono::milliseconds kFirstPause{500};
constexpr std::chrono::seconds kMostPause{30};
constexpr std::chrono::seconds kMostPauseAtEnd{1};
constexpr std::chrono::seconds kLastWords{2};
constexpr std::size_t kMostNames = 300;           // characters of a notice
constexpr std::chrono::seconds kSilenceAtEnd{2};  // until people are told what is waited for

std::string what_is(Outbox::Request::Kind kind) {
  using Kind = Outbox::Request::Kind;
  if (kind == Kind::CreateRun) return "a run";
  if (kind == Kind::Log) return "metrics, parameters or tags";
  if (kind == Kind::Update) return "a run's status";
  return "the experiment";
}

std::string status_of(const Trial& trial) {
  if (trial.status == Status::Errored) return "FAILED";
  return trial.over() && !trial.ended_with_run ? "FINISHED" : "KILLED";
}

Texts texts_of(const Configuration& configuration) {
  Texts texts;
  for (const auto& [name, value] : configuration) texts.emplace_back(name, to_string(value));
  return texts;
}

/// It lies with the server's moment, not with what is asked, where or by whom.
bool may_pass(unsigned status) {
  return status == 0 || status == 408 || status == 425 || status == 429 || status >= 500;
}

/// It lies with who asks: the server, or a proxy before it (407), wants to know.
bool is_of_asker(unsigned status) { return status == 401 || status == 403 || status == 407; }

/// What is refused there can be taken with another URL, or of somebody else.
bool is_misdirected(unsigned status, const std::string& code) {
  const bool is_of_run = code == "RESOURCE_DOES_NOT_EXIST";
  return (status >= 300 && status < 400) || is_of_asker(status) || (status == 404 && !is_of_run);
}

/// So a proxy answers for a moment whose server is just starting, and so do other servers.
bool may_be_starting_up(unsigned status, const std::string& code) {
  return is_misdirected(status, code) && !is_of_asker(status);
}

std::string text_of(const std::set<EntityName>& names) {
  std::string text;
  for (const auto& [kind, name] : names) {
    const auto* what = kind == EntityName::Kind::Metric  ? "metric"
                       : kind == EntityName::Kind::Param ? "parameter"
                                                         : "tag";
    text += fmt::format("{}{} '{}'", text.empty() ? "" : ", ", what, name);
  }
  return clipped(text, kMostNames);
}

std::string sentence(const std::string& text) { return text.ends_with('?') ? text : text + "."; }

/// Empty where there is none: a gateway's answer may have anything.
std::string text_in(const Json& content, const char* key) {
  const auto at = content.find(key);
  return at != content.end() && at->is_string() ? at->get<std::string>() : std::string();
}

/// "403 PERMISSION_DENIED: what the server says".
std::string text_of(const HttpAnswer& http, const Json& content) {
  if (http.status == 0) return http.error;
  const auto code = text_in(content, "error_code");
  const auto message = clipped(text_in(content, "message"), 300);
  auto text = fmt::format("it answers {}", http.status);
  if (!code.empty()) text += fmt::format(" {}: {}", code, message);
  if (http.status == 401 || http.status == 403) {
    text +=
        " (MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, say "
        "who asks)";
  } else if (http.status == 407) {
    text +=
        " (the proxy wants to know who asks: http_proxy or https_proxy says so, as "
        "http://USER:PASSWORD@HOST:PORT)";
  } else if (!http.location.empty()) {
    text += fmt::format(" and points to {}: give the URL of the server itself",
                        clipped(http.location, 300));
  } else if (is_misdirected(http.status, code)) {
    text += ": is there an MLflow server at this URL?";
  }
  return text;
}

/// An empty object where it is none.
Json content_of(const HttpAnswer& http) {
  auto content = Json::parse(http.body, nullptr, false);
  return content.is_object() ? content : Json::object();
}

}  // namespace

MlflowTracker::MlflowTracker(const Mlflow& options, Run run)
    : options_{options},
      run_{std::move(run)},
      name_{"MLflow at " + options.url},
      outbox_{options.experiment, options.most_waiting},
      most_pause_{kMostPause},
      http_{ServerUrl::parse(options.url), MlflowAccess::from_environment()} {
  if (!run_.folder.empty())
    delivered_ = DeliveredFile(run_.folder, options.url, options.experiment);
  for (const auto& line : delivered_.lines()) {
    try {
      outbox_.load(line);
    } catch (const Json::exception&) {
      note(fmt::format("a line of {}/mlflow.jsonl is left out: {}", run_.folder.string(),
                       dump(line)));
    }
  }
}

MlflowTracker::~MlflowTracker() {
  if (is_concluded_ || !is_begun_) return;
  try {
    outbox_.set_status({}, "FAILED", std::chrono::system_clock::now());
    deliver_until(Clock::now() + kLastWords);
  } catch (const std::exception&) {
    // What ended the search counts.
  }
}

// ---- what happens -------------------------------------------------------------------------------

void MlflowTracker::see(const Event& event, const Trial& trial, WallTime wall) {
  if (!std::exchange(is_begun_, true)) outbox_.begin_run({}, run_.name, wall, run_.params, {});
  if (event.kind == Event::Kind::Launched) {
    outbox_.begin_run(trial.id, fmt::format("trial {}", trial.id), wall, texts_of(trial.config),
                      {{"troupe.trial", std::to_string(trial.id)}});
  } else if (event.kind == Event::Kind::Reported) {
    ++reports_;
    outbox_.report(trial.id, ++reports_of_[trial.id], event.t, wall, event.metrics);
  }
  if (trial.over()) end(trial, wall);
}

void MlflowTracker::end(const Trial& trial, WallTime wall) {
  if (!ended_.insert(trial.id).second) return;
  Texts tags{{"troupe.status", std::string(ending_of(trial))}};
  if (!trial.reason.empty()) tags.emplace_back("troupe.reason", trial.reason);
  if (!trial.error.empty()) tags.emplace_back("troupe.error", trial.error);
  outbox_.set_status(trial.id, status_of(trial), wall, std::move(tags));
}

void MlflowTracker::end_search(const Experiment& experiment, WallTime wall) {
  for (const auto& trial : experiment.trials()) end(trial, wall);
  const auto* best = experiment.best();
  Texts tags;
  if (best) {
    outbox_.report({}, reports_, best->best_t, wall,
                   {{run_.objective.metric.c_str(), *best->best}});
    tags.emplace_back("troupe.best_trial", std::to_string(best->id));
    if (!best->best_checkpoint.empty()) {
      tags.emplace_back("troupe.best_checkpoint",
                        detail::CheckpointNames(run_.folder).path_of(best->best_checkpoint));
    }
    best_ = best->id;
    if (const auto& id = outbox_.id_of(best->id); !id.empty())
      tags.emplace_back("troupe.best_run_id", id);
  }
  const bool is_cut_short = experiment.closed() && !experiment.ended_as_asked();
  if (is_cut_short) tags.emplace_back("troupe.ended_early", experiment.why_closed());
  const bool has_failed = !best && std::ranges::any_of(experiment.trials(), [](const auto& trial) {
    return trial.status == Status::Errored;
  });
  outbox_.set_status({},
                     is_cut_short ? "KILLED"
                     : has_failed ? "FAILED"
                                  : "FINISHED",
                     wall, std::move(tags));
}

Tracker::Notices MlflowTracker::tick() {
  move_on();
  delivered_.flush();
  if (outbox_.dropped() > 0 && !std::exchange(has_dropped_, true))
    note(fmt::format("more than {} values of metrics wait; the oldest are dropped",
                     options_.most_waiting));
  return std::exchange(notices_, {});
}

Tracker::Notices MlflowTracker::conclude(const Experiment& experiment, WallTime wall,
                                         const Say& say) {
  is_concluded_ = true;
  if (!is_begun_) return {};
  end_search(experiment, wall);
  const auto end = Clock::now() + options_.deadline;
  deliver_until(std::min<Clock::time_point>(end, Clock::now() + kSilenceAtEnd));
  if (!outbox_.is_empty() && Clock::now() < end) {
    if (say)
      say(
          fmt::format("{} has not taken all in {}: the run waits for it for {} in all at most (the "
                      "deadline of mlflow)",
                      name_, short_time(kSilenceAtEnd), short_time(options_.deadline)));
    deliver_until(end);
  }
  if (outbox_.is_empty() && !is_misdirected_) delivered_.append(DeliveredFile::all());
  sum_up();
  return tick();
}

/// Empty: nothing of the run is kept.
std::string MlflowTracker::how_to_send_later() const {
  if (run_.folder.empty()) return {};
  const auto command = resume_command(run_.sweep_file, run_.storage, run_.folder);
  return command.empty() ? fmt::format("tune::resume on {} sends it", run_.folder.string())
                         : fmt::format("`{}` sends it", command);
}

/// What did not get there.
void MlflowTracker::sum_up() {
  auto later = how_to_send_later();
  if (!later.empty()) later.insert(0, ". ");
  if (!outbox_.is_empty())
    note(fmt::format("within {} it has not taken all: {} of metrics wait, and {} are behind{}",
                     short_time(options_.deadline), counted(outbox_.waiting(), "value"),
                     counted(outbox_.runs_behind(), "run"), later));
  if (outbox_.dropped() > 0)
    note(fmt::format("{} of metrics did not get there, since {} waited already",
                     counted(outbox_.dropped(), "value"), options_.most_waiting));
  if (outbox_.refused() > 0)
    note(fmt::format("{} of metrics were refused{}", counted(outbox_.refused(), "value"),
                     is_misdirected_ && outbox_.has_given_up() && !later.empty()
                         ? later + ", with the right URL and credentials"
                         : ""));
  if (const auto& names = outbox_.refused_names(); !names.empty())
    note(fmt::format("it takes nothing of these names: {}", text_of(names)));
  if (!delivered_.flush())
    note("what it has taken could not be written down; a run that goes on may send it again");
}

// ---- how it gets there --------------------------------------------------------------------------

/// Takes requests as far as they go without waiting, and begins new ones. -> there were some to
/// begin.
bool MlflowTracker::move_on() {
  http_.advance();
  if (Clock::now() < retry_at_) return false;
  bool has_begun = false;
  // After trouble one alone shows whether the server is back.
  const std::size_t most = pause_.count() > 0 ? 1 : kMostRequests;
  while (http_.in_flight() < most) {
    auto request = outbox_.next();
    if (!request) break;
    try {
      http_.send(
          request->path, request->body, kRequestTime,
          [this, request = *request](const HttpAnswer& answer) { on_answer(request, answer); });
    } catch (const std::exception& error) {  // no memory: no reason to end the search
      on_answer(*std::move(request), {.error = error.what()});
      return false;
    }
    has_begun = true;
  }
  return has_begun;
}

void MlflowTracker::deliver_until(Clock::time_point end) {
  most_pause_ = kMostPauseAtEnd;
  retry_at_ = std::min(retry_at_, Clock::now());
  while (Clock::now() < end) {
    if (move_on()) continue;  // an answer may have come
    if (outbox_.is_empty()) break;
    const auto now = Clock::now();
    const auto until = now < retry_at_ ? std::min(retry_at_, end) : end;
    http_.wait(std::chrono::ceil<std::chrono::milliseconds>(std::max(until - now, {})));
  }
  most_pause_ = kMostPause;
}

void MlflowTracker::on_answer(Outbox::Request request, const HttpAnswer& http) {
  using Answer = Outbox::Answer;
  using Kind = Outbox::Request::Kind;
  const auto kind = request.kind;
  Answer answer{.content = content_of(http)};
  const bool is_taken = http.status >= 200 && http.status < 300;
  has_taken_ = has_taken_ || is_taken;
  if (is_taken) answer.kind = Answer::Kind::Taken;
  const auto code = text_in(answer.content, "error_code");
  if (!is_taken && !may_pass(http.status) && !may_be_starting(request, http.status, code)) {
    answer.kind = Answer::Kind::Refused;
    answer.code = code;
    answer.is_of_content = !is_misdirected(http.status, code);
  }
  const bool is_step = answer.code == "RESOURCE_DOES_NOT_EXIST" && kind == Kind::FindExperiment;
  const bool is_race = answer.code == "RESOURCE_ALREADY_EXISTS" && kind == Kind::CreateExperiment;
  const bool is_of_best = kind == Kind::CreateRun && request.run && request.run == best_;
  const auto line = outbox_.answered(std::move(request), answer);
  if (is_of_best && !line.is_null())
    outbox_.add_tags({}, {{"troupe.best_run_id", outbox_.id_of(best_)}});
  if (!line.is_null()) delivered_.append(line);
  if (answer.kind == Answer::Kind::None || is_race)
    return on_trouble(text_of(http, answer.content));
  if (is_taken && line.is_null()) return on_trouble("its answer is not one of MLflow's");
  if (answer.kind == Answer::Kind::Refused && !is_step)
    on_refusal(kind, http.status, answer.code, text_of(http, answer.content));
  if (std::exchange(pause_, {}).count() > 0 && !outbox_.has_given_up()) note("it answers again");
  retry_at_ = {};
}

/// Only where nothing was taken yet, or all is given up once this is refused; for the patience that
/// the options have, from the first such answer on.
bool MlflowTracker::may_be_starting(const Outbox::Request& request, unsigned status,
                                    const std::string& code) {
  using Kind = Outbox::Request::Kind;
  const bool ends_all = !request.run && request.kind != Kind::Log && request.kind != Kind::Update;
  if (!may_be_starting_up(status, code) || (has_taken_ && !ends_all)) return false;
  const auto now = Clock::now();
  if (!misdirected_since_) misdirected_since_ = now;
  return now - *misdirected_since_ < options_.patience;
}

/// Told once for each kind of request.
void MlflowTracker::on_refusal(Outbox::Request::Kind kind, unsigned status, const std::string& code,
                               const std::string& why) {
  is_misdirected_ = is_misdirected_ || is_misdirected(status, code);
  if (!refused_.insert(kind).second) return;
  note(fmt::format("it refuses {}: {}", what_is(kind),
                   outbox_.has_given_up()
                       ? sentence(why) + " The search goes on, and sends it nothing more"
                       : why));
}

void MlflowTracker::on_trouble(const std::string& why) {
  if (pause_.count() == 0)
    note(sentence(why) +
         " The search goes on, and what is not sent follows when the server takes it");
  pause_ = std::clamp<Clock::duration>(pause_ * 2, kFirstPause, most_pause_);
  retry_at_ = Clock::now() + pause_;
}

void MlflowTracker::note(const std::string& text) { notices_.push_back(name_ + ": " + text); }

}  // namespace troupe::tune
