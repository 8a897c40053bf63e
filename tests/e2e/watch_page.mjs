// tests/e2e/watch_page.mjs URL GATE: opens the page of a run that goes on, sees its figures move, opens the gate at which
// the run's last query waits, and sees that the page tells the end. Without GATE: the page of `telemetry --listen`.
import { open } from "./browser.mjs";
import assert from "node:assert";

const [address, gate] = process.argv.slice(2);
const browser = await open({ chromium: process.env.IPW_CHROMIUM });
const page = await browser.page(address, { width: 390, height: 800, dark: true });
const text = id => page.eval(`document.getElementById(${JSON.stringify(id)}).textContent`);
const until = async (what, test) => {
  for (let k = 0; k < 300; k++) {
    if (await test()) return;
    await new Promise(resolve => setTimeout(resolve, 100));
  }
  assert.fail(`${what}: ${await page.eval("document.body.innerText")}`);
};

if (!gate) {
  await until("two readings are drawn", async () => /^M.*L/.test(await page.eval("document.getElementById('line').getAttribute('d') || ''")));
  assert.equal(await text("title"), "Sensors of this machine");
  assert.match(await page.eval("document.getElementById('sensors').innerText"), /CPU\s+[78]\d(\.\d)? W\s+[\d.]+ m?J since the page was opened\s+DRAM\s+\d/);
  assert.ok(await page.eval("document.documentElement.scrollWidth <= 390"), "wider than a telephone");
  assert.deepEqual([...new Set(page.requests.map(url => new URL(url).pathname))].sort(), ["/live.json", "/metrics"]);
  assert.deepEqual(page.errors, []);
  // a page that is opened later has the power from before
  const later = await browser.page(address);
  await new Promise(resolve => setTimeout(resolve, 1500));
  assert.ok(await later.eval("power.length") >= 2 && await later.eval("power[0][0]") < 2);
  if (process.env.IPW_PICTURES) await later.picture(`${process.env.IPW_PICTURES}/sensors.png`);
  await browser.close();
  process.exit(0);
}
await until("four queries are done", async () => await text("done") === "4 of 5");
const [joules, state] = [await text("joules"), await text("state")];
await until("joules, time and the line of power move", async () => await text("joules") !== joules &&
  await text("state") !== state && /^M.*L/.test(await page.eval("document.getElementById('line').getAttribute('d')")));
assert.equal(await text("title"), "gated · fake-model · rows");
assert.match(await text("joules"), / k?J$/);
assert.match(await text("watts"), / W$/);
assert.match(await text("state"), /^Running for \d+ s\.$/);
assert.equal(await text("correct"), "1");
assert.equal(await text("correct_more"), "50.0 % of 2");
assert.match(await text("left"), /^\d+ (s|min)$/);
assert.equal(await page.eval("document.getElementById('bar').style.width"), "80%");
assert.ok(await page.eval("document.documentElement.scrollWidth <= 390"), "wider than a telephone");
if (process.env.IPW_PICTURES) {
  for (const [name, width, dark] of [["dark-390", 390, true], ["light", 1280, false], ["dark", 1280, true]]) {
    const other = await browser.page(address, { width, height: 800, dark });
    await new Promise(resolve => setTimeout(resolve, 6000));
    await other.picture(`${process.env.IPW_PICTURES}/${name}.png`);
    await other.close();
  }
}
// Nothing was asked of anybody but the program itself.
assert.deepEqual([...new Set(page.requests.map(url => new URL(url).origin + new URL(url).pathname))], [new URL("/live.json", address).href]);
// What is in flight, since when, and what failed last.
assert.match(await page.eval("document.getElementById('flights').innerText"), /^\S+\s+\d+(\.\d)? (s|min)\s+\S+ for \d/);
assert.equal(await text("flying"), "1 query, for so long:");
const failed = await page.eval("[...document.getElementById('failed').rows].map(row => [...row.cells].map(cell => cell.textContent))");
assert.ok(failed.length >= 2 && failed.every(row => row[0] && / ago$/.test(row[1]) && row[2]), JSON.stringify(failed));
// Another page that is opened later has the power from before.
const later = await browser.page(address);
await new Promise(resolve => setTimeout(resolve, 700));
assert.ok(await later.eval("power.length") >= 2 && await later.eval("power[0][0]") < 3);
await later.close();
assert.deepEqual(page.errors, []);
await fetch(`http://${gate}/open`);
await until("the page tells the end", async () => /run has ended/.test(await text("state")));
assert.match(await text("state"), /^The run has ended after \d+ s\. Its files are in the folder run; ipw-agent report run shows the whole run\.$/);
assert.equal(await text("done"), "5 of 5");
assert.equal(await page.eval("document.getElementById('bar').style.width"), "100%");
if (process.env.IPW_PICTURES) await page.picture(`${process.env.IPW_PICTURES}/ended-390.png`);
await browser.close();
