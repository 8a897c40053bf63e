// node report_page.mjs PAGE SUMMARY PAGE_WITHOUT_SENSORS PAGE_OF_SEVERAL [AXE]: what test_report_page.sh wants of a report's page.
import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { open } from "./browser.mjs";

const [file, summaryFile, without, several, axe] = process.argv.slice(2);
const summary = JSON.parse(readFileSync(summaryFile, "utf8"));
const domains = summary.efficiency.basis.split("+");
const total = key => domains.reduce((sum, d) => sum + summary.ledger[d][key], 0);
const browser = await open({ chromium: process.env.IPW_CHROMIUM });
const wait = "new Promise(done => setTimeout(done, 120))";
// A page that is drawn piece by piece: the value becomes `wanted`.
const becomes = async (page, what, wanted) => {
  let got;
  for (let tries = 0; tries < 100; tries++) {
    got = await page.eval(what);
    if (JSON.stringify(got) === JSON.stringify(wanted)) return;
    await page.eval(wait);
  }
  assert.deepEqual(got, wanted);
};
const near = (a, b, e) => assert.ok(Math.abs(a - b) <= e, `${a} is not ${b}`);

async function clean(page) {
  assert.deepEqual(page.errors, []);
  assert.deepEqual(page.requests, []);
}

// ---- without scripts: sentences, tables and 25 rows are there ----
const still = await browser.page("file://" + file, { scripts: false });
const root = (await still.ask("DOM.getDocument", { depth: 0 })).root.nodeId;
const rowIds = (await still.ask("DOM.querySelectorAll", { nodeId: root, selector: "tr.q" })).nodeIds;
assert.equal(rowIds.length, 25);
const written = (await still.ask("DOM.getOuterHTML", { nodeId: rowIds[1] })).outerHTML;
await still.close();

// ---- sums, and the same numbers by both programs ----
const page = await browser.page("file://" + file);
await clean(page);
const c = await page.eval("report.runs[0].columns");
near(c.mj.reduce((sum, mj) => sum + mj, 0) / 1000, total("queries_j"), 0.03);
const cell = text => Number(text.replace(/[\u202f~<]/g, "").replace("\u2212", "-"));
const parts = await page.eval("[...document.querySelectorAll('.parts tbody tr')].map(r => [r.cells[0].innerText.trim(), r.cells[1].innerText])");
assert.equal(parts.at(-1)[0], "sum");
near(cell(parts.at(-1)[1]), total("total_j"), 0.51);
near(parts.slice(0, -1).reduce((sum, row) => sum + cell(row[1]), 0), total("total_j"), 0.5 * parts.length);
await page.eval("document.querySelector('.chip[data-mark=\"\"]').click()");
const drawn = await page.eval("document.querySelectorAll('tr.q')[1].outerHTML");
const text = markup => markup.replace(/ (tabindex|aria-expanded|data-i|class)="[^"]*"/g, "").replace(/<svg.*<\/svg>/s, "")
  .replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&#39;", "'");
assert.equal(text(drawn), text(written), "the page's script writes a row as the program does");

// ---- headings: recomputed from the data ----
const heading = id => page.eval(`document.querySelector("#${id} h2").innerText.replaceAll("\u00A0", " ")`);
const model = c.bars.flatMap(bar => bar.filter((_, k) => k % 3 === 1 && ["prefill", "decode", "lm"].includes(c.parts[bar[k - 1]].key)))
  .reduce((sum, mj) => sum + mj, 0) / 1000;
assert.ok((await heading("energy")).includes(`${Math.round(model / total("total_j") * 100)} %`) ||
  /Decoding|Prefill/.test(await heading("energy")));
const dearest = (c.own || c.mj).map(mj => Math.max(0, mj)).sort((a, b) => b - a);
assert.ok((await heading("queries")).startsWith(
  `The five dearest of 30 queries took ${Math.round(dearest.slice(0, 5).reduce((a, b) => a + b) / dearest.reduce((a, b) => a + b) * 100)} %`));

