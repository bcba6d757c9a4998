#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "output/render.hpp"
#include "text/format.hpp"

namespace troupe::tune {
namespace {

std::string best_so_far(const BestSoFar& best) {
  const auto& metric = best.objective.metric;
  if (!best.trial) return best.is_one_of_several ? "No " + metric + " yet." : "No best yet.";
  auto word = word_for_best(best.objective, best.is_one_of_several);
  word.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(word.front())));
  const auto value = short_number(*best.trial->best);
  return best.is_one_of_several
             ? fmt::format("{}: {} of trial {}.", word, value, best.trial->id)
             : fmt::format("{}: trial {} with {} {}.", word, best.trial->id, metric, value);
}

/// Of why a run ended, which is told once, whole.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string how_it_ended(const Trial& trial, const BestSoFar& best) {
  const auto& objective = best.objective;
  if (trial.status == Status::Errored) return fmt::format("errored: {}", clipped(trial.error, 500));
  auto text = trial.status == Status::Stopped ? trial.reason : std::string(ending_of(trial));
  if (trial.is_unfinished() || trial.is_unstarted())
    text = fmt::format("{}: {}", ending_of(trial), first_line(trial.reason));
  if (trial.status == Status::Terminated && !trial.reason.empty()) text += ": " + trial.reason;
  if (trial.best)
    text += fmt::format(
        "; {} {} at t={}",
        best.is_one_of_several ? word_for_best(objective, true) : "best " + objective.metric,
        short_number(*trial.best), trial.best_t);
  else if (!trial.history.empty())
    text += fmt::format("; its {} was never finite", objective.metric);
  return text;
}

std::string text_of(const Event& event, const Trial& trial, const BestSoFar& best) {
  using Kind = Event::Kind;
  if (event.kind == Kind::Started) {
    const auto attempt = event.attempt > 1 ? fmt::format(" (attempt {})", event.attempt) : "";
    return fmt::format("started{}: {}", attempt, short_text(trial.config));
  }
  if (event.kind == Kind::Requeued && !trial.over()) {
    return fmt::format("was under way at t={}, and {}", trial.t,
                       trial.checkpoint.empty() ? std::string("begins again: it has no checkpoint")
                                                : fmt::format("goes on from its checkpoint of t={}",
                                                              trial.checkpoint_t));
  }
  if (event.kind == Kind::Overdue)
    return fmt::format("{}, and is told to end", why_of(event.decision));
  if (event.kind == Kind::Failed && event.fault == Fault::System && !trial.over()) {
    return fmt::format("was lost by the cluster (attempt {}), will be started again: {}",
                       event.attempt, clipped(event.text, 500));
  }
  if (event.kind == Kind::Failed && event.fault == Fault::Checkpoint && !trial.over()) {
    const auto* exploit = std::get_if<Exploit>(&event.decision);
    const auto instead =
        exploit ? describe(trial.takeovers.back(), trial.id) : why_of(event.decision);
    return fmt::format("lost its checkpoint ({}); {}", clipped(event.text, 500), instead);
  }
  if (event.kind == Kind::Failed && !trial.over()) {
    return fmt::format("failed (attempt {}), will be tried again: {}", event.attempt,
                       clipped(event.text, 500));
  }
  return how_it_ended(trial, best) + ". " + best_so_far(best);
}

/// A line about a report or a launch, of those that people are shown.
std::optional<std::string> about_report(const Event& event, const Trial& trial) {
  if (std::holds_alternative<Exploit>(event.decision))
    return describe(trial.takeovers.back(), trial.id);
  const auto* go_on = std::get_if<GoOn>(&event.decision);
  const bool is_chosen = event.kind == Event::Kind::Launched && rung_of(event.decision);
  if (is_chosen) return fmt::format("trial {} resumed: {}", trial.id, why_of(event.decision));
  if (!go_on || go_on->notice.empty()) return std::nullopt;
  return fmt::format("trial {}: {}", trial.id, go_on->notice);
}

