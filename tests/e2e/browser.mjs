// tests/e2e/browser.mjs: opens a page in headless Chromium, over the DevTools protocol on two pipes.
//
//   const browser = await open({ chromium });
//   const page = await browser.page("file:///...", { width: 1280, height: 900, dark: false });
//   await page.eval("1 + 1");  page.errors;  page.requests;  await page.picture("out.png");
//   await browser.close();
//
// errors are the console's warnings and errors and the exceptions of scripts; requests are addresses that
// the page asked for, without its own.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export async function open({ chromium }) {
  const profile = mkdtempSync(join(tmpdir(), "ipw-browser."));
  const child = spawn(chromium, ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--hide-scrollbars", `--user-data-dir=${profile}`, "--remote-debugging-pipe", "about:blank"],
    { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const [, , , to, from] = child.stdio;
  const waiting = new Map(), listeners = new Map();
  let number = 0, rest = "";
  const dead = new Promise((_, reject) => child.on("exit", code => reject(new Error(`chromium ended with ${code}`))));
  dead.catch(() => {});
  from.setEncoding("utf8");
  from.on("data", chunk => {
    const parts = (rest + chunk).split("\0");
    rest = parts.pop();
    for (const part of parts) {
      const message = JSON.parse(part);
      if (message.id) {
        const { resolve, reject } = waiting.get(message.id);
        waiting.delete(message.id);
        if (message.error) reject(new Error(message.error.message)); else resolve(message.result);
      } else {
        listeners.get(message.sessionId)?.(message.method, message.params);
      }
    }
  });
  const send = (method, params = {}, sessionId = undefined) => Promise.race([dead, new Promise((resolve, reject) => {
    waiting.set(++number, { resolve, reject });
    to.write(JSON.stringify({ id: number, method, params, sessionId }) + "\0");
  })]);

  async function page(address, { width = 1280, height = 900, dark = false, scripts = true, media = "", scale = 1 } = {}) {
    const { targetId } = await send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
    const errors = [], requests = [];
    let loaded;
    const load = new Promise(resolve => { loaded = resolve; });
    listeners.set(sessionId, (method, params) => {
      if (method === "Runtime.exceptionThrown") errors.push(params.exceptionDetails.exception?.description || params.exceptionDetails.text);
      if (method === "Runtime.consoleAPICalled") errors.push(params.args.map(a => a.value ?? a.description).join(" "));
      if (method === "Log.entryAdded") errors.push(params.entry.text);
      if (method === "Network.requestWillBeSent" && params.request.url !== address.split("#")[0]) requests.push(params.request.url);
      if (method === "Page.loadEventFired") loaded();
    });
    const ask = (method, params) => send(method, params, sessionId);
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await ask(domain + ".enable");
    await ask("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: scale, mobile: false });
    await ask("Emulation.setEmulatedMedia", { media, features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
    if (!scripts) await ask("Emulation.setScriptExecutionDisabled", { value: true });
    await ask("Page.navigate", { url: address });
    await load;
    return {
      errors, requests, ask,
      async eval(expression) {
        const { result, exceptionDetails } = await ask("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
        if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
        return result.value;
      },
      async key(key, code = key) {
        const text = key === "Enter" ? "\r" : key.length === 1 ? key : undefined;
        await ask("Input.dispatchKeyEvent", { type: "keyDown", key, code, text, windowsVirtualKeyCode: key === "Enter" ? 13 : key === "Tab" ? 9 : 0 });
        await ask("Input.dispatchKeyEvent", { type: "keyUp", key, code });
      },
      async drag(x0, y0, x1, y1) {
        const mouse = (type, x, y) => ask("Input.dispatchMouseEvent", { type, x, y, button: "left", buttons: 1, clickCount: 1 });
        await mouse("mouseMoved", x0, y0);
        await mouse("mousePressed", x0, y0);
        for (let k = 1; k <= 4; k++) await mouse("mouseMoved", x0 + (x1 - x0) * k / 4, y0 + (y1 - y0) * k / 4);
        await mouse("mouseReleased", x1, y1);
      },
      // Of the whole page, or of one element with so many pixels around it; `tall`: no more than that.
      async picture(path, selector = "html", { around = 0, tall = Infinity } = {}) {
        const box = await this.eval(`(r => [r.left + scrollX, r.top + scrollY, r.width, r.height])(document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect())`);
        const { data } = await ask("Page.captureScreenshot", { captureBeyondViewport: true,
          clip: { x: Math.max(0, box[0] - around), y: Math.max(0, box[1] - around), width: box[2] + 2 * around,
            height: Math.min(tall, box[3] + 2 * around), scale: 1 } });
        writeFileSync(path, Buffer.from(data, "base64"));
      },
      close: () => send("Target.closeTarget", { targetId }),
    };
  }
  async function close() {
    await send("Browser.close").catch(() => {});
    if (child.exitCode === null) await new Promise(resolve => child.once("exit", resolve));
    // Its helper processes end a little later.
    for (let k = 0; k < 50 && spawnSync("pgrep", ["-f", profile]).status === 0; k++)
      await new Promise(resolve => setTimeout(resolve, 100));
    rmSync(profile, { recursive: true, force: true });
  }
  return { page, close };
}
