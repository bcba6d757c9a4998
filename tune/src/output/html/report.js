// The charts of the report, one after the other, and what they share of fields and places.

// What to say of a run that was under way when the page was written. Its driver writes another one now and then: then the page
// loads itself anew, as long as there are new ones.
function progress() {
  if (!data.under_way) return "";
  const then = `; the run was under way at ${new Date(1000 * data.written).toLocaleString()}`;
  if (!data.every) return then;
  if (Date.now() / 1000 - data.written > 2 * data.every + 30) return `${then}, and nobody has written this page since: \`troupe tune show\` says whether the run goes on`;
  setTimeout(() => location.reload(), 15000);
  return `${then}, and this page loads itself anew`;
}

function drawHead() {
  document.getElementById("title").textContent = data.objectives.length > 1 ? `${data.title}: ${data.objectives.map(({ metric, mode }) => `${mode === "min" ? "low" : "high"} ${metric}`).join(", ")}` : `${data.title}: ${minimise ? "lowest" : "highest"} ${data.metric}`;
  const counts = {};
  for (const trial of data.trials) counts[trial.status] = (counts[trial.status] || 0) + 1;
  const parts = Object.entries(counts).map(([status, count]) => `${count} ${status}`);
  if (data.not_begun) parts.push(`${data.not_begun} not begun`);
  const early = data.ended_early ? `; ended early: ${data.ended_early}` : "";
  document.getElementById("summary").textContent = `${data.trials.length} trials in ${seconds(data.seconds)}: ${parts.join(", ")}${early}${progress()}`;
  const best = data.trials.find((trial) => trial.id === data.best);
  const checkpoint = data.best_checkpoint ? `; checkpoint ${data.best_checkpoint}` : "";
  const front = data.objectives.length > 1 ? `Pareto front: ${data.pareto.length} of ${data.trials.length} trials; ${minimise ? "lowest" : "highest"} ${data.metric}: ` : "Best: ";
  document.getElementById("best").textContent = best ? front + about(best) + checkpoint : "No best trial: " + (data.trials.some((trial) => trial.best !== null) ? "each that reported a finite value failed." : "none reported a finite value.");
}

