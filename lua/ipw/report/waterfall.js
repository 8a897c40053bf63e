"use strict";
// One query opened: its turns and spans over time, with joules on each.
report.waterfall = run => {
  const { svg, element, metered, cell, at, plain } = report, c = run.columns;
  const ROW = 19, SHORT_MS = 30, MANY = 60, MOST = 240;
  const [FAILED, PREFILL, DECODE, TOOL] = [0, 1, 2, 3];
  const classOfKey = key => (c.parts.find(part => part.key === key) || { class: "tool4" }).class;
  const classOf = span => span[0] === TOOL ? classOfKey("tool " + c.names[span[8]]) : span[0] === PREFILL ? "prefill" : "decode";

  // The waits of a query: of its windows, as [from, length, millijoules]; the joules are shared by their seconds.
  function waits(i, windows) {
    const out = [], bars = c.bars[i];
    let from = 0, mj = null;
    for (let k = 0; k < bars.length; k += 3) if (bars[k] >= 0 && c.parts[bars[k]].key === "wait") mj = bars[k + 1];
    for (let k = 0; k < windows.length; k += 2) {
      const part = c.parts[windows[k] >> 1];
      if (part && part.key === "wait") out.push([from, windows[k + 1] - from, null]);
      from = windows[k + 1];
    }
    const all = out.reduce((sum, wait) => sum + wait[1], 0);
    if (mj !== null) for (const wait of out) wait[2] = mj * wait[1] / all;
    return out;
  }

  // Rows {label, note, from, ms, figure, class, hatched, bold}; what is folded says so.
  function rowsOf(i, windows, turns, spans, whole) {
    const pauses = waits(i, windows), rows = [], many = spans.length + turns.length > MANY;
    turns.forEach((turn, t) => {
      const [from, ms, tokensIn, tokensOut, ...figure] = turn;
      const told = (tokensIn === null ? "" : at(tokensIn, 0) + " in, ") + (tokensOut === null ? "" : at(tokensOut, 0) + " out");
      rows.push({ turn: t, label: "turn " + (t + 1), note: told, from, ms, figure, bold: true });
      const mine = [];
      for (const span of spans) {
        if (span[1] !== t || many && span[3] < SHORT_MS && span[0] !== FAILED) continue;
        mine.push({ turn: t, label: c.names[span[8]], from: span[2], ms: span[3], figure: span.slice(4, 8), class: classOf(span),
                    bad: span[0] === FAILED, hatched: span[0] === FAILED });
      }
      for (const [start, length, mj] of pauses) {
        if (start >= from && start < from + ms) mine.push({ turn: t, label: "waiting to retry", from: start, ms: length, figure: [mj, null, null, 3], class: "wait" });
      }
      mine.sort((a, b) => a.from - b.from);
      rows.push(...mine);
    });
    if (rows.length <= MOST || whole || turns.length < 16) return rows;
    const first = 8, last = turns.length - 8;
    const folded = turns.slice(first, last).reduce((sum, turn) => sum === null || turn[4] === null ? null : sum + turn[4], 0);
    const fold = { fold: true, label: `turns ${first + 1}\u2013${last}: ${last - first} turns` + (folded === null ? "" : `, ~${cell(folded / 1000)} J`),
                   from: turns[first][0], ms: turns[last - 1][0] + turns[last - 1][1] - turns[first][0], figure: [null, null, null, 0] };
    return [...rows.filter(row => row.turn < first), fold, ...rows.filter(row => row.turn >= last)];
  }

  const figureText = (row, small) => {
    const [text, bounds] = metered(...row.figure);
    return text + (small || !bounds ? "" : " " + bounds);
  };
  function layout(width, rows) {
    const small = report.phone(), longest = Math.max(...rows.map(row => row.figure[0] === null ? 0 : figureText(row, small).length));
    const label = small ? 104 : 196, digits = small ? 56 : Math.min(200, Math.max(96, longest * 6.6 + 8)), joules = small ? 64 : 150;
    return { small, left: label, right: width - digits - joules - 14, digits: width - joules - 8, bar: width - joules, end: width - 12, width };
  }

  // The devices' power above the Gantt, on the same axis.
  function shade(node, box, i, y0, height) {
    const power = c.power;
    if (!power || c.at[i] === null) return;
    const t0 = c.at[i] / 1000, seconds = c.ms[i] / 1000;
    const first = Math.floor(t0 / power.bin), last = Math.min(power.n - 1, Math.floor((t0 + seconds) / power.bin));
    let top = 0;
    const points = [];
    for (let k = first; k <= last; k++) {
      const w = power.domains.reduce((sum, d) => sum === null || d.mean[k] === null ? null : sum + d.mean[k] / 10, 0);
      if (w !== null) top = Math.max(top, w);
      points.push([Math.max(0, k * power.bin - t0), Math.min(seconds, (k + 1) * power.bin - t0), w]);
    }
    if (!top) return;
    let path = "";
    for (const [a, b, w] of points) {
      if (w === null) continue;
      const x = s => (box.left + s / seconds * (box.right - box.left)).toFixed(1);
      const h = (w / top * height).toFixed(1);
      path += `M${x(a)} ${y0 + height}v-${h}H${x(b)}v${h}Z`;
    }
    node.append(svg("path", { class: "shade", d: path }),
      svg("text", { class: "muted", x: box.left - 8, y: y0 + 10, "text-anchor": "end" }, cell(top) + " W"),
      svg("text", { class: "muted", x: box.left - 8, y: y0 + height, "text-anchor": "end" }, c.devices));
  }

  function joules(node, box, row, y, top) {
    const [mj, below, above, provenance] = row.figure;
    if (mj === null) {
      if (!row.fold) node.append(svg("text", { class: "muted", x: box.digits, y: y + 13, "text-anchor": "end" }, report.DASH),
        svg("rect", { class: "unknown", x: box.bar, y: y + 4, width: box.end - box.bar, height: 11 }));
      return;
    }
    const text = figureText(row, box.small);
    node.append(svg("text", { class: row.bold ? "b" : "muted", x: box.digits, y: y + 13, "text-anchor": "end" }, text));
    if (row.bold) return;
    const x = value => box.bar + Math.max(0, value) / top * (box.end - box.bar - 2);
    if (!text.startsWith("<")) {
      node.append(svg("rect", { class: "f-" + row.class + (provenance === 4 ? " estimated" : ""), x: box.bar, y: y + 3,
        width: Math.max(0.7, x(mj) - box.bar), height: 13 }));
      if (row.hatched) node.append(svg("rect", { fill: "url(#hatch)", x: box.bar, y: y + 3, width: x(mj) - box.bar, height: 13 }));
    }
    if (below !== null && above !== null) {
      const lo = x(mj - below), hi = Math.min(box.width - 1, x(mj + above));
      node.append(svg("path", { class: "whisker", d: `M${lo} ${y + 9.5}H${hi}M${lo} ${y + 6.5}v6M${hi} ${y + 6.5}v6` }));
    }
  }

  function drawRow(node, box, row, y, seconds, top, unfold) {
    const x = ms => box.left + ms / 1000 / seconds * (box.right - box.left);
    if (row.bold && y > 60) node.append(svg("line", { class: "rule", x1: 0, x2: box.width, y1: y, y2: y }));
    const label = svg("text", { class: row.bad ? "bad" : row.bold ? "b" : row.fold ? "fold" : "", x: row.bold || row.fold ? 0 : 14, y: y + 13 }, row.label);
    if (row.fold) label.addEventListener("click", unfold);
    node.append(label);
    if (row.note && !box.small) node.append(svg("text", { class: "muted", x: 52, y: y + 13 }, row.note));
    const from = x(row.from), width = Math.max(0.7, x(row.from + row.ms) - from);
    if (row.bold || row.fold) node.append(svg("rect", { class: "turnbar", x: from, y: y + 8, width, height: 3 }));
    else node.append(svg("rect", { class: "f-" + row.class, x: from, y: y + 3, width, height: 13 }));
    if (row.hatched) node.append(svg("rect", { fill: "url(#hatch)", x: from, y: y + 3, width, height: 13 }));
    const title = svg("title", {}, `${row.label}: ${plain(row.ms / 1000)} s` + (row.figure[0] === null ? "" : ", " + metered(...row.figure).join(" ") + " J"));
    node.lastChild.append(title);
    joules(node, box, row, y, top);
  }

  function chart(i, width, whole, unfold) {
    const [windows, [turns, spans]] = run.spans(i);
    const rows = rowsOf(i, windows, turns, spans, whole), box = layout(width, rows), seconds = Math.max(c.ms[i] / 1000, 1e-3);
    const head = c.power ? 54 : 18, height = head + rows.length * ROW + 26;
    const node = svg("svg", { class: "fall", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `${turns.length} turns over ${plain(seconds)} seconds, with the joules of each span` });
    const top = rows.reduce((most, row) => row.bold || row.figure[0] === null ? most : Math.max(most, row.figure[0] + (row.figure[2] || 0)), 1e-3);
    shade(node, box, i, 4, 40);
    node.append(svg("text", { class: "muted", x: box.bar, y: head - 8 }, "joules"));
    const step = report.clockStep(seconds, box.small ? 3 : 5);
    for (let s = 0; s <= seconds * 1.0001; s += step) {
      const x = box.left + s / seconds * (box.right - box.left);
      const last = s + step > seconds * 1.0001;
      node.append(svg("line", { class: "rule", x1: x, x2: x, y1: head, y2: height - 22 }),
        svg("text", { class: "muted", x, y: height - 8, "text-anchor": "middle" }, report.clock(s, seconds, step) + (last ? report.clockUnit(seconds) : "")));
    }
    rows.forEach((row, k) => drawRow(node, box, row, head + k * ROW, seconds, top, unfold));
    return node;
  }

  const joulesText = figure => figure[0] === null ? report.DASH + " J" : figureText({ figure }, false) + " J";
  const measured = c.mj.some(mj => mj !== null);
  const tokensText = (n, what) => n === null ? [] : [`${at(n, 0)} ${what}`];

  // What stands in the margin of each block: of a turn the prompt as a whole and what was generated, each once and
  // with the joules of its phase, at the blocks where they are read; of a tool what was held while it ran.
  function margins(i, blocks) {
    const notes = blocks.map(() => []), encoded = run.spans(i);
    if (encoded === null) return notes;
    const [turns, spans] = encoded[1], used = new Set();
    const take = (t, kind, name) => {
      const k = spans.findIndex((span, k) => !used.has(k) && span[0] === kind && span[1] === t &&
        (name === undefined || c.names[span[8]] === name));
      used.add(k);
      return k < 0 || !measured && spans[k][4] === null ? [] : [joulesText(spans[k].slice(4, 8))];
    };
    const isOutput = who => who === "reasoning" || who === "reply" || who.startsWith("call of ");
    turns.forEach((turn, t) => {
      const mine = blocks.flatMap(([of], k) => of === t + 1 ? [k] : []);
      const first = mine.find(k => isOutput(blocks[k][1]));
      const prompts = mine.filter(k => ["system", "user", "developer"].includes(blocks[k][1]) && (first === undefined || k < first));
      const prompt = prompts.length ? prompts.at(-1) : first;
      if (prompt !== undefined) notes[prompt].push(...tokensText(turn[2], "tokens in"), ...take(t, PREFILL));
      if (first !== undefined) notes[first].push(...tokensText(turn[3], "tokens out"), ...take(t, DECODE));
      for (const k of mine) if (blocks[k][1].startsWith("result of ")) notes[k].push(...take(t, TOOL, blocks[k][1].slice(10)));
    });
    return notes;
  }

  // The conversation, as text and nothing else; long blocks are folded.
  function talk(i) {
    const box = element("div", { className: "talk" }), blocks = run.texts(i), notes = margins(i, blocks);
    if (notes.some(list => list.length)) box.append(element("p", { className: "muted", textContent: "In the margin: tokens in are the whole " +
      "prompt of a turn, with the joules of its prefill; tokens out have those of decoding; a tool\u2019s result has those held while it ran." }));
    for (const [k, [turn, who, text]] of blocks.entries()) {
      const pre = element("pre", { dir: "auto", textContent: text });
      const side = element("div", {}, element("span", { className: "muted", textContent: `turn ${turn} \u00B7 ${who}` }));
      for (const note of notes[k]) side.append(element("span", { className: "note", textContent: note }));
      if (text.split("\n", 13).length > 12 || text.length > 1200) {
        const more = element("button", { type: "button", className: "tool", textContent: "Show all" });
        pre.classList.add("folded");
        more.addEventListener("click", () => { more.textContent = pre.classList.toggle("folded") ? "Show all" : "Fold"; });
        if (!notes[k].length) side.append(element("br"));
        side.append(more);
      }
      box.append(element("div", {}, side, pre));
    }
    return box;
  }

  function draw(cellNode, i, whole) {
    const words = [`${at(c.turns[i], 0)} ${c.turns[i] === 1 ? "turn" : "turns"}`, `${at(c.tools[i], 0)} tool ${c.tools[i] === 1 ? "call" : "calls"}`];
    if (c.ms[i] !== null) words.push(plain(c.ms[i] / 1000) + " s");
    const said = c.content ? "" : " The conversation is not in this file (report --with-content puts it in).";
    const line = element("p", { className: "muted" }, element("b", {}, element("bdi", { textContent: c.ids[i] })), ` \u00B7 ${words.join(", ")}.${said} `);
    if (c.at[i] !== null && run.power) {
      const zoom = element("button", { type: "button", className: "tool", textContent: "Zoom the power to it" });
      zoom.addEventListener("click", () => run.power.show(i));
      line.append(zoom);
    }
    cellNode.replaceChildren(line);
    const width = Math.max(280, cellNode.clientWidth - (report.phone() ? 10 : 30));
    if (run.spans(i) === null) cellNode.append(element("p", { className: "muted", textContent: "The spans of this query were left out to keep the file small: ipw-agent show RUN " + c.ids[i] }));
    else {
      const node = chart(i, width, whole, () => draw(cellNode, i, true));
      cellNode.append(node);
      if (node.querySelector(".fold")) {
        const unfold = element("button", { type: "button", className: "tool", textContent: "Show all turns" });
        unfold.addEventListener("click", () => { draw(cellNode, i, true); cellNode.closest("tr").previousElementSibling.querySelector("button").focus(); });
        line.append(" ", unfold);
      }
    }
    if (c.content) cellNode.append(talk(i));
  }
  return { draw };
};
