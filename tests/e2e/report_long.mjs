// node report_long.mjs PAGE SUMMARY: what test_report_long.sh wants of the page of 10,000 queries.
import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { open } from "./browser.mjs";

const [file, summaryFile] = process.argv.slice(2);
const summary = JSON.parse(readFileSync(summaryFile, "utf8"));
const browser = await open({ chromium: process.env.IPW_CHROMIUM });
const page = await browser.page("file://" + file);
const wait = "new Promise(done => setTimeout(done, 120))";
const near = (a, b, e) => assert.ok(Math.abs(a - b) <= e, `${a} is not ${b}`);
const column = k => page.eval(`[...document.querySelectorAll("tr.q")].map(row => row.cells[${k}].innerText)`);
const range = () => page.eval("document.getElementById('range').innerText");

// ---- sums ----
const c = await page.eval("(({ ids, us, mj, seconds, tokens_in }) => ({ ids, us, mj, seconds, tokens_in }))(report.runs[0].columns)");
assert.equal(c.ids.length, 10000);
near(c.mj.reduce((sum, mj) => sum + mj, 0) / 1000, summary.ledger.gpu.queries_j, 1e-3 * summary.ledger.gpu.queries_j);
assert.equal(c.tokens_in.reduce((sum, n) => sum + n, 0), summary.totals.input_tokens);
const sum = await page.eval("document.querySelector('.parts .sum').cells[1].innerText");
near(Number(sum.replace(/\u202f/g, "")), summary.ledger.gpu.total_j, 0.51);

// ---- sort, filter, pages ----
assert.equal((await column(1)).length, 25);
assert.equal(await range(), "1\u201325 of 10\u202f000");
await page.eval("document.querySelector('[data-sort=seconds]').click()");
assert.equal((await column(1))[0], c.ids[c.us.indexOf(Math.max(...c.us))], "the longest of all comes first");
await page.eval("document.getElementById('next').click()");
assert.equal(await range(), "26\u201350 of 10\u202f000");
await page.eval("document.querySelector('.chip[data-mark=right]').click()");
assert.ok((await range()).startsWith(`1\u201325 of ${String(summary.totals.resolved).replace(/(\d)(\d{3})$/, "$1\u202f$2")}`), await range());
await page.eval("document.querySelector('.chip[data-mark=\"\"]').click()");
await page.eval("{const f = document.getElementById('filter'); f.value = 'q-0999'; f.dispatchEvent(new Event('input'))}");
assert.deepEqual((await column(1)).sort(), Array.from({ length: 10 }, (_, k) => `q-0999${k}`));

// ---- open a query; zoom until the number of queries in each state becomes lanes ----
await page.eval("report.runs[0].open(report.runs[0].columns.ids.indexOf('q-04321'))");
assert.ok((await page.eval("document.querySelector('tr.open svg.fall').textContent")).includes("turn 1"));
await page.eval("document.getElementById('power').scrollIntoView()");
await page.eval(wait);
const legend = () => page.eval("document.getElementById('lane-note').innerText");
assert.ok((await legend()).includes("10\u202f000 in view"), await legend());
await page.eval("report.runs[0].power.zoom(report.runs[0].columns.seconds / 2, report.runs[0].columns.seconds / 2 + 0.02)");
assert.ok(!(await legend()).includes("in view"), "zoomed in there are lanes");
await page.eval("document.getElementById('whole-run').click()");
assert.ok((await legend()).includes("10\u202f000 in view"));

// ---- hexagons, quantiles; the page stays light ----
const hexagons = "[...document.querySelectorAll('#tokens path.hex')].map(path => path.getAttribute('d').split('M').length - 1)";
assert.ok((await page.eval(hexagons)).reduce((sum, n) => sum + n, 0) > 50);
assert.ok((await page.eval("document.getElementById('tokens').innerText")).includes("n\u00a010\u202f000"));
assert.ok((await page.eval("[...document.querySelectorAll('#distributions tbody tr')].slice(0, 3).map(row => row.cells[5].innerText)")).every(text => /\d/.test(text)));
const nodes = await page.eval("document.querySelectorAll('svg *').length");
assert.ok(nodes <= 3000, `${nodes} SVG nodes`);
assert.deepEqual(page.errors, []);
assert.deepEqual(page.requests, []);
await browser.close();
console.log("ok");