function drawHistory() {
  const ended = data.trials.filter((trial) => trial.best !== null).sort((a, b) => a.best_at - b.best_at);
  const svg = plot(section("history", "History", "The best value of each trial, and the best so far of those that did not fail, by the time at which it was reported."), 560, 300);
  const values = ended.map((trial) => trial.best);
  const [x, y] = axes(svg, 560, 300, [0, Math.max(data.seconds, 1e-9)], extent(values), ["seconds", data.metric], [false, wantsLog(values)]);
  let best = null;
  const line = [];
  for (const trial of ended) {
    shape(svg, "circle", { class: "dot", cx: x(trial.best_at), cy: y(trial.best), r: 3 }, about(trial));
    if (!isCandidate(trial)) continue;
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
  const limits = data.constraints.map(({ metric, bound, limit }) => `${metric} ${bound} ${short(limit)}`).join(", ");
  const among = limits ? `trial that keeps to the limits (${limits})` : "trial";
  const hollow = limits ? " The hollow ones are beyond the limits." : "";
  const parent = section("pareto", "Pareto front", `The last values of ${names[0]} and ${names[1]} of each trial; of the marked ones, no other ${among} is at least as good in all of ${names.join(", ")} and better in one.${hollow}`);
  const svg = plot(parent, 560, 300);
  const trials = data.trials.filter((trial) => trial.values.length > 1 && finite(trial.values.slice(0, 2)).length === 2);
  const along = [0, 1].map((index) => trials.map((trial) => trial.values[index]));
  const [x, y] = axes(svg, 560, 300, extent(along[0]), extent(along[1]), names, along.map(wantsLog));
  const front = new Set(data.pareto);
  for (const trial of [...trials].sort((a, b) => front.has(a.id) - front.has(b.id))) {
    const values = names.map((name, index) => `${name} ${short(trial.values[index])}`).join(", ");
    const kind = front.has(trial.id) ? " is-front" : trial.violation === 0 ? "" : " is-beyond";
    const beyond = kind === " is-beyond" ? `; violation ${trial.violation === null ? "infinite" : short(trial.violation)}` : "";
    shape(svg, "circle", { class: `pareto-dot${kind}`, cx: x(trial.values[0]), cy: y(trial.values[1]), r: front.has(trial.id) ? 4 : 3 },
      `${values}${beyond}; ${about(trial)}`);
  }
}

// The curve of a metric that is not the searched one comes apart from the trial.
function curveOf(trial, metric) {
  if (metric === data.metric) return trial.curve;
  return data.metrics.find(({ name }) => name === metric).curves[trial.id] || [];
}

function drawCurvesOf(parent, metric) {
  const svg = plot(parent, 560, 300);
  const curves = new Map(data.trials.map((trial) => [trial.id, curveOf(trial, metric)]));
  const points = [...curves.values()].flat();
  const values = points.map((point) => point[1]);
  const [x, y] = axes(svg, 560, 300, extent(points.map((point) => point[0])), extent(values), ["t (reports)", metric], [false, wantsLog(values)], true);
  const order = [...data.trials].sort((a, b) => (a.id === data.best) - (b.id === data.best));
  for (const trial of order) {
    const line = curves.get(trial.id).filter((point) => Number.isFinite(point[1])).map((point) => `${x(point[0])},${y(point[1])}`);
    const isBest = trial.id === data.best ? " is-best" : "";
    if (line.length === 1) {  // a line of one point would not be seen
      const [cx, cy] = line[0].split(",");
      shape(svg, "circle", { class: `curve-dot ${trial.status}${isBest}`, cx, cy, r: isBest ? 5 : 3 }, about(trial));
      continue;
    }
    shape(svg, "polyline", { class: `curve ${trial.status}${isBest}`, points: line.join(" ") }, about(trial));
  }
  return svg;
}

// The metric that the page's address names, as report.html#metric=NAME.
function metricAsked() {
  if (!location.hash.startsWith("#metric=")) return "";
  const name = location.hash.slice("#metric=".length);
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

// With several metrics one of them is chosen.
function drawCurves() {
  const later = data.every ? " Those of other metrics are in the page once the run is over." : "";
  const parent = section("curves", "Learning curves", `What each trial reported, coloured by how it ended; the best one is thick.${later}`);
  const names = [data.metric, ...data.metrics.map(({ name }) => name)];
  const first = names.includes(metricAsked()) ? metricAsked() : data.metric;
  if (data.metrics_left_out) parent.appendChild(element("p", { class: "warning", role: "note" }, data.metrics_left_out));
  if (names.length === 1) return void drawCurvesOf(parent, first);
  const choice = parent.appendChild(element("p")).appendChild(element("label", {}, "Metric: ")).appendChild(element("select", { id: "metric" }));
  for (const name of names) choice.appendChild(element("option", name === first ? { selected: "" } : {}, name));
  let drawn = drawCurvesOf(parent, first);
  choice.addEventListener("change", () => {
    drawn.remove();
    drawn = drawCurvesOf(parent, choice.value);
    history.replaceState(null, "", `#metric=${encodeURIComponent(choice.value)}`);
  });
}

// The fields of the space, and after them those that only the trials have: computed ones and
// constants. Values that trials have and a field's choice has not stand behind those of the choice.
function completeFields() {
  const had = new Map();
  for (const trial of data.trials) {
    for (const [name, value] of Object.entries(trial.config))
      had.set(name, (had.get(name) || new Set()).add(value));
  }
  for (const field of data.fields) {
    field.hasAxis = true;
    if (field.values) field.values = [...new Set([...field.values, ...(had.get(field.name) || [])])];
    had.delete(field.name);
  }
  for (const [name, values] of had) {
    const all = [...values], isNumber = finite(all).length === all.length, [low, high] = extent(all);
    const field = { name, log: isNumber && low > 0 && high / low >= 1000 };
    if (!isNumber) field.values = all;
    // A constant would be one more place that all trials share, and names of files hide each other.
    field.hasAxis = all.length > 1 && (isNumber || all.length <= 30);
    data.fields.push(field);
  }
}

// Says of a field under a condition how many trials use it; empty: all do.
function usage(field) {
  const using = data.trials.filter((trial) => has(trial, field)).length;
  return using === data.trials.length ? "" : `in ${using} of ${data.trials.length} trials`;
}

// A field as an axis: numbers by their value, others by their place among the values.
function fieldScale(field, range, most = 7) {
  if (field.values) {
    const at = scale([-0.5, field.values.length - 0.5], range);
    const place = (value) => at(field.values.indexOf(value));
    place.labels = tickTexts(field.values).map((text, index) => [text, at(index)]);
    return place;
  }
  return scale(extent(data.trials.map((trial) => trial.config[field.name])), range, field.log, false, most);
}

function drawParallel() {
  const width = 1120, height = 330, top = 30, bottom = 300;
  const svg = plot(section("parallel", "Parallel coordinates", "Each line is a trial; the stronger its colour, the better it did. A line is broken at a field that its trial does not use.", true), width, height);
  const fields = data.fields.filter((field) => field.hasAxis);
  const step = (width - 160) / Math.max(fields.length, 1), x = (index) => 80 + index * step;
  const scales = fields.map((field) => fieldScale(field, [bottom, top]));
  const metric = scale(extent(data.trials.map((trial) => trial.best)), [bottom, top]);
  const strength = metricStrength();
  const trials = data.trials.filter((trial) => trial.best !== null);
  trials.sort((a, b) => (minimise ? b.best - a.best : a.best - b.best));
  for (const trial of trials) {
    const pieces = [[]];
    fields.forEach((field, index) => {
      if (has(trial, field)) pieces[pieces.length - 1].push(`${x(index)} ${scales[index](trial.config[field.name])}`);
      else pieces.push([]);
    });
    pieces[pieces.length - 1].push(`${x(fields.length)} ${metric(trial.best)}`);
    // A place between two fields that the trial does not use is a dash: a line of one point is none.
    const d = pieces.filter((piece) => piece.length > 0).map((piece) => `M ${piece.join(" L ")}${piece.length > 1 ? "" : " h 10"}`);
    shape(svg, "path", { class: "line", d: d.join(" "), "stroke-opacity": strength(trial) }, about(trial));
  }
  [...fields, { name: data.metric }].forEach(({ name }, index) => {
    shape(svg, "line", { class: "axis", x1: x(index), x2: x(index), y1: top, y2: bottom });
    label(svg, x(index), top - 12, name);
    if (index < fields.length && usage(fields[index])) label(svg, x(index), bottom + 18, usage(fields[index]));
    const { labels } = index < fields.length ? scales[index] : metric;
    for (const [text, y] of labels) label(svg, x(index) - 5, y + 4, clipped(text, 22), "end", text);
  });
}

function drawSlices() {
  const parent = section("slices", "Slices", "The best value of each trial over each field.", true);
  const values = data.trials.map((trial) => trial.best);
  const strength = metricStrength();
  const fields = data.fields.filter((field) => field.hasAxis);
  const columns = Math.min(fields.length, 4) || 1, width = 1120 / columns, height = 220;
  const rows = Math.ceil(fields.length / columns);
  const svg = plot(parent, columns * width, rows * height);
  fields.forEach((field, index) => {
    const left = (index % columns) * width, top = Math.floor(index / columns) * height;
    const x = fieldScale(field, [left + 58, left + width - 12], 4);
    const y = scale(extent(values), [top + height - 40, top + 14], wantsLog(values));
    shape(svg, "rect", { class: "axis", x: left + 54, y: top + 8, width: width - 62, height: height - 44 });
    for (const [text, at] of y.labels) label(svg, left + 50, at + 4, text, "end");
    const room = field.values ? Math.floor((width - 70) / field.values.length / 6.5) : 12;
    for (const [text, at] of x.labels) label(svg, at, top + height - 22, clipped(text, Math.max(room, 2)), "middle", text);
    label(svg, left + width / 2 + 20, top + height - 6, [field.name, usage(field)].filter((text) => text).join(", "));
    for (const trial of data.trials) {
      if (trial.best === null || !has(trial, field)) continue;
      shape(svg, "circle", { class: "slice-dot", cx: x(trial.config[field.name]), cy: y(trial.best), r: 3, "fill-opacity": strength(trial) }, about(trial));
    }
  });
}

function drawImportance() {
  const parent = section("importance", "Importance", "fANOVA: what part of the metric's variance each field alone explains; the rest is decided by several together. " +
    "PED-ANOVA: how much the best tenth of the trials differ from all of them in each field.");
  const { warning, fields } = data.importance, width = 560, row = 40;
  if (warning) parent.appendChild(element("p", { class: "warning", role: "note" }, warning));
  if (fields.length === 0) return;
  legend(parent, [["bar", "fANOVA"], ["bar-beside", "PED-ANOVA"]]);
  const svg = plot(parent, width, fields.length * row + 10);
  const bar = (kind, y, part, without) => {
    const length = (part ?? 0) * (width - 230);
    shape(svg, "rect", { class: kind, x: 158, y, width: length, height: 14 });
    label(svg, 164 + length, y + 11, part === null ? without : `${Math.round(part * 100)} %`, "start");
  };
  fields.forEach((field, index) => {
    const y = index * row + 6;
    label(svg, 150, y + 19, clipped(field.name, 24), "end", field.name);
    bar("bar", y, field.fanova, "not in every trial");
    bar("bar-beside", y + 15, field.ped_anova, "in too few trials");
  });
}

// The rows of the timeline: a slot of a node each, in the order of names. Attempts of a journal that does not say where they
// ran have rows of their own, each in the first one that is free when it begins.
function timelineRows() {
  const rows = new Map();
  const put = (node, slot, attempt) => {
    const key = JSON.stringify([node, slot]);
    if (!rows.has(key)) rows.set(key, { node, slot, attempts: [] });
    rows.get(key).attempts.push(attempt);
  };
  const ends = [];
  for (const attempt of data.attempts) {
    for (const [node, slot] of attempt.places) put(node, slot, attempt);
    if (attempt.places.length > 0) continue;
    let row = ends.findIndex((end) => end <= attempt.begin);
    if (row < 0) row = ends.push(0) - 1;
    ends[row] = attempt.end;
    put("(not recorded)", row, attempt);
  }
  return [...rows.values()].sort((a, b) => a.node.localeCompare(b.node, "en", { numeric: true }) || a.slot - b.slot);
}

function drawTimeline() {
  const parent = section("timeline", "Timeline", "When and where each attempt ran: a row is a slot of a node, which one rank after another had.", true);
  legend(parent, [...new Set(data.attempts.map((attempt) => attempt.status))].map((status) => [status, status]));
  const rows = timelineRows();
  const width = 1120, left = 216, row = Math.max(6, Math.min(20, 640 / Math.max(rows.length, 1)));
  const height = rows.length * row + 40;
  const svg = plot(parent, width, height);
  const x = scale([0, Math.max(data.seconds, 1e-9)], [left, width - 24]);
  const byId = new Map(data.trials.map((trial) => [trial.id, trial]));
  rows.forEach(({ node, slot, attempts }, index) => {
    const y = index * row + 2, isFirst = index === 0 || rows[index - 1].node !== node;
    if (isFirst && index > 0) shape(svg, "line", { class: "grid", x1: 6, x2: width - 24, y1: y - 1, y2: y - 1 });
    if (isFirst) label(svg, left - 36, y + 10, clipped(node, 28), "end", node);
    if (row >= 12) label(svg, left - 8, y + 12, String(slot), "end");
    for (const attempt of attempts) {
      shape(svg, "rect", { class: `span ${attempt.status}`, x: x(attempt.begin), y: y + 1, width: Math.max(x(attempt.end) - x(attempt.begin), 0.5), height: row - 3 },
        `${node}, slot ${slot}: attempt ${attempt.attempt} of ${about(byId.get(attempt.trial))}; ${seconds(attempt.begin)} to ${seconds(attempt.end)}`);
    }
  });
  for (const tick of x.ticks) label(svg, x(tick), height - 8, seconds(tick));
}

function drawRungs() {
  if (data.rungs.length === 0) return;
  const parent = section("rungs", "Rungs", "Where trials were judged: how many came, how many were stopped or left, and what the next one has to meet.");
  legend(parent, [["rung-passed", "went on"], ["stopped", "stopped or left"], ["errored", "not finite"]]);
  const width = 560, row = 24, left = 120, most = Math.max(...data.rungs.map((rung) => rung.reached), 1);
  const svg = plot(parent, width, data.rungs.length * row + 8);
  const x = scale([0, most], [left, width - 60]);
  data.rungs.forEach((rung, index) => {
    const y = index * row + 4, passed = rung.reached - rung.stopped - rung.not_finite;
    label(svg, left - 8, y + 13, `bracket ${rung.bracket}, t=${rung.t}`, "end");
    let from = 0;
    for (const [kind, count] of [["rung-passed", passed], ["stopped", rung.stopped], ["errored", rung.not_finite]]) {
      if (count > 0) shape(svg, "rect", { class: `rung-part ${kind}`, x: x(from), y, width: x(from + count) - x(from), height: row - 8 }, `${count} of ${rung.reached}`);
      from += Math.max(count, 0);
    }
    label(svg, x(rung.reached) + 6, y + 13, String(rung.reached), "start");
  });
  table(parent, ["bracket", "rung", "t", "came", "stopped", "not finite", "cutoff"],
    data.rungs.map((rung) => [rung.bracket, rung.rung, rung.t, rung.reached, rung.stopped, rung.not_finite, rung.cutoff]));
}

// Who took over whom: the members of the population by number, t to the right.
function drawPopulation() {
  const takeovers = data.trials.flatMap((trial) => trial.takeovers.map((takeover) => ({ ...takeover, trial: trial.id })));
  if (takeovers.length === 0) return;
  const parent = section("population", "Population", "Each line comes from a trial's checkpoint, and ends in the dot of the trial that went on from it.", true);
  const width = 1120, row = Math.max(8, Math.min(22, 500 / data.trials.length)), height = data.trials.length * row + 40;
  const svg = plot(parent, width, height);
  const x = scale([0, Math.max(...data.trials.map((trial) => trial.t), 1)], [60, width - 20], false, true);
  const y = (id) => id * row + row / 2 + 2;
  for (const trial of data.trials) {
    shape(svg, "line", { class: "grid", x1: x(0), x2: x(trial.t), y1: y(trial.id), y2: y(trial.id) });
    if (row >= 12 || trial.id % 5 === 0) label(svg, 52, y(trial.id) + 4, String(trial.id), "end");
  }
  for (const takeover of takeovers) {
    const from = [x(takeover.donor_t), y(takeover.donor)], to = [x(takeover.t), y(takeover.trial)];
    // Bent, so that lines between several trials at one t do not lie on each other.
    const bend = [(from[0] + to[0]) / 2 - 5 - Math.abs(from[1] - to[1]) / 5, (from[1] + to[1]) / 2];
    shape(svg, "path", { class: "arrow", d: `M ${from.join(" ")} Q ${bend.join(" ")} ${to.join(" ")}` },
      `trial ${takeover.trial} at t=${takeover.t} goes on from trial ${takeover.donor} at t=${takeover.donor_t}`);
    shape(svg, "circle", { class: "dot", cx: to[0], cy: to[1], r: 3 });
  }
  for (const [text, at] of x.labels) label(svg, at, height - 8, `t=${text}`);
  if (data.schedule.length > 0)
    table(parent, ["after t", "trial", "configuration on the way to the best value"],
      data.schedule.map((part) => [part.after_t, part.trial, Object.keys(part.config).map((name) => `${name}=${short(told(part, name))}`).join(", ")]));
}

function drawTrials() {
  const parent = section("trials", "Trials", data.trials.length > 200 ? "The best 200." : "", true);
  const worst = minimise ? Infinity : -Infinity;
  const value = (trial) => (isCandidate(trial) ? trial.best : worst);
  const trials = [...data.trials].sort((a, b) => (minimise ? value(a) - value(b) : value(b) - value(a)) || a.id - b.id).slice(0, 200);
  table(parent, ["trial", "status", "t", "best", "at t", ...data.fields.map((field) => field.name), "why"],
    trials.map((trial) => [trial.id, trial.status, trial.t, trial.best, trial.best_t, ...data.fields.map((field) => (has(trial, field) ? told(trial, field.name) : "-")), trial.error || trial.reason]));
}

completeFields();
for (const draw of [drawHead, drawHistory, drawPareto, drawCurves, drawImportance, drawRungs, drawParallel, drawSlices, drawTimeline, drawPopulation, drawTrials]) draw();
document.body.dataset.drawn = "true";
