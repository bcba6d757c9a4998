#include "output/mlflow/outbox.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace troupe::tune {
namespace {

using Kind = Outbox::Request::Kind;

std::int64_t milliseconds(WallTime wall) {
  return std::chrono::floor<std::chrono::milliseconds>(wall.time_since_epoch()).count();
}

Json key_of(RunKey run) { return run ? Json(*run) : Json(); }
RunKey key_from(const Json& json) {
  return json.is_null() ? RunKey() : RunKey(json.get<TrialId>());
}

Texts taken_from(Texts& texts, std::size_t most) {
  const auto size = std::min(most, texts.size());
  const auto end = texts.begin() + static_cast<std::ptrdiff_t>(size);
  Texts part(std::make_move_iterator(texts.begin()), std::make_move_iterator(end));
  texts.erase(texts.begin(), end);
  return part;
}

}  // namespace

Outbox::Outbox(std::string experiment, std::size_t most_waiting)
    : experiment_{std::move(experiment)}, most_waiting_{most_waiting} {}

bool Outbox::Run::has_work() const {
  if (is_given_up || is_asked || !is_begun) return false;
  return id.empty() || !params.empty() || !tags.empty() || !reports.empty() || refused ||
         status != told;
}

void Outbox::load(const Json& line) {
  if (line.contains("experiment_id")) {
    experiment_id_ = line.at("experiment_id").get<std::string>();
    return;
  }
  auto& run = runs_[key_from(line.at("run"))];
  if (line.contains("id")) run.id = line.at("id").get<std::string>();
  if (line.contains("reports")) run.done = line.at("reports").get<std::uint64_t>();
  if (line.contains("status")) run.told = line.at("status").get<std::string>();
  if (line.contains("described")) run.is_described = line.at("described").get<bool>();
}

// ---- what is to be told -------------------------------------------------------------------------

void Outbox::begin_run(RunKey key, const std::string& name, WallTime start, Texts params,
                       Texts tags) {
  auto& run = runs_[key];
  if (std::exchange(run.is_begun, true)) return;
  run.name = name;
  run.start_ms = milliseconds(start);
  if (!run.is_described) {
    run.params = std::move(params);
    run.tags = std::move(tags);
    leave_out_refused(run.params, EntityName::Kind::Param);
    leave_out_refused(run.tags, EntityName::Kind::Tag);
  }
  mark(key);
}

void Outbox::report(RunKey key, std::uint64_t number, std::int64_t step, WallTime wall,
                    const Metrics& metrics) {
  auto& run = runs_[key];
  if (number <= run.done) return;
  if (run.is_given_up || has_given_up_) {
    refused_ += metrics.size();
    return;
  }
  Report report{number, step, milliseconds(wall), metrics, ++reports_};
  refused_ += leave_out_refused(report.metrics);
  waiting_ += report.metrics.size();
  run.reports.push_back(std::move(report));
  ages_.emplace_hint(ages_.end(), reports_, key);
  while (waiting_ > most_waiting_ && !ages_.empty()) drop_oldest();
  mark(key);
}

void Outbox::drop_oldest() {
  auto& run = runs_.at(ages_.begin()->second);
  assert(run.reports.front().age == ages_.begin()->first);
  const auto size = run.reports.front().metrics.size();
  waiting_ -= size;
  dropped_ += size;
  run.done = run.reports.front().number;
  run.reports.pop_front();
  ages_.erase(ages_.begin());
}

void Outbox::set_status(RunKey key, const std::string& status, WallTime wall, Texts tags) {
  auto& run = runs_[key];
  run.status = status;
  run.end_ms = milliseconds(wall);
  if (status != run.told) add_tags(key, std::move(tags));
  mark(key);
}

void Outbox::add_tags(RunKey key, Texts tags) {
  leave_out_refused(tags, EntityName::Kind::Tag);
  std::ranges::move(tags, std::back_inserter(runs_[key].tags));
  mark(key);
}

void Outbox::mark(RunKey key) {
  auto& run = runs_[key];
  if (run.is_queued || !run.has_work()) return;
  run.is_queued = true;
  if (key) {
    queue_.push_back(key);
  } else {
    queue_.push_front(key);
  }
}

// ---- requests -----------------------------------------------------------------------------------

