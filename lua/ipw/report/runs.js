"use strict";
// The runs of the page. A run's ids and its data begin with its prefix: "" is the first one, "run2-" the second.
// The first is made at once; of several runs the others are made when they are first unfolded.
report.runs = [...document.querySelectorAll('script[id$="columns"]')].map((data, place) => {
  const prefix = data.id.slice(0, -"columns".length);
  let columns = null, rowLists = null, made = false;
  const run = {
    prefix,
    root: document.getElementById("run" + (place + 1)) || document.getElementById("main"),
    table: null, waterfall: null, power: null,
    node: id => document.getElementById(prefix + id),
    get columns() {
      if (!columns) {
        columns = report.parse(prefix + "columns");
        columns.ms = columns.us.map(us => us === null ? null : us / 1000);
      }
      return columns;
    },
    // The rows of a query's waterfall (ipw.report.detail); null: they are not in this file.
    rows: i => (rowLists = rowLists || report.parse(prefix + "rows"))[i],
    texts: i => report.parse(prefix + "text-" + i),
    make() {
      if (made) return;
      made = true;
      run.waterfall = report.waterfall(run);
      run.table = report.table(run);
      run.power = report.power(run);
      if (run.columns.ids.length === 1) run.table.expand(0);
    },
    redraw() {
      if (run.table) run.table.redraw();
      if (run.power) run.power.redraw();
    },
    open(i) {
      if (run.root.matches("details")) run.root.open = true;
      run.make();
      run.table.open(i);
    },
  };
  if (run.root.matches("details")) {
    run.root.addEventListener("toggle", () => {
      if (!run.root.open) return;
      run.make();
      run.redraw();
    });
  }
  return run;
});

(() => {
  // #q=ID opens a query of the first run, #run2-q=ID one of the second, #run2 unfolds the second.
  function byAddress() {
    for (const [key, id] of new URLSearchParams(location.hash.slice(1))) {
      const run = report.runs.find(one => one.prefix + "q" === key);
      const i = run ? run.columns.ids.findIndex(one => one === id || one.startsWith(id + ", pass ")) : -1;
      if (i >= 0) run.open(i);
      const fold = document.getElementById(key);
      if (fold && fold.matches("details.run")) fold.open = true;
    }
  }
  // Paper is light, whatever the screen is.
  const root = document.documentElement;
  let theme;
  const redraw = () => report.runs.forEach(run => run.redraw());
  addEventListener("beforeprint", () => { theme = root.dataset.theme; root.dataset.theme = "light"; redraw(); });
  addEventListener("afterprint", () => {
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    redraw();
  });
  addEventListener("hashchange", byAddress);
  report.runs[0].make();
  addEventListener("load", byAddress);
})();