// ---- sort, filter, pages ----
const column = k => page.eval(`[...document.querySelectorAll("tr.q")].map(r => r.cells[${k}].innerText)`);
const sorted = (list, sign) => list.every((v, k) => !k || sign * (cell(list[k - 1]) - cell(v)) <= 0);
await page.eval("document.querySelector('[data-sort=seconds]').click()");
assert.ok(sorted(await column(6), -1), "falling by seconds");
assert.equal(await page.eval("document.querySelector('[data-sort=seconds]').closest('th').getAttribute('aria-sort')"), "descending");
await page.eval("document.querySelector('[data-sort=seconds]').click()");
assert.ok(sorted(await column(6), 1), "rising by seconds");
await page.eval("document.getElementById('next').click()");
assert.equal((await column(1)).length, 5);
const filter = value => page.eval(`{const f = document.getElementById("filter"); f.value = ${JSON.stringify(value)}; f.dispatchEvent(new Event("input"))}`);
await filter("q-01");
assert.equal((await column(1)).length, 10);
await filter("calcul");
assert.equal(await page.eval("document.getElementById('range').innerText"), "1\u201325 of 29 (of 30)");
await filter("OVEN IS");
assert.deepEqual((await column(1)).map(id => id.split(" ")[0]), ["q-011"], "an error's text");
await filter("no such query");
assert.equal((await column(1)).length, 0);
await filter("");
await page.eval("document.querySelector('.chip[data-mark=wrong]').click()");
assert.equal((await column(1)).length, 10);
await page.eval("document.querySelector('.chip[data-mark=\"\"]').click()");
await page.eval("document.querySelector('.parts [data-part=wait]').click()");
assert.deepEqual(await column(1), ["q-007"]);
await page.eval("document.getElementById('part-filter').click()");

// ---- a query by keyboard; the failed attempt is hatched and named ----
await page.eval("report.runs[0].table.open(report.runs[0].columns.ids.indexOf('q-007'))");
await page.key("Enter");
assert.equal(await page.eval("document.querySelectorAll('tr.open').length"), 0, "Enter closes it");
await page.key("Enter");
const fall = await page.eval("document.querySelector('tr.open svg.fall').textContent");
for (const words of ["turn 1", "turn 2", "attempt 1, 503", "waiting to retry", "prefill", "decode", "calculator"]) assert.ok(fall.includes(words), words);
assert.equal(await page.eval("document.querySelectorAll('.fall [fill=\"url(#hatch)\"]').length >= 1"), true);

// ---- the conversation: tokens and joules of each block in its margin are those of the waterfall ----
const margin = await page.eval(`[...document.querySelectorAll(".talk > div")].map(block => [...block.querySelectorAll("span")].map(s => s.textContent))`);
const rows = (await page.eval("(i => report.runs[0].rows(i))(report.runs[0].columns.ids.indexOf('q-007'))")).map(row => [c.names[row[0]], ...row.slice(1)]);
const starts = rows.flatMap((row, k) => row[0] === "turn" ? [k] : []);
const joulesOf = (key, turn) => page.eval(`(f => report.vague(...f) ? "< " + report.plain((f[0] + f[2]) / 1000) : report.metered(...f)[0])(${
  JSON.stringify(rows.slice(starts[turn], starts[turn + 1]).find(row => row[0] === key).slice(4, 8))})`);
const notesOf = what => margin.find(list => list[0] === what).slice(1);
const [prompt, called, result, answer] = ["turn 1 \u00B7 user", "turn 1 \u00B7 call of calculator", "turn 1 \u00B7 result of calculator", "turn 2 \u00B7 reply"].map(notesOf);
for (const [notes, ...wanted] of [[prompt, "400 tokens in", await joulesOf("prefill", 0)], [called, "9 tokens out", await joulesOf("decode", 0)],
  [result, await joulesOf("tool calculator", 0)], [answer, "600 tokens in", await joulesOf("prefill", 1), "17 tokens out", await joulesOf("decode", 1)]]) {
  assert.ok(notes.length === wanted.length && wanted.every((words, k) => notes[k].startsWith(words)), `${notes} is not ${wanted}`);
  assert.ok(notes.every(note => / (J|tokens in|tokens out)$/.test(note)), notes);
}