/// A gang of another size than the trials begin with.
std::string about_size(const Trial& trial) {
  return fmt::format("goes on after t={} with {}", trial.checkpoint_t,
                     counted(static_cast<std::size_t>(trial.workers), "worker"));
}

/// Taking turns is no news.
bool is_routine(const Event& event, const Trial& trial) {
  if (event.kind == Event::Kind::Started) return event.attempt > 1 && !trial.retried;
  return trial.status == Status::Paused;
}

std::string schedule_text(const std::vector<Segment>& schedule) {
  std::string text;
  for (const auto& segment : schedule) text += fmt::format("      {}\n", describe(segment));
  return text;
}

std::string rung_line(const RungSummary& rung, const Objective& objective, bool many_brackets) {
  const auto bracket = many_brackets ? fmt::format("bracket {} ", rung.bracket) : "";
  auto line = fmt::format("    {}rung {} (t={}): {} judged, {} stopped", bracket, rung.rung, rung.t,
                          rung.reached, rung.stopped + rung.not_finite);
  const auto* side = objective.mode == Mode::Max ? "below" : "above";
  std::string why;
  if (rung.stopped > 0) why = fmt::format("{} {} the cutoff", rung.stopped, side);
  if (rung.not_finite > 0)
    why += fmt::format("{}{} not finite", why.empty() ? "" : ", ", rung.not_finite);
  if (!why.empty()) line += ": " + why;
  if (rung.cutoff && rung.reached > 0)
    line += fmt::format("; the cutoff is {} now", short_number(*rung.cutoff));
  return line + '\n';
}

std::string best_text(const Overview& overview) {
  const auto word = word_for_best(overview.objective, overview.has_several_objectives());
  if (!overview.best)
    return fmt::format("  {}: none; {} a finite '{}'{}\n", word,
                       overview.have_all_failed ? "each trial that reported" : "no trial reported",
                       overview.objective.metric, overview.have_all_failed ? " failed" : "");
  const auto& best = *overview.best;
  std::string text = fmt::format("  {}: trial {}, {} {} at t={}\n", word, best.trial,
                                 overview.objective.metric, short_number(*best.best), best.best_t);
  for (std::size_t i = 0; i < overview.fields.size(); ++i) {
    if (best.values[i] != "-")
      text += fmt::format("    {} = {}\n", overview.fields[i], best.values[i]);
  }
  if (!overview.best_checkpoint.empty()) {
    const auto of = overview.best_checkpoint_t == best.best_t
                        ? std::string()
                        : fmt::format(" (of t={})", overview.best_checkpoint_t);
    text += fmt::format("    its checkpoint{}: {}\n", of, overview.best_checkpoint);
  }
  return text;
}

std::string counts_text(const Overview& overview) {
  auto text =
      fmt::format("  {} terminated, {} stopped, {} errored", overview.count(Status::Terminated),
                  overview.count(Status::Stopped), overview.count(Status::Errored));
  if (overview.unfinished > 0) text += fmt::format(", {} unfinished", overview.unfinished);
  if (overview.unstarted > 0) text += fmt::format(", {} unstarted", overview.unstarted);
  if (overview.not_begun > 0) text += fmt::format("; {} not begun", overview.not_begun);
  return text + '\n';
}

std::string front_text(const Overview& overview) {
  auto text = fmt::format("  Pareto front: {} of {}\n", overview.front_size,
                          counted(overview.trials(), "trial"));
  for (const auto& member : overview.front) text += fmt::format("    {}\n", member);
  if (overview.front_size > overview.front.size())
    text += fmt::format("    and {} more\n", overview.front_size - overview.front.size());
  if (overview.beyond_limits > 0)
    text += fmt::format("    beyond the limits of .constraints: {}; the nearest to them is {}\n",
                        counted(overview.beyond_limits, "trial"), overview.nearest);
  return text;
}

