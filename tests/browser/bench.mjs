// Measures the pages against their budgets and prints a table. The figures depend on the machine: compare them with
// earlier ones of the same machine.
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { Loomline } from "../js/loomline.mjs";
import { assets, converse, launch, post, replaceAssets, rest, until } from "./chromium.mjs";
import { MARKDOWN, Scripts, TEAM } from "./samples.mjs";

const MESSAGES = Number(process.env.LOOMLINE_MESSAGES ?? 10_000);
const RUNS = 7;
const rows = [];

/** The value below which a share of the numbers is. */
function quantile(numbers, share) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Adds a row, and judges it where there is a budget: the value may be at most that. */
function report(what, value, unit, budget) {
  const digits = unit === "ms" || unit === "MB" ? 1 : 0;
  const verdict = budget === undefined ? "" : value <= budget ? "ok" : "OVER";
  rows.push([what, `${value.toFixed(digits)} ${unit}`, budget === undefined ? "" : `${budget} ${unit}`, verdict]);
}

const scripts = await Scripts.inFolder();
const LONG = Array.from({ length: 130 }, (_, n) => MARKDOWN.replace("A report", `Report ${n}`)).join("\n\n").slice(0, 105_000);
// About 1,000 tokens a second: the server sends as many pieces as it would for a real model.
const writer = await scripts.model("writer", [{ text: LONG }], 1);
const server = await Loomline.start(`${TEAM}\n${writer}\n[agents.writer]\nmodel = "writer"\n`);
const browser = await launch("--enable-precise-memory-info");

async function page(path, { base = server.base, script } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await replaceAssets(context);
  if (script) await context.addInitScript(script);
  const opened = await context.newPage();
  await opened.goto(base + path);
  return opened;
}

// --- Bytes ---------------------------------------------------------------------------------------

const html = { accept: "text/html" };

async function bytes() {
  const text = await (await fetch(`${server.base}/chat`, { headers: html })).text();
  for (const [name, raw, small] of [["page.js", 30_000, 10_000], ["style.css", 20_000, 6_000]]) {
    const path = new RegExp(`/assets/[^"]*/${name}`).exec(text)[0];
    const file = assets
      ? await readFile(join(assets, name))
      : Buffer.from(await (await fetch(server.base + path)).arrayBuffer());
    report(`${name}, raw`, file.length, "bytes", raw);
    report(`${name}, gzip`, gzipSync(file, { level: 9 }).length, "bytes", small);
    const headers = { "accept-encoding": "gzip" };
    const sent = await new Promise((done) => {
      request(server.base + path, { headers }, (answer) => {
        let length = 0;
        answer.on("data", (data) => { length += data.length; });
        answer.on("end", () => done(length));
      }).end();
    });
    report(`${name}, as it is sent`, sent, "bytes");
  }
}

// --- Opening -------------------------------------------------------------------------------------

async function opening() {
  for (let n = 0; n < 30; n++) await post(server, "sixty", `Message ${n}: say ${20 + ((n * 37) % 80)} words`);
  await rest(server, "sixty");
  const times = [];
  const paints = [];
  for (let n = 0; n < RUNS; n++) {
    const began = performance.now();
    const text = await (await fetch(`${server.base}/chat/sixty`, { headers: html })).text();
    times.push(performance.now() - began);
    if (n === 0) report("page of 60 messages, size", text.length, "bytes");
    const opened = await page("/chat/sixty");
    paints.push(await until("the first paint", () => opened.evaluate(() =>
      performance.getEntriesByName("first-contentful-paint")[0]?.startTime)));
    await opened.context().close();
  }
  report("page of 60 messages, from the server, median", quantile(times, 0.5), "ms");
  report("page of 60 messages, first contentful paint, median", quantile(paints, 0.5), "ms", 200);
  report("page of 60 messages, first contentful paint, worst", Math.max(...paints), "ms");
}

// --- Streaming -----------------------------------------------------------------------------------