// ---- hostile texts are text, also a million characters in one line ----
await page.eval("report.runs[0].table.open(report.runs[0].columns.ids.findIndex(id => id.startsWith('q-004')))");
assert.equal(await page.eval("window.pwned === undefined && document.querySelectorAll('img, tr b b, .talk b').length"), 0);
const said = await page.eval("[...document.querySelectorAll('.talk pre')].map(pre => pre.textContent.slice(0, 40)).join('|')");
assert.ok(said.includes("</script><img src=x"), said);
assert.equal(await page.eval("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), true);

// ---- zoom: by mouse, by keyboard, back; a click on a lane ----
await page.eval("document.getElementById('power').scrollIntoView()");
await page.eval(wait);
const box = await page.eval("(r => [r.left, r.top, r.width, r.height])(document.querySelector('#over-time svg.stretch').getBoundingClientRect())");
const clock = await page.eval("document.querySelector('.desk .axis').textContent");
await page.drag(box[0] + box[2] * 0.2, box[1] + 50, box[0] + box[2] * 0.7, box[1] + 60);
const view = () => page.eval("[report.runs[0].power.view.from, report.runs[0].power.view.to]");
let [from, to] = await view();
near(from, c.seconds * 0.2, c.seconds * 0.05);
near(to, c.seconds * 0.7, c.seconds * 0.05);
await page.eval("document.getElementById('over-time').focus()");
await page.key("ArrowRight");
assert.ok((await view())[0] > from, "the arrow pans");
await page.key("0", "Digit0");
assert.deepEqual(await view(), [0, c.seconds]);
await page.key("+", "Equal");
assert.ok((await view())[1] < c.seconds);
await page.eval("document.getElementById('whole-run').click()");
assert.deepEqual(await view(), [0, c.seconds]);
assert.equal(await page.eval("document.querySelector('.desk .axis').textContent"), clock, "back as it was");
const lane = await page.eval("(r => [r.left, r.top])(document.querySelector('#lanes svg.stretch').getBoundingClientRect())");
await page.drag(lane[0] + 16, lane[1] + 20, lane[0] + 16, lane[1] + 20);
await page.eval(wait);
assert.equal(await page.eval("report.runs[0].table.state.open >= 0"), true);

// ---- tables and CSV in place; themes ----
for (const id of ["power", "tokens"]) {
  await page.eval(`document.querySelector("[data-table=${id}]").click()`);
  assert.ok(await page.eval(`document.querySelector("#${id} .numbers table").rows.length > 1`));
  await page.eval(`document.querySelector("[data-table=${id}]").click()`);
  assert.equal(await page.eval(`document.querySelector("#${id} .numbers").hidden`), true);
}
const csv = await page.eval("report.parse('csv-queries')");
assert.equal(csv.trim().split("\r\n").length, 31);
const light = await page.eval("getComputedStyle(document.body).backgroundColor");
await page.eval("document.getElementById('theme').click()");
assert.notEqual(await page.eval("getComputedStyle(document.body).backgroundColor"), light);
await page.eval(wait);
await clean(page);

// ---- dark by the system, a telephone, paper, no sensors ----
for (const [options, check] of [
  [{ dark: true }, "getComputedStyle(document.body).backgroundColor === 'rgb(20, 23, 27)'"],
  [{ width: 390 }, "document.documentElement.scrollWidth <= 390"],
  [{ width: 390, dark: true }, "report.runs[0].table.open(0), document.documentElement.scrollWidth <= 390"],
  [{ media: "print", dark: true }, "getComputedStyle(document.body).backgroundColor === 'rgb(253, 253, 251)' && getComputedStyle(document.querySelector('.tools')).display === 'none'"],
]) {
  const other = await browser.page("file://" + file, options);
  await other.eval("document.getElementById('power').scrollIntoView()");
  await other.eval(wait);
  assert.equal(await other.eval(check), true, check);
  await clean(other);
  await other.close();
}
const bare = await browser.page("file://" + without + "#q=q-001");
await bare.eval(wait);
assert.equal(await bare.eval("document.querySelectorAll('tr.open').length"), 1, "an address opens a query");
assert.ok(await bare.eval("document.querySelector('.open .fall').textContent.includes('turn 1')"));
assert.equal(await bare.eval("/[^\\d.]0 J/.test(document.body.innerText)"), false);
await clean(bare);

// ---- several runs: the comparison first, each run folded, the first one unfolded ----
for (const width of [1280, 390]) {
  const beside = await browser.page("file://" + several, { width });
  const ids = await beside.eval("[...document.querySelectorAll('[id]')].map(node => node.id)");
  assert.equal(new Set(ids).size, ids.length, "an id is used twice");
  assert.equal(await beside.eval("document.querySelectorAll('h1').length"), 1);
  assert.equal(await beside.eval("document.querySelectorAll('.compare tbody tr').length"), 4);
  assert.equal(await beside.eval("document.querySelectorAll('details.run[open]').length"), 1);
  assert.equal(await beside.eval("document.querySelectorAll('#comparison .figure.desk circle').length"), 4);
  assert.equal(await beside.eval("report.runs.filter(run => run.table).length"), 1, "a folded run is not made");
  await beside.eval("document.querySelectorAll('details').forEach(d => { d.open = true; })");
  await beside.eval("report.runs[0].table.open(0); document.getElementById('power').scrollIntoView()");
  await beside.eval(wait);
  assert.ok(await beside.eval("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "too wide");
  // each run has its own power, table and waterfalls; what is done in one leaves the others as they are
  assert.equal(await beside.eval("report.runs.every(run => run.table)"), true);
  await beside.eval("document.getElementById('run2-power').scrollIntoView()");
  await beside.eval(wait);
  assert.deepEqual(await beside.eval("report.runs.map(run => run.node('over-time').querySelectorAll('.desk path').length > 9).slice(0, 2)"), [true, true]);
  await beside.eval("report.runs[1].power.zoom(0, 0.2); report.runs[1].node('filter').value = 'q-00'; report.runs[1].node('filter').dispatchEvent(new Event('input'))");
  await becomes(beside, "report.runs.slice(0, 2).map(run => run.node('queries-table').querySelectorAll('tr.q').length)", [25, 10]);
  assert.equal(await beside.eval("report.runs[0].power.view.to === report.runs[0].columns.seconds && report.runs[1].power.view.to < report.runs[1].columns.seconds"), true);
  await beside.eval("location.hash = '#run2-q=q-020'");
  await beside.eval(wait);
  const opened = () => beside.eval("report.runs.slice(0, 2).map(run => run.columns.ids[run.table.state.open])");
  assert.equal((await opened())[1], "q-020");
  assert.equal(await beside.eval("report.runs[1].node('queries-table').querySelectorAll('svg.fall').length"), 1);
  await beside.eval("location.hash = '#q=q-021'");
  await beside.eval(wait);
  assert.deepEqual(await opened(), ["q-021", "q-020"]);
  for (const id of ["run2-power", "run4-tokens"]) {
    await beside.eval(`document.querySelector("[data-table=${id}]").click()`);
    assert.ok(await beside.eval(`document.querySelector("#${id} .numbers table").rows.length > 1`), id);
  }
  assert.equal(await beside.eval("[...document.querySelectorAll('button[data-csv]')].every(b => report.parse('csv-' + b.dataset.csv).includes('\\r\\n'))"), true);
  await clean(beside);
  await beside.close();
}

// ---- the rules of axe-core, with a query open: none is broken ----
for (const url of axe ? [file, without, several] : []) for (const options of [{}, { dark: true }, { width: 390 }]) {
  const other = await browser.page("file://" + url, options);
  await other.eval("report.runs[0].open(0)");
  await other.eval(wait);
  await other.eval(readFileSync(axe, "utf8") + ";0");
  assert.deepEqual(await other.eval("axe.run().then(found => found.violations.map(v => `${v.id}: ${v.nodes[0].html.slice(0, 200)}`))"), []);
  await other.close();
}
await browser.close();
console.log("ok");
