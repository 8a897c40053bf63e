"use strict";
// The table of a run's queries: sort, filter, pages, and opening a query.
report.table = run => {
  const { element, svg, metered, vague, at, column, DASH } = report, c = run.columns;
  const table = run.node("queries-table");
  const body = table.tBodies[0];
  const state = { sort: null, down: true, mark: "", text: "", part: "", page: 0, open: -1 };
  let order = null;
  // What a row shows, as metered() takes it: joules, an estimate, or null.
  const shown = i => c.mj[i] !== null ? [c.mj[i], c.below[i], c.above[i], c.provenance[i]]
    : c.estimate && c.estimate.mj[i] !== null ? [c.estimate.mj[i], c.estimate.below[i], c.estimate.above[i], 4] : null;
  const measured = c.mj.some(v => v !== null);
  state.sort = c.own ? "own" : measured ? "joules" : "seconds";
  const most = list => column(list.reduce((most, v) => Math.max(most, v || 0), 0) / 1000);
  const cells = { joules: most(c.mj), own: most(c.own || []), seconds: most(c.ms) };

  const keys = {
    id: i => c.ids[i], turns: i => c.turns[i], tools: i => c.tools[i], tokens_in: i => c.tokens_in[i],
    tokens_out: i => c.tokens_out[i], seconds: i => c.ms[i], joules: i => c.mj[i], own: i => c.own[i],
  };
  // Which tools a query used: from its bar, or from its windows.
  const partsOf = i => {
    const list = [];
    for (let k = 0; k < c.bars[i].length; k += 3) if (c.bars[i][k] >= 0) list.push(c.parts[c.bars[i][k]]);
    return list;
  };
  function matches(i) {
    if (state.mark && report.markNames[c.mark[i]] !== state.mark) return false;
    if (state.part && !partsOf(i).some(part => part.key === state.part)) return false;
    if (!state.text) return true;
    const text = state.text.toLowerCase();
    return c.ids[i].toLowerCase().includes(text) || c.names[c.outcome[i]].toLowerCase().includes(text) ||
      c.error[i] !== null && c.names[c.error[i]].toLowerCase().includes(text) ||
      partsOf(i).some(part => part.key.startsWith("tool ") && part.name.toLowerCase().includes(text));
  }
  function arrange() {
    const value = keys[state.sort], sign = state.down ? -1 : 1;
    order = [];
    for (let i = 0; i < c.ids.length; i++) if (matches(i)) order.push(i);
    order.sort((a, b) => {
      const x = value(a), y = value(b);
      if (x === null || y === null) return x === y ? a - b : x === null ? 1 : -1; // unknown comes last, either way
      return x < y ? -sign : x > y ? sign : a - b;
    });
  }

  function bar(i) {
    const node = svg("svg", { class: "qbar", width: "100%", height: "14", "aria-hidden": "true" });
    const figure = shown(i);
    if (!figure) {
      node.append(svg("rect", { class: "unknown", x: "1", y: "1", width: "99%", height: "12" }));
      return node;
    }
    const [mj, below, above] = figure, pieces = vague(...figure) ? [] : c.bars[i];
    const percent = value => Math.min(100, Math.max(0, value / c.scale * 100)).toFixed(3) + "%";
    if (c.mj[i] === null) node.append(svg("rect", { class: "f-whole estimated", x: "0.5", y: "0.5", width: percent(mj), height: "13" }));
    let x = 0;
    for (let k = 0; k < pieces.length; k += 3) {
      const [part, length, wasted] = pieces.slice(k, k + 3);
      node.append(svg("rect", { class: "f-" + (part < 0 ? "whole" : c.parts[part].class), x: percent(x), width: percent(length), height: "14" }));
      if (wasted) node.append(svg("rect", { x: percent(x + length - wasted), width: percent(wasted), height: "14", fill: "url(#hatch)" }));
      x += length;
    }
    if (below !== null && above !== null) {
      const lo = percent(mj - below), hi = percent(mj + above);
      const line = (x1, x2, y1, y2) => node.append(svg("line", { class: "whisker", x1, x2, y1, y2 }));
      line(lo, hi, "7", "7");
      line(lo, lo, "4", "10");
      if (mj + above <= c.scale) line(hi, hi, "4", "10");
    }
    return node;
  }
  const td = (className, ...children) => element("td", { className }, ...children);
  const known = n => n === null ? DASH : at(n, 0);
  function row(i) {
    const figure = shown(i);
    const [joules, bounds] = figure ? metered(...figure, c.mj[i] === null ? undefined : cells.joules) : [DASH + (measured ? " " + c.names[c.reason[i]] : ""), ""];
    const id = td("", element("button", { type: "button", className: "link" }, element("bdi", { textContent: c.ids[i] })));
    if (c.names[c.outcome[i]]) id.append(" ", element("span", { className: "muted", textContent: c.names[c.outcome[i]] }));
    const node = element("tr", { className: "q " + report.markNames[c.mark[i]] },
      td("mark", element("span", { "aria-hidden": "true", textContent: report.marks[c.mark[i]] }),
        element("span", { className: "sr", textContent: report.markWords[c.mark[i]] })),
      id, td("num wide", at(c.turns[i], 0)), td("num wide", at(c.tools[i], 0)), td("num wide", known(c.tokens_in[i])),
      td("num wide", known(c.tokens_out[i])), td("num", c.ms[i] === null ? DASH : cells.seconds(c.ms[i] / 1000)),
      ...(c.own ? [td("num wide", c.own[i] === null ? DASH : cells.own(c.own[i] / 1000))] : []), td("num", joules),
      td("pm wide", bounds), td("bar", bar(i)));
    node.dataset.i = i;
    id.firstChild.setAttribute("aria-expanded", "false");
    return node;
  }

  function draw() {
    const pages = Math.max(1, Math.ceil(order.length / c.page));
    state.page = Math.min(state.page, pages - 1);
    const first = state.page * c.page, shown = order.slice(first, first + c.page);
    body.replaceChildren(...shown.map(row));
    if (order.length === 0) body.append(element("tr", {}, element("td", { colSpan: table.tHead.rows[0].cells.length, className: "muted", textContent: "No query matches." })));
    run.node("range").textContent = (order.length ? first + 1 + "\u2013" + (first + shown.length) : "0") + " of " + at(order.length, 0) +
      (order.length < c.ids.length ? " (of " + at(c.ids.length, 0) + ")" : "");
    run.node("previous").disabled = state.page === 0;
    run.node("next").disabled = state.page >= pages - 1;
    heads();
    if (state.open >= 0 && shown.includes(state.open)) expand(state.open);
  }
  function heads() {
    for (const button of table.querySelectorAll(".sort")) {
      const th = button.closest("th");
      if (button.dataset.sort === state.sort) th.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    }
  }
  function again() { state.page = 0; arrange(); draw(); }

  function mark(node, open) {
    node.classList.toggle("opened", open);
    node.querySelector("button").setAttribute("aria-expanded", String(open));
  }
  function expand(i) {
    const node = body.querySelector('tr[data-i="' + i + '"]');
    if (!node) return null;
    mark(node, true);
    const cellNode = element("td", { colSpan: table.tHead.rows[0].cells.length });
    node.after(element("tr", { className: "open" }, cellNode));
    run.waterfall.draw(cellNode, i);
    state.open = i;
    return node;
  }
  function close() {
    for (const node of body.querySelectorAll("tr.open")) node.remove();
    for (const node of body.querySelectorAll("tr.opened")) mark(node, false);
    state.open = -1;
  }
  function toggle(i) {
    const was = state.open;
    close();
    if (was !== i) expand(i);
  }
  // Opens a query wherever it is: turns to its page, and scrolls there.
  function open(i) {
    if (!order) arrange();
    if (!order.includes(i)) {
      state.mark = state.text = state.part = "";
      chips();
      run.node("filter").value = "";
      arrange();
    }
    state.page = Math.floor(order.indexOf(i) / c.page);
    close();
    draw();
    const node = expand(i);
    if (node) { node.scrollIntoView({ block: "start" }); node.querySelector("button").focus({ preventScroll: true }); }
  }
  function chips() {
    for (const chip of run.root.querySelectorAll(".chip[data-mark]")) chip.setAttribute("aria-pressed", String(chip.dataset.mark === state.mark));
    const part = run.node("part-filter"), found = c.parts.find(p => p.key === state.part);
    part.hidden = !found;
    if (found) part.textContent = "with " + found.name + " \u00D7";
  }
  function byPart(key) {
    state.part = state.part === key ? "" : key;
    chips();
    again();
    run.node("queries").scrollIntoView({ block: "start" });
  }

  body.addEventListener("click", event => {
    const node = event.target.closest("tr.q");
    if (node && !String(getSelection())) { if (!order) arrange(); toggle(Number(node.dataset.i)); }
  });
  for (const node of body.querySelectorAll("tr.q")) mark(node, false);
  table.tHead.addEventListener("click", event => {
    const button = event.target.closest(".sort");
    if (!button) return;
    if (state.sort === button.dataset.sort) state.down = !state.down;
    else { state.sort = button.dataset.sort; state.down = state.sort !== "id"; }
    again();
  });
  for (const chip of run.root.querySelectorAll(".chip[data-mark]")) {
    chip.addEventListener("click", () => { state.mark = chip.dataset.mark; chips(); again(); });
  }
  run.node("part-filter").addEventListener("click", () => byPart(state.part));
  run.node("filter").addEventListener("input", event => { state.text = event.target.value.trim(); again(); });
  run.node("previous").addEventListener("click", () => { state.page--; draw(); });
  run.node("next").addEventListener("click", () => { state.page++; draw(); });
  for (const node of run.root.querySelectorAll("[data-part]")) node.addEventListener("click", () => byPart(node.dataset.part));
  if (c.kept !== null) {
    run.node("spans-note").textContent = "To keep this file small, the spans of " + at(c.kept, 0) + " of " + at(c.ids.length, 0) +
      " queries are in it: the 500 dearest, all that were not right, and 500 others.";
  }
  function redraw() {
    if (state.open >= 0) { const i = state.open; close(); expand(i); }
  }
  arrange();
  heads();
  run.node("previous").disabled = true;
  run.node("next").disabled = c.ids.length <= c.page;
  return { open, expand, redraw, state };
};
