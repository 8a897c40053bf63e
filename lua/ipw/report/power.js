"use strict";
// The run over time: ipw.report.lanes drew it. Here it is stretched along time, by a drag, by keys and to a query, and a
// lane says what it is.
report.power = run => {
  const c = run.columns, box = run.node("over-time");
  if (!box) return null;
  const view = { from: 0, to: c.seconds }, lanesFrom = Number(box.dataset.lanesFrom), whole = run.node("whole-run");
  const span = () => view.to - view.from, isWhole = () => view.from <= 0 && view.to >= c.seconds;
  const number = (node, name) => Number(node.getAttribute(name));
  const frames = [...box.querySelectorAll("svg.stretch")].map(node => {
    const [x, y, width, height] = node.getAttribute("viewBox").split(" ").map(Number);
    return { node, figure: node.ownerSVGElement, box: { x, y, width, height }, left: number(node, "x"), width: number(node, "width"),
             top: number(node, "y"), axis: node.ownerSVGElement.querySelector(".axis") };
  });
  for (const frame of frames) frame.clock = frame.axis && frame.axis.innerHTML;
  // Where it is on the screen; an element's own box would hold also what is cut off.
  function area({ figure, left, top, width, box }) {
    const whole = figure.getBoundingClientRect(), scale = whole.width / figure.viewBox.baseVal.width;
    return { left: whole.left + left * scale, top: whole.top + top * scale, width: width * scale, height: box.height * scale };
  }

  // ---- what moves when the window does ----

  // Bins of the finest level of which each has three pixels.
  function levels(frame) {
    const list = [...frame.node.querySelectorAll(".level")];
    if (!list.length) return;
    const pixels = level => Number(level.dataset.seconds) / span() * (area(frame).width || frame.width);
    const best = list.filter(level => pixels(level) >= 3).at(-1) || list[0];
    for (const level of list) if (level === best) level.removeAttribute("display"); else level.setAttribute("display", "none");
    const seconds = Number(best.dataset.seconds), told = run.node("bin");
    if (told && area(frame).width) told.textContent = seconds < 1 ? report.plain(seconds * 1000) + " ms" : report.plain(seconds) + " s";
  }
  function clock(frame) {
    if (isWhole()) { frame.axis.innerHTML = frame.clock; return; }
    const unit = Number(frame.axis.dataset.unit), y = Number(frame.axis.dataset.y);
    const step = report.axisStep(span() / unit, Math.max(2, Math.floor(frame.width / 110))), nodes = [];
    for (let k = Math.ceil(view.from / unit / step - 1e-9); k * step * unit <= view.to; k++) {
      const x = frame.left + (k * step * unit - view.from) / span() * frame.width;
      nodes.push(report.svg("line", { x1: x, x2: x, y1: y, y2: y + 3, stroke: "var(--muted)" }),
        report.svg("text", { x: Math.min(x, frame.left + frame.width - 14), y: y + 15.5, "text-anchor": "middle", fill: "var(--muted)" }, report.tick(k * step, step)));
    }
    nodes.push(report.svg("line", { x1: frame.left, x2: frame.left + frame.width, y1: y, y2: y, stroke: "var(--muted)" }));
    frame.axis.replaceChildren(...nodes);
  }
  function tags(frame) {
    const x = at => frame.left + ((at - frame.left) / frame.width * c.seconds - view.from) / span() * frame.width;
    for (const tag of frame.figure.querySelectorAll(".tag")) {
      const from = Math.max(frame.left, x(Number(tag.dataset.from))), to = Math.min(frame.left + frame.width, x(Number(tag.dataset.to)));
      let text = "";
      for (let k = 1; !text && tag.dataset["text" + k]; k++) if (Number(tag.dataset["width" + k]) <= to - from - 5) text = tag.dataset["text" + k];
      tag.textContent = text;
      tag.setAttribute("x", from + 3);
    }
  }
  function draw() {
    const zoom = c.seconds / span(), lanes = zoom >= lanesFrom;
    run.node("lanes").hidden = !lanes;
    run.node("states").hidden = lanes;
    for (const frame of frames) {
      const { x, y, width, height } = frame.box;
      frame.node.setAttribute("viewBox", `${x + view.from / c.seconds * width} ${y} ${width / zoom} ${height}`);
      levels(frame);
      if (frame.axis) clock(frame);
      if (frame.node.dataset.name === "lanes" && frame.figure.checkVisibility()) {
        tags(frame);
        const stretched = frame.width * zoom / width;
        run.node("lane-hatch").setAttribute("patternTransform", `scale(${1 / stretched} 1) rotate(45)`);
      }
    }
    whole.disabled = isWhole();
    run.node("lane-note").textContent = lanes ? "" : report.at(visible().length, 0) + " in view" + (lanesFrom < 1e9 ? "; zoom in for lanes" : "");
  }
  const visible = () => c.ids.map((_, i) => i).filter(i => c.at[i] !== null && (c.at[i] + c.ms[i]) / 1000 > view.from && c.at[i] / 1000 < view.to);

  // ---- zoom ----

  function zoom(from, to) {
    const length = Math.min(c.seconds, Math.max(c.seconds / 100000, 0.001, to - from));
    view.from = Math.max(0, Math.min(from, c.seconds - length));
    view.to = view.from + length;
    draw();
  }
  function show(i) {
    const t0 = c.at[i] / 1000, seconds = c.ms[i] / 1000;
    zoom(t0 - seconds * 0.05, t0 + seconds * 1.05);
    run.node("power").scrollIntoView({ block: "start" });
  }
  box.addEventListener("keydown", event => {
    const middle = (view.from + view.to) / 2;
    const act = { ArrowLeft: [view.from - span() / 4, view.to - span() / 4], ArrowRight: [view.from + span() / 4, view.to + span() / 4],
                  "+": [middle - span() / 4, middle + span() / 4], "-": [middle - span(), middle + span()], 0: [0, c.seconds] }[event.key];
    if (act) { event.preventDefault(); zoom(...act); }
  });
  whole.addEventListener("click", () => { zoom(0, c.seconds); box.focus({ preventScroll: true }); });

  // ---- the pointer ----

  // The instant under it and, in lanes, the query.
  function under(event, frame) {
    const there = area(frame), part = Math.min(1, Math.max(0, (event.clientX - there.left) / there.width));
    const seconds = view.from + part * span(), pitch = Number(frame.node.dataset.pitch);
    const lane = pitch ? 1 + Math.floor((event.clientY - there.top) / there.height * frame.box.height / pitch) : 0;
    return { seconds, i: lane ? c.ids.findIndex((_, k) => c.lane[k] === lane && c.at[k] <= seconds * 1000 && seconds * 1000 <= c.at[k] + c.ms[k]) : -1 };
  }
  function words(i) {
    const joules = c.mj[i] === null ? "" : ", " + report.metered(c.mj[i], c.below[i], c.above[i], c.provenance[i]).join(" ") + " J";
    return `${c.ids[i]} ${report.marks[c.mark[i]]} ${report.plain(c.ms[i] / 1000)} s${joules}`;
  }
  for (const frame of frames) {
    const { node, figure } = frame;
    node.prepend(report.svg("rect", { class: "catch", ...frame.box }));
    const title = node.insertBefore(report.svg("title", {}, ""), node.firstChild);
    let from = null, mark = null;
    node.addEventListener("pointerdown", event => {
      if (event.button !== 0) return;
      from = event;
      node.setPointerCapture(event.pointerId);
    });
    node.addEventListener("pointermove", event => {
      if (!from) {
        const { i } = under(event, frame);
        title.textContent = i >= 0 ? words(i) : "";
        node.classList.toggle("over-query", i >= 0);
        return;
      }
      if (Math.abs(event.clientX - from.clientX) < 4) return;
      if (!mark) figure.append(mark = report.svg("rect", { class: "selected", y: frame.top, height: node.getAttribute("height") }));
      const [a, b] = [under(from, frame).seconds, under(event, frame).seconds].sort((x, y) => x - y).map(s => frame.left + (s - view.from) / span() * frame.width);
      mark.setAttribute("x", a);
      mark.setAttribute("width", b - a);
    });
    const end = event => {
      if (!from) return;
      const began = from, dragged = mark;
      from = null;
      if (mark) { mark.remove(); mark = null; }
      if (event.type === "pointercancel") return;
      const there = under(event, frame);
      if (dragged) zoom(...[under(began, frame).seconds, there.seconds].sort((x, y) => x - y));
      else if (there.i >= 0) run.table.open(there.i);
    };
    node.addEventListener("pointerup", end);
    node.addEventListener("pointercancel", end);
    node.addEventListener("dblclick", () => zoom(0, c.seconds));
  }
  const redraw = () => { if (box.clientWidth) draw(); };
  redraw();
  const whereOf = node => (({ x, y, width, height }) => [x, y, width, height])(frames.find(frame => frame.node === node).box);
  return { show, zoom, view, redraw, box: whereOf };
};