std::optional<Outbox::Request> Outbox::next() {
  if (has_given_up_) return std::nullopt;
  // What was to be told when it was queued may have been taken back since.
  while (!queue_.empty() && !runs_.at(queue_.front()).has_work()) {
    runs_.at(queue_.front()).is_queued = false;
    queue_.pop_front();
  }
  if (is_asked_ || queue_.empty()) return std::nullopt;
  if (experiment_id_.empty()) {
    is_asked_ = true;
    return is_to_be_made_ ? to_create_experiment(experiment_) : to_find_experiment(experiment_);
  }
  const auto key = queue_.front();
  const auto parent = runs_.find(RunKey());
  if (key && parent != runs_.end() && parent->second.id.empty()) return std::nullopt;
  queue_.pop_front();
  auto& run = runs_.at(key);
  run.is_queued = false;
  const bool has_entities =
      run.refused || !run.params.empty() || !run.tags.empty() || !run.reports.empty();
  auto request = run.id.empty() ? create(key, run)
                 : has_entities ? log(key, run)
                                : to_update_run(key, run.id, run.status, run.end_ms);
  run.is_asked = true;
  return request;
}

Outbox::Request Outbox::create(RunKey key, const Run& run) const {
  Texts tags{{"mlflow.runName", run.name}};
  if (const auto parent = runs_.find(RunKey()); key && parent != runs_.end())
    tags.emplace_back("mlflow.parentRunId", parent->second.id);
  return to_create_run(key, experiment_id_, run.name, run.start_ms, tags);
}

Outbox::Request Outbox::batch_of(RunKey key, Run& run) {
  if (run.refused) return run.refused->next();
  Request request{.kind = Kind::Log,
                  .run = key,
                  .params = taken_from(run.params, kMostTexts),
                  .tags = taken_from(run.tags, kMostTexts)};
  std::size_t values = 0;
  while (!run.reports.empty()) {
    auto& report = run.reports.front();
    if (values > 0 && values + report.metrics.size() > kMostMetrics) break;
    values += report.metrics.size();
    ages_.erase(report.age);
    request.reports.push_back(std::move(report));
    run.reports.pop_front();
  }
  return request;
}

Outbox::Request Outbox::log(RunKey key, Run& run) {
  auto request = batch_of(key, run);
  address_batch(request, run.id);
  return request;
}

// ---- answers ------------------------------------------------------------------------------------

Json Outbox::answered(Request request, const Answer& answer) {
  const auto kind = request.kind;
  const auto key = request.run;
  const bool is_setup = kind == Kind::FindExperiment || kind == Kind::CreateExperiment;
  if (is_setup) {
    is_asked_ = false;
  } else {
    runs_.at(key).is_asked = false;
  }
  Json line;
  auto how = answer.kind;
  try {
    if (how == Answer::Kind::Taken) line = take(request, answer.content);
  } catch (const Json::exception&) {  // it is no answer to this
    how = Answer::Kind::None;
  }
  if (how == Answer::Kind::Taken) {
    // Line says it.
  } else if (kind == Kind::FindExperiment && answer.code == "RESOURCE_DOES_NOT_EXIST") {
    is_to_be_made_ = true;
  } else if (kind == Kind::CreateExperiment && answer.code == "RESOURCE_ALREADY_EXISTS") {
    is_to_be_made_ = false;
  } else if (how == Answer::Kind::Refused) {
    if (is_setup || (kind == Kind::CreateRun && !key))
      give_up_all();
    else
      line = refuse(request, answer);
  } else if (!is_setup) {
    put_back(std::move(request));
  }
  if (!is_setup) mark(key);
  return line;
}

/// Later ones may have been dropped meanwhile.
void Outbox::note_done(Run& run, std::uint64_t report) { run.done = std::max(run.done, report); }

Json Outbox::take(const Request& request, const Json& content) {
  if (request.kind == Kind::FindExperiment || request.kind == Kind::CreateExperiment) {
    const auto& found = request.kind == Kind::FindExperiment ? content.at("experiment") : content;
    experiment_id_ = found.at("experiment_id").get<std::string>();
    return {{"experiment_id", experiment_id_}};
  }
  auto& run = runs_.at(request.run);
  Json line{{"run", key_of(request.run)}};
  if (request.kind == Kind::CreateRun) {
    run.id = content.at("run").at("info").at("run_id").get<std::string>();
    line["id"] = run.id;
  } else if (request.kind == Kind::Update) {
    run.told = request.status;
    line["status"] = run.told;
  } else {
    return take_batch(run, request, std::move(line));
  }
  return line;
}

/// Of a part nothing is written down before all of its batch is answered.
Json Outbox::take_batch(Run& run, const Request& request, Json line) {
  waiting_ -= values_in(request);
  taken_names_.merge(names_in(request));
  if (run.refused) {
    run.refused->on_taken();
    return end_refused_batch(run, std::move(line));
  }
  if (!request.reports.empty()) {
    note_done(run, request.reports.back().number);
    line["reports"] = run.done;
  }
  if (run.params.empty() && run.tags.empty() && !std::exchange(run.is_described, true))
    line["described"] = true;
  return line;
}

