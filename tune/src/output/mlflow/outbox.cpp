#include "output/mlflow/outbox.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace troupe::tune {
namespace {

using Kind = Outbox::Request::Kind;

constexpr std::size_t kMostName = 250;
constexpr std::size_t kMostText = 500;  // bytes of a value, which any version of MLflow takes
constexpr auto* kApi = "/api/2.0/mlflow/";

std::int64_t milliseconds(WallTime wall) {
  return std::chrono::floor<std::chrono::milliseconds>(wall.time_since_epoch()).count();
}

/// Numbers that are not finite, as Protocol Buffers' JSON has them.
Json number_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

/// Cut where a character of UTF-8 ends.
std::string cut(std::string text) {
  if (text.size() <= kMostText) return text;
  auto size = kMostText;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  text.resize(size);
  return text;
}

Json pairs(const Texts& texts) {
  auto list = Json::array();
  for (const auto& [key, value] : texts) list.push_back({{"key", key}, {"value", cut(value)}});
  return list;
}

std::string escaped(std::string_view text) {
  std::string query;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.' || c == '~';
    query += is_plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return query;
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

std::string mlflow_name(std::string_view name) {
  std::string taken(name.substr(0, kMostName));
  for (auto& c : taken) {
    const bool is_letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!is_letter && std::string_view("_-./: ").find(c) == std::string_view::npos) c = '_';
  }
  return taken.empty() ? "_" : taken;
}

Outbox::Outbox(std::string experiment, std::size_t most_waiting)
    : experiment_{std::move(experiment)}, most_waiting_{most_waiting} {}

bool Outbox::Run::has_work() const {
  if (is_given_up || is_asked || !is_begun) return false;
  return id.empty() || !params.empty() || !tags.empty() || !reports.empty() || status != told;
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
  run.reports.push_back({number, step, milliseconds(wall), metrics, ++reports_});
  ages_.emplace_hint(ages_.end(), reports_, key);
  waiting_ += metrics.size();
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
  if (status != run.told) std::ranges::move(tags, std::back_inserter(run.tags));
  mark(key);
}

void Outbox::add_tags(RunKey key, Texts tags) {
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

Outbox::Request Outbox::find_experiment() const {
  if (is_to_be_made_)
    return {.kind = Kind::CreateExperiment,
            .path = std::string(kApi) + "experiments/create",
            .body = dump({{"name", experiment_}})};
  return {.kind = Kind::FindExperiment,
          .path = std::string(kApi) +
                  "experiments/get-by-name?experiment_name=" + escaped(experiment_)};
}

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
    return find_experiment();
  }
  const auto key = queue_.front();
  const auto parent = runs_.find(RunKey());
  if (key && parent != runs_.end() && parent->second.id.empty()) return std::nullopt;
  queue_.pop_front();
  auto& run = runs_.at(key);
  run.is_queued = false;
  const bool has_entities = !run.params.empty() || !run.tags.empty() || !run.reports.empty();
  auto request = run.id.empty() ? create(key, run)
                 : has_entities ? log(key, run)
                                : update(key, run);
  run.is_asked = true;
  return request;
}

Outbox::Request Outbox::create(RunKey key, const Run& run) const {
  Texts tags{{"mlflow.runName", run.name}};
  if (const auto parent = runs_.find(RunKey()); key && parent != runs_.end())
    tags.emplace_back("mlflow.parentRunId", parent->second.id);
  return {.kind = Kind::CreateRun,
          .path = std::string(kApi) + "runs/create",
          .body = dump({{"experiment_id", experiment_id_},
                        {"run_name", run.name},
                        {"start_time", run.start_ms},
                        {"tags", pairs(tags)}}),
          .run = key};
}

Outbox::Request Outbox::log(RunKey key, Run& run) {
  Request request{.kind = Kind::Log,
                  .path = std::string(kApi) + "runs/log-batch",
                  .run = key,
                  .params = taken_from(run.params, kMostTexts),
                  .tags = taken_from(run.tags, kMostTexts)};
  auto metrics = Json::array();
  while (!run.reports.empty()) {
    auto& report = run.reports.front();
    if (!metrics.empty() && metrics.size() + report.metrics.size() > kMostMetrics) break;
    for (const auto& metric : report.metrics) {
      metrics.push_back({{"key", mlflow_name(metric.name)},
                         {"value", number_of(metric.value)},
                         {"timestamp", report.time_ms},
                         {"step", report.step}});
    }
    ages_.erase(report.age);
    request.reports.push_back(std::move(report));
    run.reports.pop_front();
  }
  auto params = request.params;
  for (auto& [name, value] : params) name = mlflow_name(name);
  request.body = dump({{"run_id", run.id},
                       {"metrics", std::move(metrics)},
                       {"params", pairs(params)},
                       {"tags", pairs(request.tags)}});
  return request;
}

Outbox::Request Outbox::update(RunKey key, const Run& run) const {
  Json body{{"run_id", run.id}, {"status", run.status}};
  if (run.status != "RUNNING") body["end_time"] = run.end_ms;
  return {.kind = Kind::Update,
          .path = std::string(kApi) + "runs/update",
          .body = dump(body),
          .run = key,
          .status = run.status};
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
      refuse(request, answer.code);
  } else if (!is_setup) {
    put_back(std::move(request));
  }
  if (!is_setup) mark(key);
  return line;
}

/// Later ones may have been dropped meanwhile.
void Outbox::note_done(Run& run, const Request& request) {
  if (!request.reports.empty()) run.done = std::max(run.done, request.reports.back().number);
}

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
    for (const auto& report : request.reports) waiting_ -= report.metrics.size();
    note_done(run, request);
    if (!request.reports.empty()) line["reports"] = run.done;
    if (run.params.empty() && run.tags.empty() && !std::exchange(run.is_described, true))
      line["described"] = true;
  }
  return line;
}

void Outbox::refuse(const Request& request, const std::string& code) {
  auto& run = runs_.at(request.run);
  std::size_t values = 0;
  for (const auto& report : request.reports) values += report.metrics.size();
  note_done(run, request);
  // There is no run to tell anything about.
  if (request.kind == Kind::CreateRun || code == "RESOURCE_DOES_NOT_EXIST") values += give_up(run);
  if (request.kind == Kind::Update) run.told = request.status;
  waiting_ -= values;
  refused_ += values;
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
  for (auto report = request.reports.rbegin(); report != request.reports.rend(); ++report) {
    ages_.emplace(report->age, request.run);
    run.reports.push_front(std::move(*report));
  }
  run.params.insert(run.params.begin(), request.params.begin(), request.params.end());
  run.tags.insert(run.tags.begin(), request.tags.begin(), request.tags.end());
  while (waiting_ > most_waiting_ && !ages_.empty()) drop_oldest();
}

bool Outbox::is_empty() const { return runs_behind() == 0; }

std::size_t Outbox::runs_behind() const {
  if (has_given_up_) return 0;
  return static_cast<std::size_t>(std::ranges::count_if(
      runs_, [](const auto& each) { return each.second.is_asked || each.second.has_work(); }));
}

const std::string& Outbox::id_of(RunKey run) { return runs_[run].id; }

}  // namespace troupe::tune
