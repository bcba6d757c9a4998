"use strict";

// The parts that report.js draws charts of: elements, scales, axes, tables. What stands in #data is what html_report.cpp puts
// there. All texts are set as texts, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const minimise = data.mode === "min";
const SVG = "http://www.w3.org/2000/svg";

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

function label(parent, x, y, text, anchor = "middle", hint = "") {
  const made = shape(parent, "text", { x, y, "text-anchor": anchor });
  made.textContent = text;
  if (hint && hint !== text) made.appendChild(document.createElementNS(SVG, "title")).textContent = hint;
}

// A text that has room for so many letters.
function clipped(text, most) { return text.length > most ? text.slice(0, most - 1) + "\u2026" : text; }

// What the colours mean: [class, text].
function legend(parent, entries) {
  const made = element("p", { class: "legend" });
  for (const [kind, text] of entries) {
    made.appendChild(element("span", { class: `key ${kind}` }));
    made.appendChild(document.createTextNode(text + " "));
  }
  parent.appendChild(made);
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

// Round values between both ends, some five to seven of them.
function roundTicks(low, high, isWhole) {
  const rough = (high - low) / 7, power = 10 ** Math.floor(Math.log10(rough));
  let step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  if (isWhole) step = Math.max(1, Math.round(step));
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

// Powers of ten where there are enough of them.
function logTicks(low, high) {
  const powers = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); 10 ** power <= high * (1 + 1e-9); ++power) powers.push(Number((10 ** power).toPrecision(12)));
  if (powers.length > 1) return powers.filter((_, index) => index % Math.ceil(powers.length / 6) === 0);
  return [low, Math.sqrt(low * high), high];
}

// From values to pixels. Logarithmic where that is asked for and possible.
function scale([low, high], [from, to], isLog = false, isWhole = false) {
  const log = isLog && low > 0;
  const place = log ? Math.log : (x) => x;
  const span = place(high) - place(low) || 1;
  const at = (value) => from + ((place(value) - place(low)) / span) * (to - from);
  at.ticks = log ? logTicks(low, high) : roundTicks(low, high, isWhole);
  at.ends = [low, high];
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

const FRAME = { left: 62, right: 14, top: 26, bottom: 34 };

// Axes with ticks; -> the scales of x and y.
function axes(svg, width, height, xs, ys, names, logs = [false, false], isWhole = false) {
  const x = scale(xs, [FRAME.left, width - FRAME.right], logs[0], isWhole);
  const y = scale(ys, [height - FRAME.bottom, FRAME.top], logs[1]);
  for (const tick of y.ticks) {
    shape(svg, "line", { class: "grid", x1: FRAME.left, x2: width - FRAME.right, y1: y(tick), y2: y(tick) });
    label(svg, FRAME.left - 6, y(tick) + 4, short(tick), "end");
  }
  for (const tick of x.ticks) label(svg, x(tick), height - FRAME.bottom + 15, short(tick));
  label(svg, (FRAME.left + width - FRAME.right) / 2, height - 4, names[0]);
  label(svg, 4, 11, names[1], "start");
  return [x, y];
}

// A field whose condition does not hold is not in the trial's configuration.
function has(trial, field) { return field.name in trial.config; }

// Whether it may be the best one.
function isCandidate(trial) { return trial.best !== null && trial.status !== "errored"; }

function about(trial) {
  const config = data.fields.filter((field) => has(trial, field)).map((field) => `${field.name}=${short(trial.config[field.name])}`).join(", ");
  return `trial ${trial.id}, ${trial.status}: ${data.metric} ${short(trial.best)} at t=${trial.best_t}; ${config}`;
}

// How strong the colour of a trial is: from the worst (pale) to the best.
function metricStrength() {
  const [low, high] = extent(data.trials.map((trial) => trial.best));
  return (trial) => 0.25 + 0.75 * (minimise ? (high - trial.best) / (high - low) : (trial.best - low) / (high - low)) ** 2;
}

function table(parent, heads, rows) {
  const made = element("table");
  const head = element("tr");
  const kind = heads.map((_, index) => (rows.some((row) => typeof row[index] === "number") ? { class: "number" } : {}));
  heads.forEach((name, index) => head.appendChild(element("th", kind[index], name)));
  made.appendChild(head);
  for (const cells of rows) {
    const row = element("tr");
    cells.forEach((cell, index) => row.appendChild(element("td", kind[index], short(cell))));
    made.appendChild(row);
  }
  parent.appendChild(made);
}