/// Does nothing while parts of it wait.
Json Outbox::end_refused_batch(Run& run, Json line) {
  if (!run.refused->is_done()) return line;
  const auto batch = *std::exchange(run.refused, std::nullopt);
  note_done(run, batch.last_report());
  // A later driver, which may have another server's URL, tells again what none of was taken.
  if (!batch.is_taken_in_part()) return {};
  for (const auto& name : batch.refused_names()) {
    if (!taken_names_.contains(name)) tell_no_more(name);
  }
  if (batch.last_report() > 0) line["reports"] = run.done;
  if (run.params.empty() && run.tags.empty() && !std::exchange(run.is_described, true))
    line["described"] = true;
  return line;
}

Json Outbox::refuse(const Request& request, const Answer& answer) {
  auto& run = runs_.at(request.run);
  const bool is_gone = request.kind == Kind::CreateRun || answer.code == "RESOURCE_DOES_NOT_EXIST";
  const bool is_batch = request.kind == Kind::Log && !is_gone;
  if (is_batch && !run.refused && answer.is_of_content && RefusedBatch::has_parts(request)) {
    run.refused.emplace(request);
    return {};
  }
  if (is_batch && run.refused && answer.is_of_content) {
    const auto given_up = run.refused->on_refused(request);
    waiting_ -= given_up;
    refused_ += given_up;
    return end_refused_batch(run, {{"run", key_of(request.run)}});
  }
  auto values = values_in(request);
  if (!request.reports.empty()) note_done(run, request.reports.back().number);
  // There is no run to tell anything about, or nobody may tell the rest of the batch.
  if (is_gone) values += give_up(run);
  if (run.refused) values += std::exchange(run.refused, std::nullopt)->values();
  if (request.kind == Kind::Update) run.told = request.status;
  waiting_ -= values;
  refused_ += values;
  return {};
}

/// -> how many values waited in it.
std::size_t Outbox::give_up(Run& run) {
  std::size_t values = 0;
  run.is_given_up = true;
  for (const auto& report : run.reports) {
    values += report.metrics.size();
    ages_.erase(report.age);
  }
  run.reports.clear();
  if (run.refused) values += std::exchange(run.refused, std::nullopt)->values();
  return values;
}

/// No request of a run is on its way, as none is before the parent is made.
void Outbox::give_up_all() {
  has_given_up_ = true;
  for (auto& [key, run] : runs_) {
    const auto values = give_up(run);
    waiting_ -= values;
    refused_ += values;
  }
}

void Outbox::put_back(Request request) {
  auto& run = runs_.at(request.run);
  if (run.refused && request.kind == Kind::Log) return run.refused->put_back(std::move(request));
  for (auto report = request.reports.rbegin(); report != request.reports.rend(); ++report) {
    ages_.emplace(report->age, request.run);
    run.reports.push_front(std::move(*report));
  }
  run.params.insert(run.params.begin(), request.params.begin(), request.params.end());
  run.tags.insert(run.tags.begin(), request.tags.begin(), request.tags.end());
  while (waiting_ > most_waiting_ && !ages_.empty()) drop_oldest();
}

// ---- names that are told no more ----------------------------------------------------------------

void Outbox::leave_out_refused(Texts& texts, EntityName::Kind kind) const {
  if (refused_names_.empty()) return;
  std::erase_if(texts, [&](const auto& text) {
    return refused_names_.contains({kind, text.first});
  });
}

/// -> how many values that were.
std::size_t Outbox::leave_out_refused(Metrics& metrics) const {
  if (refused_names_.empty()) return 0;
  return std::erase_if(metrics, [&](const auto& metric) {
    return refused_names_.contains({EntityName::Kind::Metric, metric.name});
  });
}

void Outbox::tell_no_more(const EntityName& name) {
  refused_names_.insert(name);
  for (auto& [key, run] : runs_) {
    leave_out_refused(run.params, EntityName::Kind::Param);
    leave_out_refused(run.tags, EntityName::Kind::Tag);
    for (auto& report : run.reports) {
      const auto values = leave_out_refused(report.metrics);
      waiting_ -= values;
      refused_ += values;
    }
  }
}

bool Outbox::is_empty() const { return runs_behind() == 0; }

std::size_t Outbox::runs_behind() const {
  if (has_given_up_) return 0;
  return static_cast<std::size_t>(std::ranges::count_if(
      runs_, [](const auto& each) { return each.second.is_asked || each.second.has_work(); }));
}

const std::string& Outbox::id_of(RunKey run) { return runs_[run].id; }

}  // namespace troupe::tune
