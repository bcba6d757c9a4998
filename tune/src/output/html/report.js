"use strict";

// Draws what stands in #data (report_data.cpp says what that is). All texts are set as texts, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const minimise = data.mode === "min";
const SVG = "http://www.w3.org/2000/svg";

// ---- small parts ---------------------------------------------------------------------------------

function element(name, attributes = {}, text = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== "") made.textContent = text;
  return made;
}

function shape(parent, name, attributes = {}, hint = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (hint) {
    const title = document.createElementNS(SVG, "title");
    title.textContent = hint;
    made.appendChild(title);
  }
  parent.appendChild(made);
  return made;
}

function label(parent, x, y, text, anchor = "middle") {
  shape(parent, "text", { x, y, "text-anchor": anchor }).textContent = text;
}

function short(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "-" : String(value);
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  return String(Number(value.toPrecision(4)));
}

function seconds(value) {
  if (value < 120) return short(Math.round(value * 10) / 10) + " s";
  if (value < 7200) return short(Math.round(value / 6) / 10) + " min";
  return short(Math.round(value / 360) / 10) + " h";
}

function finite(values) { return values.filter((value) => typeof value === "number" && Number.isFinite(value)); }

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of finite(values)) { low = Math.min(low, value); high = Math.max(high, value); }
  if (low > high) return [0, 1];
  if (low === high) return [low - 0.5, high + 0.5];
  return [low, high];
}

// From values to pixels. Logarithmic where that is asked for and possible.
function scale([low, high], [from, to], isLog = false) {
  const log = isLog && low > 0;
  const place = log ? Math.log : (x) => x;
  const span = place(high) - place(low) || 1;
  const at = (value) => from + ((place(value) - place(low)) / span) * (to - from);
  at.ticks = [];
  for (let i = 0; i <= 4; ++i) {
    const part = place(low) + (span * i) / 4;
    at.ticks.push(log ? Math.exp(part) : part);
  }
  return at;
}

// Many values in one place and few far off: a scale of logarithms shows both.
function wantsLog(values) {
  const sorted = finite(values).sort((a, b) => a - b);
  if (sorted.length < 3 || sorted[0] <= 0) return false;
  return sorted[sorted.length - 1] / sorted[Math.floor(sorted.length / 2)] > 50;
}

function section(id, title, about, isWide = false) {
  const made = element("section", { id, ...(isWide ? { class: "wide" } : {}) });
  made.appendChild(element("h2", {}, title));
  if (about) made.appendChild(element("p", {}, about));
  document.getElementById("charts").appendChild(made);
  return made;
}

