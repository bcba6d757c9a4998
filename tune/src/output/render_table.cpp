#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "output/render.hpp"
#include "text/format.hpp"

namespace troupe::tune {
namespace {

constexpr std::size_t kWidestValue = 16;
constexpr std::size_t kNarrowestNote = 12;
constexpr std::size_t kGap = 2;

struct Column {
  std::string title;
  std::vector<std::string> cells;
  bool right = false;
  std::size_t width = 0;
};

Colour colour_of(Status status) {
  switch (status) {
    case Status::Running:
      return Colour::Cyan;
    case Status::Terminated:
      return Colour::Green;
    case Status::Stopped:
    case Status::Paused:
      return Colour::Yellow;
    case Status::Errored:
      return Colour::Red;
    case Status::Pending:
      break;
  }
  return Colour::Dim;
}

std::string number_or_dash(const std::optional<double>& number) {
  return number ? short_number(*number) : "-";
}

std::vector<Column> columns_of(const Overview& overview) {
  std::vector<Column> columns{{"trial", {}, true},
                              {"status", {}},
                              {"t", {}, true},
                              {overview.objective.metric, {}, true},
                              {"best", {}, true}};
  for (const auto& field : overview.fields) columns.push_back({field, {}, true});
  for (const auto& row : overview.rows) {
    std::vector<std::string> cells{
        std::to_string(row.trial), std::string(status_text(row, overview.is_abandoned)),
        std::to_string(row.t), number_or_dash(row.last), number_or_dash(row.best)};
    cells.insert(cells.end(), row.values.begin(), row.values.end());
    for (std::size_t i = 0; i < columns.size(); ++i)
      columns[i].cells.push_back(i < cells.size() ? cells[i] : "");
  }
  for (auto& column : columns) {
    column.width = width_of(column.title);
    for (const auto& cell : column.cells) column.width = std::max(column.width, width_of(cell));
    column.width = std::min(column.width, kWidestValue);
  }
  return columns;
}

std::size_t width_of(const std::vector<Column>& columns) {
  std::size_t sum = 0;
  for (const auto& column : columns) sum += column.width + (sum > 0 ? kGap : 0);
  return sum;
}

/// Leaves out columns from the right until the rest fits, with a mark of one that says so.
void fit(std::vector<Column>& columns, std::size_t width) {
  const bool fits = width_of(columns) <= width;
  const auto for_mark = fits ? 0 : kGap + 1;
  while (columns.size() > 1 && width_of(columns) + for_mark > width) columns.pop_back();
  columns.front().width = std::min(columns.front().width, width);
  if (fits || width_of(columns) + for_mark > width) return;
  const std::vector<std::string> none(columns.front().cells.size());
  columns.push_back({">", none, false, 1});
}

void add_note_column(std::vector<Column>& columns, const Overview& overview, std::size_t width) {
  const auto used = width_of(columns) + kGap;
  if (used + kNarrowestNote > width) return;
  auto& notes = columns.emplace_back(Column{"why", {}, false, width - used});
  for (const auto& row : overview.rows) notes.cells.push_back(row.note);
}

/// One line of the table: cell `row` of each column, or the titles.
template <class CellOf, class ToneOf>
std::string line_of(const std::vector<Column>& columns, CellOf cell_of, ToneOf tone_of,
                    bool colour) {
  std::string line;
  std::size_t gap = 0;
  for (const auto& column : columns) {
    const auto cell = padded(clipped(cell_of(column), column.width), column.width, column.right);
    const auto text = cell.substr(0, cell.find_last_not_of(' ') + 1);
    if (!text.empty()) line += std::string(gap, ' ') + coloured(text, tone_of(column), colour);
    gap = kGap + cell.size() - text.size() + (text.empty() ? gap : 0);
  }
  return line + '\n';
}

/// "max accuracy"; of several objectives "max accuracy and min latency".
std::string goal_of(const Overview& overview) {
  const auto text_of = [](const Objective& objective) {
    return fmt::format("{} {}", objective.mode == Mode::Max ? "max" : "min", objective.metric);
  };
  if (!overview.has_several_objectives()) return text_of(overview.objective);
  std::vector<std::string> texts;
  for (const auto& objective : overview.objectives) texts.push_back(text_of(objective));
  return fmt::format("{}", fmt::join(texts, " and "));
}

std::string head_line(const Overview& overview) {
  auto line = fmt::format("tune: {}, {}, {}", goal_of(overview), short_time(overview.elapsed),
                          counted(overview.trials(), "trial"));
  std::string counts;
  const auto add = [&](std::size_t count, std::string_view what) {
    if (count > 0) counts += fmt::format("{}{} {}", counts.empty() ? ": " : ", ", count, what);
  };
  for (auto status : {Status::Running, Status::Pending, Status::Paused, Status::Terminated,
                      Status::Stopped, Status::Errored})
    add(overview.count(status), status_text(status, overview.is_abandoned));
  add(overview.unfinished, "unfinished");
  add(overview.unstarted, "unstarted");
  return line + counts;
}

/// "8 of 16 CPUs"; where the cluster has not said what it has, "8 CPUs".
std::string amount_of(double held, const std::optional<double>& all, const std::string& unit) {
  const auto most = all.value_or(held);
  return fmt::format("{}{} {}{}", short_number(held),
                     all ? fmt::format(" of {}", short_number(most)) : "", unit,
                     most == 1 ? "" : "s");
}

/// The ranks of the gangs that run, and what these hold of the cluster; empty: nothing to say.
std::string at_work(const Overview& overview) {
  if (overview.is_abandoned) return "";
  const auto running = overview.count(Status::Running);
  if (!overview.in_use)
    return running > 0 && overview.ranks > running ? counted(overview.ranks, "rank") + " at work"
                                                   : "";
  const auto& [ranks, cpus, gpus, all_cpus, all_gpus] = *overview.in_use;
  if (ranks == 0) return "";
  std::vector<std::string> held;
  if (cpus > 0) held.push_back(amount_of(cpus, all_cpus, "CPU"));
  if (gpus > 0 || all_gpus.value_or(0) > 0) held.push_back(amount_of(gpus, all_gpus, "GPU"));
  return counted(ranks, "rank") + " at work" +
         (held.empty() ? "" : fmt::format(" on {}", fmt::join(held, " and ")));
}

/// What is under way, how many each rung stopped, and what is left; empty: nothing of it is known.
std::string progress_line(const Overview& overview) {
  std::vector<std::string> parts;
  if (auto work = at_work(overview); !work.empty()) parts.push_back(std::move(work));
  std::map<std::int64_t, std::pair<std::size_t, std::size_t>> rungs;  // of all brackets
  for (const auto& rung : overview.rungs) {
    rungs[rung.t].first += rung.stopped + rung.not_finite;
    rungs[rung.t].second += rung.reached;
  }
  std::string stopped;
  for (const auto& [t, counts] : rungs) {
    if (counts.second > 0)
      stopped += fmt::format("{}{} of {} at t={}", stopped.empty() ? "stopped: " : ", ",
                             counts.first, counts.second, t);
  }
  if (!stopped.empty()) parts.push_back(std::move(stopped));
  if (overview.to_come.value_or(0) > 0)
    parts.push_back(fmt::format("{} to come", *overview.to_come));
  if (overview.left && !overview.is_abandoned)
    parts.push_back(fmt::format("about {} left", short_time(*overview.left)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string best_line(const Overview& overview) {
  const auto word = word_for_best(overview.objective, overview.has_several_objectives());
  if (!overview.best) return word + ": none yet";
  const auto& best = *overview.best;
  auto line = fmt::format("{}: trial {}, {} {} at t={}", word, best.trial,
                          overview.objective.metric, number_or_dash(best.best), best.best_t);
  const auto* gap = ": ";
  for (std::size_t i = 0; i < overview.fields.size() && i < best.values.size(); ++i) {
    if (best.values[i] == "-") continue;  // it runs without
    line += fmt::format("{}{}={}", std::exchange(gap, ", "), overview.fields[i], best.values[i]);
  }
  return line;
}

}  // namespace

std::string render_table(const Overview& overview, const Look& look) {
  auto text = coloured(clipped(head_line(overview), look.width), Colour::Bold, look.colour) + '\n' +
              clipped(best_line(overview), look.width) + '\n';
  if (const auto progress = progress_line(overview); !progress.empty())
    text += coloured(clipped(progress, look.width), Colour::Dim, look.colour) + '\n';
  if (!overview.notices.empty()) {
    const auto notice = "note: " + overview.notices.back();
    text += coloured(clipped(notice, look.width), Colour::Yellow, look.colour) + '\n';
  }
  if (overview.rows.empty()) return text;

  auto columns = columns_of(overview);
  fit(columns, look.width);
  add_note_column(columns, overview, look.width);
  text += line_of(
      columns, [](const Column& column) { return column.title; }, [](auto&) { return Colour::Dim; },
      look.colour);
  for (std::size_t row = 0; row < overview.rows.size(); ++row) {
    const auto cell = [row](const Column& column) { return column.cells[row]; };
    const auto tone = [&](const Column& column) {
      return column.title == "status" ? colour_of(overview.rows[row].status) : Colour::Plain;
    };
    text += line_of(columns, cell, tone, look.colour);
  }
  return text;
}

}  // namespace troupe::tune
