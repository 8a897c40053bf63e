"use strict";
// One query opened: its turns and spans over time, with joules on each.
report.waterfall = run => {
  const { svg, element, metered, cell, at, plain } = report, c = run.columns;
  const ROW = 19, classOf = Object.fromEntries([["failed", "decode"], ...c.parts.map(part => [part.key, part.class])]);

  // Rows {key, label, from, ms, figure, class, note}; what is folded is one row, unless the whole is wanted.
  function rowsOf(i, whole) {
    const rows = run.rows(i).map(([key, label, from, ms, mj, below, above, provenance, ...more], place) => {
      key = c.names[key];
      const note = key === "turn" ? [["in", more[0]], ["out", more[1]]].filter(([, n]) => n !== null).map(([what, n]) => `${at(n, 0)} ${what}`).join(", ") : "";
      return { key, label: c.names[label], from, ms, figure: [mj, below, above, provenance], class: classOf[key] || "tool4", note, more, place,
               bold: key === "turn" || key === "fold" };
    });
    const fold = rows.length && rows.at(-1).key === "fold" ? rows.pop() : null;
    if (!fold || whole) return rows;
    const [first, last] = fold.more;
    return [...rows.slice(0, first), fold, ...rows.slice(last + 1)];
  }

  const figureText = (row, small) => {
    const [mj, , above] = row.figure, [text, bounds] = metered(...row.figure);
    if (report.vague(...row.figure)) return "< " + plain((mj + above) / 1000);
    return text + (small || !bounds ? "" : " " + bounds);
  };
  function layout(width, rows) {
    const small = report.phone(), longest = Math.max(...rows.map(row => row.figure[0] === null ? 0 : figureText(row, small).length));
    const label = small ? 104 : 196, digits = small ? 56 : Math.min(200, Math.max(96, longest * 6.6 + 8)), joules = small ? 64 : 150;
    return { small, left: label, right: width - digits - joules - 14, digits: width - joules - 8, bar: width - joules, end: width - 12, width };
  }

  // The devices' power above it, on the same axis: of the drawing of the whole run what lies in the query's time.
  function shade(node, box, i, y, height) {
    const chart = run.root.querySelector("svg.stretch[data-name=watts]"), t0 = c.at[i] / 1000, part = c.ms[i] / 1000 / c.seconds;
    if (!chart || c.at[i] === null || !part) return;
    const [left, top, width, tall] = run.power.box(chart), levels = [...chart.querySelectorAll(".level > g")].map(level => level.id);
    const window = svg("svg", { x: box.left, y, width: box.right - box.left, height, preserveAspectRatio: "none",
                                viewBox: `${left + t0 / c.seconds * width} ${top} ${part * width} ${tall}` });
    window.append(svg("use", { href: "#" + levels.at(-1) }));
    node.append(window, svg("text", { class: "muted", x: box.left - 8, y: y + 10, "text-anchor": "end" }, chart.dataset.highest + " W"),
      svg("text", { class: "muted", x: box.left - 8, y: y + height, "text-anchor": "end" }, box.small ? "" : c.devices));
  }

  function joules(node, box, row, y, top) {
    const [mj, below, above, provenance] = row.figure;
    if (mj === null) {
      if (row.key !== "fold") node.append(svg("text", { class: "muted", x: box.digits, y: y + 13, "text-anchor": "end" }, report.DASH),
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
      if (row.key === "failed") node.append(svg("rect", { fill: "url(#hatch)", x: box.bar, y: y + 3, width: x(mj) - box.bar, height: 13 }));
    }
    if (below !== null && above !== null) {
      const lo = x(mj - below), hi = Math.min(box.width - 1, x(mj + above));
      node.append(svg("path", { class: "whisker", d: `M${lo} ${y + 9.5}H${hi}M${lo} ${y + 6.5}v6M${hi} ${y + 6.5}v6` }));
    }
  }

  function drawRow(node, box, row, y, seconds, top, unfold) {
    const x = ms => box.left + ms / 1000 / seconds * (box.right - box.left);
    if (row.bold && y > 60) node.append(svg("line", { class: "rule", x1: 0, x2: box.width, y1: y, y2: y }));
    const label = svg("text", { class: row.key === "failed" ? "bad" : row.key === "fold" ? "b fold" : row.bold ? "b" : "", x: row.bold ? 0 : 14, y: y + 13 }, row.label);
    if (row.key === "fold") label.addEventListener("click", unfold);
    node.append(label);
    if (row.note && !box.small) node.append(svg("text", { class: "muted", x: 52, y: y + 13 }, row.note));
    const from = x(row.from), width = Math.max(0.7, x(row.from + row.ms) - from);
    if (row.bold) node.append(svg("rect", { class: "turnbar", x: from, y: y + 8, width, height: 3 }));
    else node.append(svg("rect", { class: "f-" + row.class, x: from, y: y + 3, width, height: 13 }));
    if (row.key === "failed") node.append(svg("rect", { fill: "url(#hatch)", x: from, y: y + 3, width, height: 13 }));
    const title = svg("title", {}, `${row.label}: ${plain(row.ms / 1000)} s` + (row.figure[0] === null ? "" : ", " + metered(...row.figure).join(" ") + " J"));
    node.lastChild.append(title);
    joules(node, box, row, y, top);
  }

  function chart(i, width, whole, unfold) {
    const rows = rowsOf(i, whole), box = layout(width, rows), seconds = Math.max(c.ms[i] / 1000, 1e-3);
    const head = run.power ? 54 : 18, height = head + rows.length * ROW + 26;
    const node = svg("svg", { class: "fall", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `${at(c.turns[i], 0)} ${c.turns[i] === 1 ? "turn" : "turns"} over ${plain(seconds)} seconds, with the joules of each span` });
    const top = rows.reduce((most, row) => row.bold || row.figure[0] === null || report.vague(...row.figure) ? most : Math.max(most, row.figure[0] + (row.figure[2] || 0)), 1e-3);
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
    const notes = blocks.map(() => []);
    if (run.rows(i) === null) return notes;
    const turns = [], used = new Set();
    for (const row of rowsOf(i, true)) if (row.key === "turn") turns.push({ tokens: row.more, rows: [] }); else turns.at(-1).rows.push(row);
    const take = (t, key) => {
      const row = turns[t].rows.find(one => !used.has(one) && one.key === key);
      used.add(row);
      return !row || !measured && row.figure[0] === null ? [] : [joulesText(row.figure)];
    };
    const isOutput = who => who === "reasoning" || who === "reply" || who.startsWith("call of ");
    turns.forEach((turn, t) => {
      const mine = blocks.flatMap(([of], k) => of === t + 1 ? [k] : []);
      const first = mine.find(k => isOutput(blocks[k][1]));
      const prompts = mine.filter(k => ["system", "user", "developer"].includes(blocks[k][1]) && (first === undefined || k < first));
      const prompt = prompts.length ? prompts.at(-1) : first;
      if (prompt !== undefined) notes[prompt].push(...tokensText(turn.tokens[0], "tokens in"), ...take(t, "prefill"));
      if (first !== undefined) notes[first].push(...tokensText(turn.tokens[1], "tokens out"), ...take(t, "decode"));
      for (const k of mine) if (blocks[k][1].startsWith("result of ")) notes[k].push(...take(t, "tool " + blocks[k][1].slice(10)));
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
    if (run.rows(i) === null) cellNode.append(element("p", { className: "muted", textContent: "The spans of this query were left out to keep the file small: ipw-agent show RUN " + c.ids[i] }));
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