/// One and the same cause once, with the number of trials that ended by it.
std::string errors_text(const Overview& overview, const Look& look) {
  std::string text;
  auto left = overview.count(Status::Errored);
  std::size_t not_shown = 0;
  for (const auto& row : overview.errored) {
    text += coloured(fmt::format("    trial {} errored: {}", row.trial, clipped(row.note, 500)),
                     Colour::Red, look.colour) +
            '\n';
    if (row.alike > 0)
      text += fmt::format("      and {} alike\n", counted(row.alike, "more trial"));
    not_shown += row.alike;
    left -= std::min(left, 1 + row.alike);
  }
  if (left > 0) text += fmt::format("    and {} more\n", left);
  if (left + not_shown > 0 && !overview.folder.empty())
    text += "    the error of each trial is in summary.json of the results\n";
  return text;
}

}  // namespace

std::string word_for_best(const Objective& objective, bool is_one_of_several) {
  if (!is_one_of_several) return "best";
  return (objective.mode == Mode::Min ? "lowest " : "highest ") + objective.metric;
}

std::optional<std::string> render_event(const Event& event, const Trial* trial,
                                        const BestSoFar& best, std::optional<TrialId> same_error) {
  using Kind = Event::Kind;
  const auto time = fmt::format("[{:>7}] ", short_time(event.now));
  if (event.kind == Kind::Closed) return fmt::format("{}the run ends: {}\n", time, event.text);
  if (event.kind == Kind::Reported || event.kind == Kind::Launched) {
    const auto line = about_report(event, *trial);
    return line ? std::optional(fmt::format("{}{}\n", time, *line)) : std::nullopt;
  }
  if (event.kind == Kind::Started && trial->workers > 0)
    return fmt::format("{}trial {} {}\n", time, event.trial, about_size(*trial));
  if (is_routine(event, *trial)) return std::nullopt;
  if (same_error) {
    return fmt::format("{}trial {} errored as trial {} did. {}\n", time, event.trial, *same_error,
                       best_so_far(best));
  }
  return fmt::format("{}trial {} {}\n", time, event.trial, text_of(event, *trial, best));
}

std::string render_summary(const Overview& overview, const Look& look) {
  auto text = coloured(fmt::format("tune: {} in {}", counted(overview.trials(), "trial"),
                                   short_time(overview.elapsed)),
                       Colour::Bold, look.colour) +
              '\n';
  if (!overview.ended_early.empty())
    text += fmt::format("  ended early: {}\n", overview.ended_early);
  if (overview.has_several_objectives()) text += front_text(overview);
  text += coloured(best_text(overview), Colour::Green, look.colour && overview.best);
  if (!overview.schedule.empty()) text += "    its schedule:\n" + schedule_text(overview.schedule);
  text += counts_text(overview);
  if (overview.restarts > 0) {
    text += fmt::format("  {} after failures of the cluster; the last of trial {}: {}\n",
                        counted(overview.restarts, "restart"), overview.restarted.trial,
                        clipped(overview.restarted.why, 500));
  }
  if (overview.takeovers + overview.pauses > 0) {
    text += fmt::format("  {}, {}\n", counted(overview.takeovers, "takeover"),
                        counted(overview.pauses, "pause"));
  }
  for (const auto& notice : overview.notices) text += fmt::format("  note: {}\n", notice);
  const bool many_brackets = !overview.rungs.empty() && overview.rungs.back().bracket > 0;
  for (const auto& rung : overview.rungs)
    text += rung_line(rung, overview.objective, many_brackets);
  text += errors_text(overview, look);
  if (!overview.folder.empty()) text += fmt::format("  results: {}\n", overview.folder);
  if (!overview.folder.empty() && overview.may_go_on && overview.has_failures_alone()) {
    text +=
        "  no trial reported a value: mend what failed and begin a new run, rather than go on with "
        "this one\n";
  } else if (!overview.folder.empty() && overview.may_go_on) {
    text += fmt::format("  to go on with it: {}\n",
                        overview.how_to_go_on.empty()
                            ? "the same program with .resume = true, or tune::resume on that folder"
                            : overview.how_to_go_on);
  }
  return text;
}

}  // namespace troupe::tune