/** The page of a thread before a long answer, and the frames that the server sends for it. */
async function record() {
  await converse(server, "recorded", "Good morning");
  const before = await fetch(`${server.base}/chat/recorded`, { headers: html });
  const text = await before.text();
  const after = /data-after="([^"]*)"/.exec(text)[1];
  const live = await fetch(`${server.base}/ui/live?thread=recorded&after=${after}`);
  const frames = [];
  const reading = (async () => {
    let rest = "";
    for await (const piece of live.body.pipeThrough(new TextDecoderStream())) {
      const parts = (rest + piece).split("\n\n");
      rest = parts.pop();
      frames.push(...parts);
      if (parts.some((part) => part.includes("is complete."))) return;
    }
  })();
  await post(server, "recorded", "Write.", { agent: "writer" });
  await reading;
  const played = frames.filter((frame) => frame.includes("event: patch"));
  return { headers: before.headers, html: text, frames: played, bytes: LONG.length / played.length };
}

/** A page with copies of its messages, `n` in all, in groups as the page makes them of earlier messages. */
function grown(text, n) {
  const from = text.indexOf("<article");
  const to = text.lastIndexOf("</article>") + "</article>".length;
  const messages = text.slice(from, to);
  const copies = Array.from({ length: Math.ceil(n / 2) }, (_, at) => messages.replaceAll(/ id="/g, ` id="copy${at}-`));
  const groups = [];
  while (copies.length > 30) groups.push(`<div class="group">${copies.splice(0, 25).join("")}</div>`);
  return text.slice(0, from) + groups.join("") + copies.join("") + text.slice(to);
}

/** A server before the real one: its page has more messages, its stream plays the frames at a rate, once `go` is called. */
async function player({ headers, html: text, frames, bytes }, messages, rate, length) {
  const whole = grown(text, messages);
  const started = Promise.withResolvers();
  const proxy = createServer(async (asked, answer) => {
    if (asked.url.startsWith("/ui/live")) return play(answer);
    if (asked.url.startsWith("/chat")) {
      const policy = headers.get("content-security-policy");
      answer.writeHead(200, { "content-type": "text/html; charset=utf-8", "content-security-policy": policy });
      return answer.end(whole);
    }
    const real = await fetch(server.base + asked.url);
    answer.writeHead(real.status, { "content-type": real.headers.get("content-type") });
    answer.end(Buffer.from(await real.arrayBuffer()));
  });
  const play = async (answer) => {
    answer.writeHead(200, { "content-type": "text/event-stream" });
    answer.flushHeaders();
    await started.promise;
    const began = performance.now();
    const step = 1000 / (rate / bytes);
    const last = Math.min(frames.length, Math.ceil(length / bytes));
    for (let at = 0; at < last && !answer.destroyed; ) {
      const due = Math.min(last, Math.floor((performance.now() - began) / step));
      if (due > at) answer.write(frames.slice(at, due).map((frame) => `${frame}\n\n`).join(""));
      at = Math.max(at, due);
      await new Promise((done) => setTimeout(done, 1));
    }
    answer.write('event: patch\ndata: [{"op":"mark","id":"end","name":"played","value":"yes"}]\n\n');
  };
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const close = () => {
    proxy.closeAllConnections();
    proxy.close();
  };
  return { base: `http://127.0.0.1:${proxy.address().port}`, go: started.resolve, close };
}

/** Runs in the page: notes the time between frames, and the time that the page's own work in a frame takes. */
function meter() {
  const real = window.requestAnimationFrame.bind(window);
  window.frames_ = [];
  window.patches_ = [];
  window.requestAnimationFrame = (draw) => real((at) => {
    const began = performance.now();
    draw(at);
    window.patches_.push(performance.now() - began);
  });
  let last;
  const note = (at) => {
    if (last !== undefined) window.frames_.push(at - last);
    last = at;
    real(note);
  };
  real(note);
}

/** The processor time of the page's main thread so far: other programs do not count. */
async function work(opened) {
  const session = await opened.context().newCDPSession(opened);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return Object.fromEntries(metrics.map(({ name, value }) => [name, value * 1000]));
  };
}

const frames = (opened) => opened.evaluate(() => window.frames_.splice(0));
const patches = (opened) => opened.evaluate(() => window.patches_.splice(0));

function reportFrames(what, times, isBudgeted) {
  report(`${what}: frame, median`, quantile(times, 0.5), "ms", isBudgeted ? 17 : undefined);
  report(`${what}: frame, p95`, quantile(times, 0.95), "ms", 34);
  report(`${what}: frame, p99`, quantile(times, 0.99), "ms");
  report(`${what}: frame, worst`, Math.max(...times), "ms");
}

async function streaming(recorded, messages, rate, length) {
  const what = `${rate / 1000} kB/s into ${messages} messages`;
  report(`${what}: frames of the stream`, rate / recorded.bytes, "a second");
  const played = await player(recorded, messages, rate, length);
  const opened = await page("/chat/recorded", { base: played.base, script: meter });
  const spent = await work(opened);
  const before = await spent();
  await frames(opened);
  await patches(opened);
  const isOver = opened.evaluate(() => new Promise((done) => {
    // Playwright's own waiting would look through the whole page in each frame.
    new MutationObserver(done).observe(document.getElementById("end"), { attributes: true });
  }));
  played.go();
  await isOver;
  const after = await spent();
  const [all, drawn] = [await frames(opened), await patches(opened)];
  reportFrames(what, all, true);
  report(`${what}: patches of a frame, p95`, quantile(drawn, 0.95), "ms");
  report(`${what}: patches of a frame, worst`, Math.max(...drawn), "ms", 8);
  for (const [part, name] of [["all", "TaskDuration"], ["script", "ScriptDuration"], ["styles", "RecalcStyleDuration"], ["layout", "LayoutDuration"]]) {
    report(`${what}: processor time of a frame, ${part}`, (after[name] - before[name]) / drawn.length, "ms");
  }
  return { opened, played };
}

/** How even the machine's frames are while nothing happens. */
async function idle() {
  const opened = await page("/chat", { script: meter });
  await opened.evaluate(() => new Promise((done) => setTimeout(done, 3_000)));
  const times = await frames(opened);
  report("nothing at all: frame, p95", quantile(times, 0.95), "ms");
  report("nothing at all: frame, worst", Math.max(...times), "ms");
  await opened.context().close();
}

async function scrolling(opened) {
  await frames(opened);
  for (const step of [-400, 400]) {
    await opened.evaluate((by) => new Promise((done) => {
      const log = document.getElementById("log");
      let left = 180;
      const move = () => {
        log.scrollTop += by;
        if (left-- > 0) requestAnimationFrame(move);
        else done();
      };
      move();
    }), step);
  }
  reportFrames(`scrolling ${MESSAGES} messages`, await frames(opened));
}

async function memory(opened) {
  const session = await opened.context().newCDPSession(opened);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  report(`${MESSAGES} messages: JS heap`, usedSize / 1e6, "MB", 10);
  const { nodes } = await session.send("Memory.getDOMCounters");
  report(`${MESSAGES} messages: DOM nodes`, nodes, "");
  const root = await browser.newBrowserCDPSession();
  const { processInfo } = await root.send("SystemInfo.getProcessInfo");
  const sizes = processInfo.filter((it) => it.type === "renderer").map(async ({ id }) => {
    const rollup = await readFile(`/proc/${id}/smaps_rollup`, "utf8").catch(() => "");
    const parts = [...rollup.matchAll(/^Private_\w+:\s+(\d+) kB/gm)].map(([, kilobytes]) => Number(kilobytes));
    return parts.reduce((sum, part) => sum + part, 0) / 1000;
  });
  const largest = Math.max(...await Promise.all(sizes));
  if (largest > 0) report(`${MESSAGES} messages: private memory of the page's process`, largest, "MB", 150);
}

try {
  await bytes();
  await idle();
  await opening();
  const recorded = await record();
  const few = await streaming(recorded, 20, 11_000, 100_000);
  await few.opened.context().close();
  few.played.close();
  const many = await streaming(recorded, MESSAGES, 4_000, 40_000);
  await scrolling(many.opened);
  await memory(many.opened);
  many.played.close();
} finally {
  await browser.close();
  await server.stop();
  await scripts.remove();
}

const widths = [0, 1, 2].map((at) => Math.max(...rows.map((row) => row[at].length)));
console.log(["measure".padEnd(widths[0]), "value".padStart(widths[1]), "budget".padStart(widths[2])].join("  "));
for (const [what, value, budget, verdict] of rows) {
  console.log([what.padEnd(widths[0]), value.padStart(widths[1]), budget.padStart(widths[2]), verdict].join("  ").trimEnd());
}
