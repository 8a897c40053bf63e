"use strict";
// What all scripts of the page share: numbers, colours; and the buttons "Table", "CSV" and "Light / dark".
// runs.js says what a run of the page is.
const report = (() => {
  const parse = id => JSON.parse(document.getElementById(id).textContent);
  const NARROW = "\u202F", MINUS = "\u2212", DASH = "\u2014";

  // The same rule as ipw.report.numbers.
  const group = digits => digits.replace(/\B(?=(\d{3})+(?!\d))/g, NARROW);
  function at(value, place) {
    const step = Math.pow(10, place);
    const rounded = place >= 0 ? Math.floor(value / step + 0.5) * step : value;
    const text = Math.abs(rounded).toFixed(Math.max(0, -place));
    const [whole, rest] = text.split(".");
    return (value < 0 && /[1-9]/.test(text) ? MINUS : "") + group(whole) + (rest ? "." + rest : "");
  }
  const power10 = value => Math.floor(Math.log10(Math.abs(value)));
  function placeOf(value, digits) {
    if (value === 0) return 0;
    const place = power10(value) - digits + 1;
    return Math.abs(value) / Math.pow(10, place) + 0.5 >= Math.pow(10, digits) ? place + 1 : place;
  }
  const plain = (value, digits = 3) => at(value, Math.min(0, placeOf(value, digits)));
  const cell = value => value === 0 ? "0" : at(value, Math.abs(value) >= 9.95 ? 0 : placeOf(value, 2));
  // Numbers of one column, all with the decimals that give the greatest four digits.
  function column(most) {
    const place = most > 0 ? Math.min(0, Math.floor(Math.log10(most)) - 3) : 0, least = Math.pow(10, place);
    return value => value > 0 && value < 0.5 * least ? "<" + at(least, place) : at(value, place);
  }
  function place(e) {
    let power = power10(e), first = Math.floor(e / Math.pow(10, power) * 100 + 0.5);
    if (first >= 1000) { first = Math.floor(first / 10); power++; }
    return first <= 354 ? power - 1 : power;
  }
  const SIGNS = ["", "", "", "~", "\u2248 "];
  // A metered figure in millijoules: its text and its bounds.
  function metered(mj, below, above, provenance, cell) {
    const value = mj / 1000, text = (SIGNS[provenance] || "") + (cell ? cell(value) : plain(value, provenance === 4 ? 2 : 3));
    if (below === null || above === null) return [text, ""];
    const write = cell || plain, from = write(value - below / 1000), to = write(value + above / 1000);
    return [text, from === to ? "" : "(" + from + "\u2013" + to + ")"];
  }
  // Whether an upper bound is all that is known of it.
  function vague(mj, below, above) {
    if (below === null || above === null || above < mj || mj + above <= 0) return false;
    return below >= mj || !/[1-9]/.test(at(mj / 1000, place(Math.max(below, above) / 1000)));
  }

  // Steps of an axis from 0.
  function axisStep(top, wanted) {
    const power = Math.pow(10, Math.floor(Math.log10(top / wanted)));
    for (const factor of [1, 2, 5, 10, 20]) if (top / (power * factor) <= wanted) return power * factor;
    return power * 50;
  }
  const tick = (value, step) => at(value, Math.min(0, Math.floor(Math.log10(step) + 1e-9)));
  // Seconds on an axis of that span: s, min, h.
  const clockSize = span => span < 180 ? 1 : span < 7200 ? 60 : 3600;
  const clock = (seconds, span, step) => Math.abs(seconds) < 1e-9 ? "0" : tick(seconds / clockSize(span), step / clockSize(span));
  const clockUnit = span => ({ 1: " s", 60: " min", 3600: " h" })[clockSize(span)];
  const clockStep = (span, wanted) => axisStep(span / clockSize(span), wanted) * clockSize(span);

  const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const element = (name, properties, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(properties || {})) {
      if (key in node && key !== "list") node[key] = value; else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  };
  const svg = (name, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const phone = () => matchMedia("screen and (max-width: 760px)").matches;
  const redraw = () => report.runs.forEach(run => run.redraw());
  function theme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    redraw();
  }
  function save(name) {
    const blob = new Blob([parse(name)], { type: "text/csv" });
    const run = report.runs.find(one => one.prefix && name.startsWith("csv-" + one.prefix)) || report.runs[0];
    const what = name.slice(4 + run.prefix.length);
    const download = (what === "comparison" ? "" : run.columns.name + "-") + what + ".csv";
    const link = element("a", { href: URL.createObjectURL(blob), download });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  // Shows the table in the place of the chart; the same button takes it back.
  function flip(button, id) {
    const show = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(show));
    for (const child of document.querySelector("#" + id + " .view").children) child.hidden = child.classList.contains("numbers") !== show;
    if (!show) redraw();
  }
  document.documentElement.classList.add("scripted");
  document.getElementById("theme").addEventListener("click", theme);
  for (const button of document.querySelectorAll("button[data-csv]")) button.addEventListener("click", () => save("csv-" + button.dataset.csv));
  for (const button of document.querySelectorAll("button[data-table]")) button.addEventListener("click", () => flip(button, button.dataset.table));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let width = document.documentElement.clientWidth;
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth !== width) { width = document.documentElement.clientWidth; redraw(); }
  });
  return { parse, at, plain, cell, column, metered, vague, axisStep, tick, clock, clockUnit, clockStep, colour, element, svg, phone, DASH,
           marks: ["\u2713", "\u2717", "!", "\u2013", "\u00B7"], markNames: ["right", "wrong", "failed", "stopped", "open"],
           markWords: ["right", "wrong", "failed", "stopped with the run", "not scored"] };
})();