function plot(parent, width, height) { return shape(parent, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img" }); }

const FRAME = { left: 62, right: 14, top: 10, bottom: 34 };

// Axes with ticks; -> the scales of x and y.
function axes(svg, width, height, xs, ys, names, logs = [false, false]) {
  const x = scale(xs, [FRAME.left, width - FRAME.right], logs[0]);
  const y = scale(ys, [height - FRAME.bottom, FRAME.top], logs[1]);
  for (const tick of y.ticks) {
    shape(svg, "line", { class: "grid", x1: FRAME.left, x2: width - FRAME.right, y1: y(tick), y2: y(tick) });
    label(svg, FRAME.left - 6, y(tick) + 4, short(tick), "end");
  }
  for (const tick of x.ticks) label(svg, x(tick), height - FRAME.bottom + 15, short(tick));
  label(svg, (FRAME.left + width - FRAME.right) / 2, height - 4, names[0]);
  label(svg, FRAME.left, FRAME.top - 1, names[1], "start");
  return [x, y];
}

// A field whose condition does not hold is not in the trial's configuration.
function has(trial, field) { return field.name in trial.config; }

function about(trial) {
  const config = data.fields.filter((field) => has(trial, field)).map((field) => `${field.name}=${short(trial.config[field.name])}`).join(", ");
  return `trial ${trial.id}, ${trial.status}: ${data.metric} ${short(trial.best)} at t=${trial.best_t}; ${config}`;
}

// From the worst (pale) to the best (strong).
function shade(part) {
  const hue = 215 - 175 * (1 - part);
  return `hsl(${hue} 75% ${62 - 22 * part}%)`;
}

// ---- charts --------------------------------------------------------------------------------------

function drawHead() {
  document.getElementById("title").textContent = `${data.title}: ${minimise ? "lowest" : "highest"} ${data.metric}`;
  const counts = {};
  for (const trial of data.trials) counts[trial.status] = (counts[trial.status] || 0) + 1;
  const parts = Object.entries(counts).map(([status, count]) => `${count} ${status}`);
  const early = data.ended_early ? `; ended early: ${data.ended_early}` : "";
  document.getElementById("summary").textContent = `${data.trials.length} trials in ${seconds(data.seconds)}: ${parts.join(", ")}${early}`;
  const best = data.trials.find((trial) => trial.id === data.best);
  document.getElementById("best").textContent = best ? "Best: " + about(best) : "No trial reported a finite value.";
}

function drawHistory() {
  const ended = data.trials.filter((trial) => trial.best !== null).sort((a, b) => a.best_at - b.best_at);
  const svg = plot(section("history", "History", "The best value of each trial, and the best so far, by the time at which it was reported."), 560, 300);
  const values = ended.map((trial) => trial.best);
  const [x, y] = axes(svg, 560, 300, [0, Math.max(data.seconds, 1e-9)], extent(values), ["seconds", data.metric], [false, wantsLog(values)]);
  let best = null;
  const line = [];
  for (const trial of ended) {
    shape(svg, "circle", { class: "dot", cx: x(trial.best_at), cy: y(trial.best), r: 3 }, about(trial));
    const isBetter = best === null || (minimise ? trial.best < best : trial.best > best);
    if (isBetter && best !== null) line.push(`${x(trial.best_at)},${y(best)}`);
    if (isBetter) best = trial.best;
    line.push(`${x(trial.best_at)},${y(best)}`);
  }
  if (best !== null) line.push(`${x(data.seconds)},${y(best)}`);
  shape(svg, "polyline", { class: "best-so-far", points: line.join(" ") });
}

// The first two objectives of each trial's last report with all of them; who is in the front is marked.
function drawPareto() {
  if (data.objectives.length < 2) return;
  const names = data.objectives.map((objective) => objective.metric);
  const parent = section("pareto", "Pareto front", `The last values of ${names[0]} and ${names[1]} of each trial; the marked ones no other trial is better than in all of ${names.join(", ")}.`);
  const svg = plot(parent, 560, 300);
  const trials = data.trials.filter((trial) => trial.values.length > 1 && finite(trial.values.slice(0, 2)).length === 2);
  const along = [0, 1].map((index) => trials.map((trial) => trial.values[index]));
  const [x, y] = axes(svg, 560, 300, extent(along[0]), extent(along[1]), names, along.map(wantsLog));
  const front = new Set(data.pareto);
  for (const trial of [...trials].sort((a, b) => front.has(a.id) - front.has(b.id))) {
    const values = names.map((name, index) => `${name} ${short(trial.values[index])}`).join(", ");
    shape(svg, "circle", { class: front.has(trial.id) ? "pareto-dot is-front" : "pareto-dot", cx: x(trial.values[0]), cy: y(trial.values[1]), r: front.has(trial.id) ? 4 : 3 },
      `${values}; ${about(trial)}`);
  }
}

function drawCurves() {
  const svg = plot(section("curves", "Learning curves", "What each trial reported, coloured by how it ended; the best one is thick."), 560, 300);
  const points = data.trials.flatMap((trial) => trial.curve);
  const values = points.map((point) => point[1]);
  const [x, y] = axes(svg, 560, 300, extent(points.map((point) => point[0])), extent(values), ["t (reports)", data.metric], [false, wantsLog(values)]);
  const order = [...data.trials].sort((a, b) => (a.id === data.best) - (b.id === data.best));
  for (const trial of order) {
    const line = trial.curve.filter((point) => Number.isFinite(point[1])).map((point) => `${x(point[0])},${y(point[1])}`);
    const isBest = trial.id === data.best ? " is-best" : "";
    shape(svg, "polyline", { class: `curve ${trial.status}${isBest}`, points: line.join(" ") }, about(trial));
  }
}

// A field as an axis: numbers by their value, others by their place among the values.
function fieldScale(field, range) {
  if (field.values) {
    const at = scale([-0.5, field.values.length - 0.5], range);
    const place = (value) => at(field.values.indexOf(value));
    place.ticks = field.values.map((value, index) => [short(value), at(index)]);
    return place;
  }
  const at = scale(extent(data.trials.map((trial) => trial.config[field.name])), range, field.log);
  const place = (value) => at(value);
  place.ticks = at.ticks.map((tick) => [short(tick), at(tick)]);
  return place;
}

function metricShade() {
  const [low, high] = extent(data.trials.map((trial) => trial.best));
  return (trial) => shade(minimise ? (high - trial.best) / (high - low) : (trial.best - low) / (high - low));
}

function drawParallel() {
  const width = 1120, height = 330, top = 30, bottom = 300;
  const svg = plot(section("parallel", "Parallel coordinates", "Each line is a trial; the stronger its colour, the better it did.", true), width, height);
  const names = [...data.fields.map((field) => field.name), data.metric];
  const step = (width - 160) / Math.max(names.length - 1, 1);
  const scales = data.fields.map((field) => fieldScale(field, [bottom, top]));
  const metric = scale(extent(data.trials.map((trial) => trial.best)), [bottom, top]);
  const last = (value) => metric(value);
  last.ticks = metric.ticks.map((tick) => [short(tick), metric(tick)]);
  scales.push(last);
  const colour = metricShade();
  const trials = data.trials.filter((trial) => trial.best !== null);
  trials.sort((a, b) => (minimise ? b.best - a.best : a.best - b.best));
  for (const trial of trials) {
    const at = (name, index) => `${80 + index * step},${scales[index](index < data.fields.length ? trial.config[name] : trial.best)}`;
    const passed = names.map((name, index) => (index === data.fields.length || has(trial, data.fields[index]) ? at(name, index) : ""));
    shape(svg, "polyline", { class: "line", points: passed.filter((point) => point).join(" "), fill: "none", stroke: colour(trial), "stroke-opacity": 0.55 }, about(trial));
  }
  names.forEach((name, index) => {
    const x = 80 + index * step;
    shape(svg, "line", { class: "axis", x1: x, x2: x, y1: top, y2: bottom });
    label(svg, x, top - 12, name);
    for (const [text, y] of scales[index].ticks) label(svg, x - 5, y + 4, text, "end");
  });
}

function drawSlices() {
  const parent = section("slices", "Slices", "The best value of each trial over each field.", true);
  const values = data.trials.map((trial) => trial.best);
  const colour = metricShade();
  const columns = Math.min(data.fields.length, 4) || 1, width = 280, height = 220;
  const rows = Math.ceil(data.fields.length / columns);
  const svg = plot(parent, columns * width, rows * height);
  data.fields.forEach((field, index) => {
    const left = (index % columns) * width, top = Math.floor(index / columns) * height;
    const x = fieldScale(field, [left + 58, left + width - 12]);
    const y = scale(extent(values), [top + height - 40, top + 14], wantsLog(values));
    shape(svg, "rect", { class: "axis", x: left + 54, y: top + 8, width: width - 62, height: height - 44 });
    for (const tick of [y.ticks[0], y.ticks[4]]) label(svg, left + 50, y(tick) + 4, short(tick), "end");
    const ticks = field.values ? x.ticks : [x.ticks[0], x.ticks[4]];
    for (const [text, at] of ticks) label(svg, at, top + height - 22, text);
    label(svg, left + width / 2 + 20, top + height - 6, field.name);
    for (const trial of data.trials) {
      if (trial.best === null || !has(trial, field)) continue;
      shape(svg, "circle", { class: "slice-dot", cx: x(trial.config[field.name]), cy: y(trial.best), r: 3, fill: colour(trial), "fill-opacity": 0.75 }, about(trial));
    }
  });
}

function drawImportance() {
  const parent = section("importance", "Importance", "How much the best tenth of the trials differ from all of them in each field (PED-ANOVA).");
  const rows = data.importance, width = 560, row = 24;
  const svg = plot(parent, width, Math.max(rows.length, 1) * row + 10);
  rows.forEach(([name, part], index) => {
    const y = index * row + 6;
    label(svg, 150, y + 13, name, "end");
    shape(svg, "rect", { class: "bar", x: 158, y, width: Math.max(part, 0) * (width - 230), height: row - 8 });
    label(svg, 164 + part * (width - 230), y + 13, `${Math.round(part * 100)} %`, "start");
  });
  if (rows.length === 0) parent.appendChild(element("p", {}, "Too few trials have a value."));
}

// Each attempt in the first lane that is free when it begins.
function drawTimeline() {
  const parent = section("timeline", "Timeline", "When each attempt ran; a row is a place that one gang after another took.", true);
  const lanes = [];
  const spans = data.attempts.map((attempt) => {
    let lane = lanes.findIndex((end) => end <= attempt.begin);
    if (lane < 0) lane = lanes.push(0) - 1;
    lanes[lane] = attempt.end;
    return { ...attempt, lane };
  });
  const width = 1120, row = Math.max(4, Math.min(18, 500 / Math.max(lanes.length, 1)));
  const height = lanes.length * row + 40;
  const svg = plot(parent, width, height);
  const x = scale([0, Math.max(data.seconds, 1e-9)], [20, width - 20]);
  const byId = new Map(data.trials.map((trial) => [trial.id, trial]));
  for (const span of spans) {
    const trial = byId.get(span.trial);
    shape(svg, "rect", { class: `span ${span.status}`, x: x(span.begin), y: span.lane * row + 2, width: Math.max(x(span.end) - x(span.begin), 0.5), height: row - 2 },
      `attempt ${span.attempt} of ${about(trial)}; ${seconds(span.begin)} to ${seconds(span.end)}`);
  }
  for (const tick of x.ticks) label(svg, x(tick), height - 8, seconds(tick));
}

function table(parent, heads, rows) {
  const made = element("table");
  const head = element("tr");
  const isNumber = (index) => rows.length > 0 && typeof rows[0][index] === "number";
  heads.forEach((name, index) => head.appendChild(element("th", isNumber(index) ? { class: "number" } : {}, name)));
  made.appendChild(head);
  for (const cells of rows) {
    const row = element("tr");
    for (const cell of cells) row.appendChild(element("td", typeof cell === "number" ? { class: "number" } : {}, short(cell)));
    made.appendChild(row);
  }
  parent.appendChild(made);
}

function drawRungs() {
  if (data.rungs.length === 0) return;
  const parent = section("rungs", "Rungs", "Where trials were judged: how many came, how many were stopped or left, and what the next one has to meet.");
  table(parent, ["bracket", "rung", "t", "came", "stopped", "not finite", "cutoff"],
    data.rungs.map((rung) => [rung.bracket, rung.rung, rung.t, rung.reached, rung.stopped, rung.not_finite, rung.cutoff]));
}

// Who took over whom: the members of the population by number, t to the right.
function drawPopulation() {
  const takeovers = data.trials.flatMap((trial) => trial.takeovers.map((takeover) => ({ ...takeover, trial: trial.id })));
  if (takeovers.length === 0) return;
  const parent = section("population", "Population", "Each arrow is a trial that went on from another one's checkpoint.", true);
  const width = 1120, row = Math.max(8, Math.min(22, 500 / data.trials.length)), height = data.trials.length * row + 40;
  const svg = plot(parent, width, height);
  const x = scale([0, Math.max(...data.trials.map((trial) => trial.t), 1)], [60, width - 20]);
  const y = (id) => id * row + row / 2 + 2;
  for (const trial of data.trials) {
    shape(svg, "line", { class: "grid", x1: x(0), x2: x(trial.t), y1: y(trial.id), y2: y(trial.id) });
    label(svg, 52, y(trial.id) + 4, String(trial.id), "end");
  }
  for (const takeover of takeovers) {
    shape(svg, "line", { class: "arrow", x1: x(takeover.donor_t), y1: y(takeover.donor), x2: x(takeover.t), y2: y(takeover.trial) },
      `trial ${takeover.trial} at t=${takeover.t} goes on from trial ${takeover.donor} at t=${takeover.donor_t}`);
    shape(svg, "circle", { class: "dot", cx: x(takeover.t), cy: y(takeover.trial), r: 3 });
  }
  if (data.schedule.length > 0)
    table(parent, ["after t", "trial", "configuration on the way to the best value"],
      data.schedule.map((part) => [part.after_t, part.trial, Object.entries(part.config).map(([name, value]) => `${name}=${short(value)}`).join(", ")]));
}

function drawTrials() {
  const parent = section("trials", "Trials", data.trials.length > 200 ? "The best 200." : "", true);
  const worst = minimise ? Infinity : -Infinity;
  const value = (trial) => (trial.best === null ? worst : trial.best);
  const trials = [...data.trials].sort((a, b) => (minimise ? value(a) - value(b) : value(b) - value(a)) || a.id - b.id).slice(0, 200);
  table(parent, ["trial", "status", "t", "best", "at t", ...data.fields.map((field) => field.name), "why"],
    trials.map((trial) => [trial.id, trial.status, trial.t, trial.best, trial.best_t, ...data.fields.map((field) => (has(trial, field) ? trial.config[field.name] : "-")), trial.error || trial.reason]));
}

for (const draw of [drawHead, drawHistory, drawPareto, drawCurves, drawImportance, drawRungs, drawParallel, drawSlices, drawTimeline, drawPopulation, drawTrials]) draw();
document.body.dataset.drawn = "true";
