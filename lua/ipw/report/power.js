"use strict";
// Power over time (uPlot) and, on the same axis, a lane for each query in flight; both zoom together.
report.power = run => {
  const { colour, element, cell, metered } = report, c = run.columns;
  const power = c.power, box = run.node("power-chart"), lanesBox = run.node("lanes");
  if (!box) return null;
  const MAX_LANES = 16, MOST_LANES = 128, STATES = 110;
  // A lane has a row of labels; of many lanes only the bars are left.
  const WIDE = { lane: 34, label: 14, bar: 15 }, SLIM = { lane: 9, label: 0, bar: 8 };
  let size = WIDE;
  // The axis at the left has room for its longest label, such as "1 000 W".
  const measure = element("canvas").getContext("2d");
  measure.font = "11.5px system-ui, sans-serif";
  const LEFT = power ? Math.max(44, Math.ceil(measure.measureText(cell(topWatts()) + " W").width) + 12) : 44;
  // What all ids begin with is left out where there is little room.
  const common = c.ids.length < 2 ? 0 : c.ids.reduce((n, id) => {
    while (n && id.slice(0, n) !== c.ids[0].slice(0, n)) n--;
    return n;
  }, Math.max(0, Math.min(...c.ids.map(id => id.length)) - 3));
  const view = { from: 0, to: c.seconds };
  const wholeRun = element("button", { type: "button", className: "tool whole-run", textContent: "Whole run" });
  wholeRun.addEventListener("click", () => zoom(0, c.seconds));
  const isWhole = () => view.from <= 0 && view.to >= c.seconds;
  let plot = null, canvas = null, ranges = null, laneOf = null, nLanes = 0, starts = null;

  const right = () => report.phone() ? 8 : 66;
  const inner = () => Math.max(100, box.clientWidth - LEFT - right());

  // ---- power, in bins of at least 3 pixels ----

  function bins() {
    const width = power.bin * Math.max(1, Math.ceil((view.to - view.from) / power.bin / (inner() / 3)));
    const every = Math.round(width / power.bin);
    const first = Math.max(0, Math.floor(view.from / width) - 1), last = Math.ceil(view.to / width) + 1;
    const out = { x: [], stacks: power.domains.map(() => []), least: [], most: [], width, banded: every >= 3 || !!power.domains[0].least };
    for (let b = first; b <= last && b * every < power.n; b++) {
      out.x.push(b * width);
      let sums = power.domains.map(() => 0), n = 0, least = Infinity, most = -Infinity;
      for (let k = b * every; k < Math.min((b + 1) * every, power.n); k++) {
        if (power.domains.some(d => d.mean[k] === null)) continue;
        n++;
        let low = 0, high = 0;
        power.domains.forEach((d, j) => {
          sums[j] += d.mean[k] / 10;
          low += (d.least ? d.least[k] : d.mean[k]) / 10;
          high += (d.most ? d.most[k] : d.mean[k]) / 10;
        });
        least = Math.min(least, low);
        most = Math.max(most, high);
      }
      let stack = 0;
      power.domains.forEach((d, j) => { stack += n ? sums[j] / n : 0; out.stacks[j].push(n ? stack : null); });
      out.least.push(n ? least : null);
      out.most.push(n ? most : null);
    }
    return closed(out);
  }
  // A step needs its end: a second point just before a hole, and one after the last bin.
  function closed(bins) {
    const { x, width } = bins, lists = [...bins.stacks, bins.least, bins.most], last = x.length - 1;
    for (let k = last; k >= 0; k--) {
      if (lists[0][k] === null || k < last && lists[0][k + 1] !== null) continue;
      x.splice(k + 1, 0, x[k] + (k < last ? width * 0.999 : width));
      for (const list of lists) list.splice(k + 1, 0, list[k]);
    }
    return bins;
  }
  const dataOf = found => [found.x, ...found.stacks.slice().reverse()];
  let found = null;

  function topWatts() {
    let top = power.idle || 0;
    for (let k = 0; k < power.n; k++) {
      let sum = 0;
      for (const d of power.domains) sum = sum === null || d.mean[k] === null ? null : sum + (d.most ? Math.max(d.mean[k], d.most[k]) : d.mean[k]) / 10;
      if (sum !== null && sum > top) top = sum;
    }
    const step = report.axisStep(top, 5);
    return Math.ceil(top / step) * step;
  }

  function band(u) {
    if (!found.banded) return;
    const draw = u.ctx;
    draw.save();
    draw.fillStyle = colour("muted");
    draw.globalAlpha = 0.25;
    for (let k = 0; k + 1 < found.x.length; k++) {
      if (found.least[k] === null) continue;
      const x0 = Math.max(u.bbox.left, u.valToPos(found.x[k], "x", true)), x1 = Math.min(u.bbox.left + u.bbox.width, u.valToPos(found.x[k + 1], "x", true));
      const y1 = u.valToPos(found.most[k], "y", true), y0 = u.valToPos(found.least[k], "y", true);
      if (x1 > x0) draw.fillRect(x0, y1, x1 - x0, y0 - y1);
    }
    draw.restore();
  }
  // Where the run was cut and resumed: a dashed line, over power and lanes.
  function seams(draw, x, y0, y1, dpr) {
    draw.save();
    draw.strokeStyle = colour("wrong");
    draw.lineWidth = dpr;
    draw.setLineDash([5 * dpr, 2 * dpr]);
    for (const t of c.seams) {
      if (t <= view.from || t >= view.to) continue;
      draw.beginPath();
      draw.moveTo(x(t), y0);
      draw.lineTo(x(t), y1);
      draw.stroke();
    }
    draw.restore();
  }
  // Where nothing was read: a dotted outline that says so, never a line across.
  function holes(u) {
    const draw = u.ctx, dpr = devicePixelRatio, list = found.stacks[found.stacks.length - 1];
    draw.save();
    draw.strokeStyle = draw.fillStyle = colour("muted");
    draw.lineWidth = dpr;
    draw.setLineDash([dpr, 3 * dpr]);
    draw.font = `${11 * dpr}px system-ui, sans-serif`;
    draw.textAlign = "left";
    for (let k = 0; k < list.length; k++) {
      if (list[k] !== null) continue;
      let end = k;
      while (end + 1 < list.length && list[end + 1] === null) end++;
      const edge = t => Math.min(u.bbox.left + u.bbox.width, Math.max(u.bbox.left, u.valToPos(Math.min(t, c.seconds), "x", true)));
      const x0 = edge(found.x[k]), x1 = edge(end + 1 < found.x.length ? found.x[end + 1] : found.x[end] + found.width);
      if (x1 - x0 >= 2) draw.strokeRect(x0, u.bbox.top + 2, x1 - x0, u.bbox.height - 4);
      if (x1 - x0 > 80 * dpr) draw.fillText("no readings", x0 + 6 * dpr, u.bbox.top + 18 * dpr);
      k = end;
    }
    draw.restore();
  }
  function names(u) {
    const draw = u.ctx, dpr = devicePixelRatio, x = u.bbox.left + u.bbox.width + 6 * dpr;
    draw.save();
    draw.font = `600 ${11.5 * dpr}px system-ui, sans-serif`;
    draw.textBaseline = "middle";
    draw.textAlign = "left";
    const labels = [];
    const say = (text, watts, fill) => labels.push({ text, fill, y: u.valToPos(watts, "y", true) });
    if (power.idle !== null) {
      const y = u.valToPos(power.idle, "y", true);
      draw.strokeStyle = colour("ink");
      draw.lineWidth = dpr;
      draw.setLineDash([5 * dpr, 3 * dpr]);
      draw.beginPath();
      draw.moveTo(u.bbox.left, y);
      draw.lineTo(u.bbox.left + u.bbox.width, y);
      draw.stroke();
      if (!report.phone()) say("idle " + cell(power.idle), power.idle, colour("ink"));
    }
    if (!report.phone()) {
      let under = 0;
      power.domains.forEach((d, j) => {
        const list = found.stacks[j].filter(w => w !== null);
        if (!list.length) return;
        const mean = list.reduce((sum, w) => sum + w, 0) / list.length;
        say((j ? "+ " : "") + d.name, (under + mean) / 2 + (j ? 0 : mean * 0.2), colour(d.domain === "cpu" ? "cpu-text" : d.domain === "gpu" ? "gpu" : "muted"));
        under = mean;
      });
    }
    // From the top down, each at least a line below the one before, then up again where that left the chart.
    const apart = 14 * dpr;
    labels.sort((a, b) => a.y - b.y).forEach((label, k) => {
      label.y = Math.max(label.y, k ? labels[k - 1].y + apart : u.bbox.top + 6 * dpr);
    });
    for (let k = labels.length - 1, most = u.bbox.top + u.bbox.height - 6 * dpr; k >= 0; k--, most = labels[k + 1].y - apart) {
      labels[k].y = Math.min(labels[k].y, most);
      draw.fillStyle = labels[k].fill;
      draw.fillText(labels[k].text, x, labels[k].y);
    }
    draw.restore();
  }

  function build() {
    if (plot) plot.destroy();
    plot = null;
    if (!power) return;
    found = bins();
    const line = d => colour(d.domain === "machine" ? "ink" : d.domain), stepped = uPlot.paths.stepped({ align: 1 });
    const font = "11.5px system-ui, sans-serif", top = topWatts();
    plot = new uPlot({
      width: box.clientWidth, height: 220, padding: [8, right(), 8, 0], legend: { show: false }, pxAlign: 1,
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => { zoom(0, c.seconds); return null; } } },
      scales: { x: { time: false, range: () => [view.from, view.to] }, y: { range: () => [0, top] } },
      series: [{}, ...power.domains.slice().reverse().map(d => ({ paths: stepped, stroke: line(d), width: 1, spanGaps: false, points: { show: false },
        fill: d.domain === "machine" ? undefined : colour(d.domain + "-fill") }))],
      axes: [{ show: false },
        { size: LEFT, font, stroke: colour("muted"), gap: 6, grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false }, border: { show: false },
          splits: () => { const step = report.axisStep(top, 5), out = []; for (let w = 0; w <= top * 1.001; w += step) out.push(w); return out; },
          values: (u, splits) => splits.map((w, k) => cell(w) + (k === splits.length - 1 ? " W" : "")) }],
      hooks: { draw: [band, holes, names, u => seams(u.ctx, t => u.valToPos(t, "x", true), u.bbox.top, u.bbox.top + u.bbox.height, devicePixelRatio)], setSelect: [u => {
        if (u.select.width < 4) return;
        zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
        u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      }] },
    }, dataOf(found), box);
    say();
  }
  function say() {
    const where = run.node("bin");
    if (where && found) where.textContent = found.width < 1 ? cell(found.width * 1000) + " ms" + (found.banded ? " in their least and most" : "")
      : cell(found.width) + " s" + (found.banded ? " in their least and most" : "");
  }

  // ---- lanes ----

  function pack() {
    const order = c.ids.map((_, i) => i).filter(i => c.at[i] !== null && c.ms[i] !== null).sort((a, b) => c.at[a] - c.at[b]);
    const free = [];
    laneOf = new Map();
    for (const i of order) {
      let lane = free.findIndex(end => end <= c.at[i] + 2) // starts and lengths are rounded;
      if (lane < 0) lane = free.length;
      free[lane] = c.at[i] + c.ms[i];
      laneOf.set(i, lane);
    }
    nLanes = free.length;
    starts = order;
  }
  const visible = () => starts.filter(i => (c.at[i] + c.ms[i]) / 1000 > view.from && c.at[i] / 1000 < view.to);
  function dense(list) {
    const widths = list.map(i => c.ms[i]).sort((a, b) => a - b);
    const median = widths.length ? widths[widths.length >> 1] / 1000 / (view.to - view.from) * inner() : Infinity;
    return nLanes > MOST_LANES || nLanes > MAX_LANES && isWhole() || median < (nLanes > MAX_LANES ? 24 : 6);
  }
  function hatch(draw, x, y, w, h) {
    draw.save();
    draw.beginPath();
    draw.rect(x, y, w, h);
    draw.clip();
    draw.strokeStyle = colour("ink");
    draw.lineWidth = 1.5;
    draw.beginPath();
    for (let k = -h; k < w; k += 5) { draw.moveTo(x + k, y + h); draw.lineTo(x + k + h, y); }
    draw.stroke();
    draw.restore();
  }
  function query(draw, i, x, y, colours) {
    const spans = run.spans(i), t0 = c.at[i] / 1000, left = x(t0), rightEdge = x(t0 + c.ms[i] / 1000);
    if (spans) {
      let from = 0;
      const windows = spans[0];
      for (let k = 0; k < windows.length; k += 2) {
        const a = x(t0 + from / 1000), b = x(t0 + windows[k + 1] / 1000), part = c.parts[windows[k] >> 1];
        from = windows[k + 1];
        if (b < LEFT || a > LEFT + inner()) continue;
        draw.fillStyle = colours[part ? part.class : "idle"];
        draw.fillRect(a, y + size.label, Math.max(0.3, b - a), size.bar);
        if (windows[k] & 1) hatch(draw, a, y + size.label, b - a, size.bar);
      }
      draw.fillStyle = colours.bg;
      if (size === WIDE) for (const turn of spans[1][0].slice(1)) draw.fillRect(x(t0 + turn[0] / 1000) - 1.5, y + size.label, 1.5, size.bar);
    } else {
      draw.fillStyle = colours.idle;
      draw.fillRect(left, y + size.label, rightEdge - left, size.bar);
    }
    if (size === SLIM) return;
    const good = c.mark[i] === 0 || c.mark[i] >= 3;
    draw.fillStyle = good ? colours.ink : colours.wrong;
    draw.fillRect(left, y + 2, 1.5, size.label - 2);
    draw.fillRect(left, y + size.label - 1, rightEdge - left, 1);
    const room = Math.min(rightEdge, LEFT + inner()) - Math.max(left, LEFT) - 8;
    const mark = " " + report.marks[c.mark[i]], joules = c.mj[i] === null ? "" : "  " + metered(c.mj[i], c.below[i], c.above[i], 0)[0] + " J";
    const short = c.ids[i].length - common > 9 ? c.ids[i].slice(common, common + 8) + "\u2026" : c.ids[i].slice(common);
    for (const text of [c.ids[i] + mark + joules, short + mark + joules, short + mark]) {
      if (draw.measureText(text).width > room) continue;
      draw.fillText(text, Math.max(left, LEFT) + 4, y + size.label - 4);
      break;
    }
  }
  const CLASSES = ["prefill", "decode", "lm", "tool1", "tool2", "tool3", "tool4", "agent", "wait", "idle", "ink", "wrong", "muted", "bg", "grid"];
  const palette = () => Object.fromEntries(CLASSES.map(name => [name, colour(name)]));

  function axis(draw, y, x, colours) {
    const span = view.to - view.from, step = report.clockStep(span, report.phone() ? 4 : 8);
    draw.fillStyle = colours.muted;
    draw.textAlign = "center";
    for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
      draw.fillRect(x(t), y, 1, 4);
      draw.fillText(report.clock(t, span, step) + (t + step > view.to ? report.clockUnit(span) : ""), Math.min(x(t), LEFT + inner() - 12), y + 16);
    }
    draw.textAlign = "left";
  }
  // Many queries: how many are in each state.
  const STATE_OF = { prefill: 0, decode: 1, lm: 2, agent: 4, wait: 5 }, IN_TOOL = 3;
  const STATE_CLASS = ["prefill", "decode", "lm", "tool1", "agent", "wait"];
  function states(draw, list, colours) {
    const n = Math.floor(inner() / 2), seconds = (view.to - view.from) / n, sums = STATE_CLASS.map(() => new Float64Array(n));
    for (const i of list) {
      const spans = run.spans(i);
      if (!spans) continue;
      let from = c.at[i] / 1000;
      for (let k = 0; k < spans[0].length; k += 2) {
        const to = c.at[i] / 1000 + spans[0][k + 1] / 1000, part = c.parts[spans[0][k] >> 1];
        const state = part && part.key in STATE_OF ? STATE_OF[part.key] : IN_TOOL;
        const a = (from - view.from) / seconds, b = (to - view.from) / seconds;
        for (let p = Math.max(0, Math.floor(a)); p < Math.min(n, b); p++) sums[state][p] += Math.min(b, p + 1) - Math.max(a, p);
        from = to;
      }
    }
    let top = 1;
    for (let p = 0; p < n; p++) top = Math.max(top, sums.reduce((sum, s) => sum + s[p], 0));
    top = Math.ceil(top - 1e-9);
    const base = new Float64Array(n), width = inner() / n;
    sums.forEach((sum, s) => {
      draw.fillStyle = colours[STATE_CLASS[s]];
      for (let p = 0; p < n; p++) {
        if (!sum[p]) continue;
        draw.fillRect(LEFT + p * width, 6 + STATES * (1 - (base[p] + sum[p]) / top), width + 0.3, STATES * sum[p] / top + 0.3);
        base[p] += sum[p];
      }
    });
    draw.fillStyle = colours.muted;
    draw.textAlign = "right";
    draw.fillText(String(top), LEFT - 7, 12);
    draw.fillText("0", LEFT - 7, 6 + STATES);
    draw.textAlign = "left";
  }

  function lanes() {
    if (!starts) pack();
    size = nLanes > MAX_LANES ? SLIM : WIDE;
    const list = visible(), many = dense(list), width = box.clientWidth || lanesBox.clientWidth;
    const height = (many ? STATES + 8 : nLanes * size.lane) + 24, dpr = devicePixelRatio || 1;
    if (!canvas) { canvas = element("canvas", { "aria-hidden": "true" }); lanesBox.append(canvas); canvas.addEventListener("click", pick); }
    canvas.width = width * dpr;
    canvas.height = height * dpr;
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    const draw = canvas.getContext("2d"), colours = palette();
    draw.scale(dpr, dpr);
    draw.font = "11px system-ui, sans-serif";
    const x = t => LEFT + (t - view.from) / (view.to - view.from) * inner();
    draw.save();
    draw.beginPath();
    draw.rect(many ? 0 : LEFT, 0, many ? width : inner() + 1, height - 22);
    draw.clip();
    if (many) states(draw, list, colours); else for (const i of list) query(draw, i, x, laneOf.get(i) * size.lane, colours);
    seams(draw, x, 0, height - 22, 1);
    draw.restore();
    draw.fillStyle = colours.muted;
    if (!many && size === WIDE) for (let lane = 0; lane < nLanes; lane++) draw.fillText(String(lane + 1), LEFT - 16, lane * size.lane + size.label + 12);
    axis(draw, height - 22, x, colours);
    ranges = many ? null : list;
    legend(many, list);
  }
  function pick(event) {
    if (!ranges) return;
    const t = (view.from + (event.offsetX - LEFT) / inner() * (view.to - view.from)) * 1000, lane = Math.floor(event.offsetY / size.lane);
    const i = ranges.find(k => laneOf.get(k) === lane && c.at[k] <= t && t <= c.at[k] + c.ms[k]);
    if (i !== undefined) run.table.open(i);
  }
  function legend(many, list) {
    const where = run.node("lane-legend"), items = [];
    const swatch = (name, text) => element("span", {}, element("span", { className: "sw f-" + name }), text);
    if (many) {
      ["prefill", "decode", "other model time", "in a tool", "agent\u2019s own code", "waiting to retry"].forEach((name, s) => items.push(swatch(STATE_CLASS[s], name)));
      items.push(element("span", { textContent: `queries in each state; ${report.at(list.length, 0)} in view; zoom in for lanes` }));
    } else {
      for (const part of c.parts) if (part.class !== "idle" && part.class !== "other") items.push(swatch(part.class, part.name));
    }
    const focused = document.activeElement === wholeRun;
    wholeRun.disabled = isWhole();
    where.replaceChildren(...items, wholeRun);
    if (focused) (wholeRun.disabled ? box : wholeRun).focus({ preventScroll: true });
  }

  // ---- zoom ----

  function zoom(from, to) {
    const least = Math.max(c.seconds / 100000, power ? power.bin * 4 : 0.05);
    let span = Math.min(c.seconds, Math.max(least, to - from));
    let start = Math.max(0, Math.min(from, c.seconds - span));
    view.from = start;
    view.to = start + span;
    if (plot) {
      found = bins();
      plot.setData(dataOf(found), false);
      plot.setScale("x", { min: view.from, max: view.to });
      say();
    }
    lanes();
  }
  function show(i) {
    const t0 = c.at[i] / 1000, seconds = c.ms[i] / 1000;
    zoom(t0 - seconds * 0.05, t0 + seconds * 1.05);
    run.node("power").scrollIntoView({ block: "start" });
  }
  box.addEventListener("keydown", event => {
    const span = view.to - view.from, middle = (view.from + view.to) / 2;
    const act = { ArrowLeft: [view.from - span / 4, view.to - span / 4], ArrowRight: [view.from + span / 4, view.to + span / 4],
                  "+": [middle - span / 4, middle + span / 4], "-": [middle - span, middle + span], 0: [0, c.seconds] }[event.key];
    if (act) { event.preventDefault(); zoom(...act); }
  });
  // Nothing is drawn in a run that is folded; runs.js asks again when it is opened.
  function all() {
    if (box.clientWidth === 0) return;
    build();
    lanes();
  }
  // Drawn when it comes near the screen, so that the first screen does not wait for it.
  const watch = new IntersectionObserver(entries => {
    if (!entries.some(entry => entry.isIntersecting)) return;
    watch.disconnect();
    all();
  }, { rootMargin: "600px" });
  watch.observe(box);
  return { show, zoom, view, redraw: all, plot: () => plot, bins: () => found };
};
