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

function short(value, digits = 4) {
  if (typeof value !== "number") return value === null || value === undefined ? "-" : String(value);
  if (!Number.isFinite(value)) return String(value);
  if (Number.isSafeInteger(value)) return String(value);
  return String(Number(value.toPrecision(digits)));
}

// The texts of an axis: with as many digits as it takes for them to differ.
function tickTexts(ticks) {
  const texts = (digits) => ticks.map((tick) => short(tick, digits));
  for (let digits = 4; digits < 17; ++digits)
    if (new Set(texts(digits)).size === ticks.length) return texts(digits);
  return texts(17);
}

function seconds(value) {
  if (value !== 0 && Math.abs(value) < 1) return short(value * 1000, 3) + " ms";
  if (value < 120) return short(Math.round(value * 10) / 10) + " s";
  if (value < 7200) return short(Math.round(value / 6) / 10) + " min";
  return short(Math.round(value / 360) / 10) + " h";
}

function finite(values) { return values.filter((value) => typeof value === "number" && Number.isFinite(value)); }

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of finite(values)) { low = Math.min(low, value); high = Math.max(high, value); }
  if (low > high) return [0, 1];
  return [low, high];
}

// Round values between both ends, in steps of 1, 2 or 5 times a power of ten: two, and not many
// more than `most`.
function roundTicks(low, high, isWhole, most = 7) {
  const rough = high / most - low / most, power = 10 ** Math.floor(Math.log10(rough));
  let step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  if (isWhole) step = Math.max(1, Math.round(step));
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  const ticks = new Set();  // numbers that nearly are equal have fewer than that between them
  for (let i = 0; i <= last - first; ++i) ticks.add(Number(((first + i) * step).toPrecision(15)));
  return ticks.size < 2 && most < 12 ? roundTicks(low, high, isWhole, most + 1) : [...ticks];
}

// Powers of ten where there are enough of them, else 1, 2 and 5 times such powers.
function logTicks(low, high, most) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const between = (factors) => {
    const ticks = [];
    for (let power = first; power <= last; ++power)
      ticks.push(...factors.map((factor) => Number(`${factor}e${power}`)));
    return ticks.filter((tick) => tick > 0 && tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9));
  };
  const powers = between([1]);
  const every = Math.ceil(powers.length / most);
  if (powers.length > 1) return powers.filter((tick) => Math.round(Math.log10(tick)) % every === 0);
  const finer = between([1, 2, 5]);
  return finer.length > 1 ? finer : roundTicks(low, high, false, most);
}

// From values to pixels. Logarithmic where that is asked for and possible. A single value stands in
// the middle, and is the only tick.
function scale([low, high], [from, to], isLog = false, isWhole = false, most = 7) {
  const log = isLog && low > 0, isOne = low === high;
  const place = log ? Math.log : (x) => x / 4;  // no difference of two numbers overflows
  const span = place(high) - place(low) || 1;
  const at = (value) => (isOne ? (from + to) / 2 : from + ((place(value) - place(low)) / span) * (to - from));
  if (isOne) at.ticks = [low];
  else at.ticks = log ? logTicks(low, high, most) : roundTicks(low, high, isWhole, most);
  const texts = tickTexts(at.ticks);
  at.labels = at.ticks.map((tick, index) => [texts[index], at(tick)]);
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
  for (const [text, at] of y.labels) {
    shape(svg, "line", { class: "grid", x1: FRAME.left, x2: width - FRAME.right, y1: at, y2: at });
    label(svg, FRAME.left - 6, at + 4, text, "end");
  }
  for (const [text, at] of x.labels) label(svg, at, height - FRAME.bottom + 15, text);
  label(svg, (FRAME.left + width - FRAME.right) / 2, height - 4, names[0]);
  label(svg, 4, 11, names[1], "start");
  return [x, y];
}

// A field whose condition does not hold is not in the trial's configuration.
function has(trial, field) { return field.name in trial.config; }

// A field's value for a reader, of a trial or a part of a schedule: an integer that no number of a
// browser holds comes as a text, too.
function told(holder, name) { return name in holder.digits ? holder.digits[name] : holder.config[name]; }

// Whether it may be the best one.
function isCandidate(trial) { return trial.best !== null && trial.status !== "errored"; }

function about(trial) {
  const config = data.fields.filter((field) => has(trial, field)).map((field) => `${field.name}=${short(told(trial, field.name))}`).join(", ");
  return `trial ${trial.id}, ${trial.status}: ${data.metric} ${short(trial.best)} at t=${trial.best_t}; ${config}`;
}

// How strong the colour of a trial is: from the worst (pale) to the best.
function metricStrength() {
  const [low, high] = extent(data.trials.map((trial) => trial.best));
  if (low === high) return () => 1;
  const [worst, best] = minimise ? [high, low] : [low, high];
  return (trial) => 0.25 + 0.75 * ((trial.best / 4 - worst / 4) / (best / 4 - worst / 4)) ** 2;
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
