// The console: the list of threads, the timeline, a run with its waterfall, the log.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { Loomline } from "../js/loomline.mjs";
import { claim, fits, isAccessible } from "./browser.mjs";
import { converse, fork, get, pending, post, rest, until } from "./chromium.mjs";
import { Scripts, TEAM, delegate } from "./samples.mjs";

const DO = "window.__pwned=1";
const HOSTILE = `</td></table><img src=x onerror=${DO}><script>${DO}</script>"'\u202E`;
const scripts = await Scripts.inFolder();
after(() => scripts.remove());
const caller = await scripts.model("caller", [
  { reasoning: HOSTILE, text: HOSTILE, tool_calls: [{ name: HOSTILE, arguments: { [HOSTILE]: HOSTILE } }] },
  { text: HOSTILE },
]);
const server = await Loomline.forTests(`${TEAM}\n${caller}\n[agents.caller]\nmodel = "caller"\ntools = ["compute"]\n`);
const LOOKS = [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["narrow", { colorScheme: "light", viewport: { width: 320, height: 640 } }],
];

/** The paths of the runs of a thread. */
async function runs(key) {
  const path = encodeURIComponent(key);
  const { runs } = await get(server, `/api/v1/threads/${path}/runs`);
  return runs.map((run) => `/console/t/${path}/run/${encodeURIComponent(run.id)}`);
}

const row = (page, text) => page.locator(".waterfall tbody tr", { hasText: text });

before(async () => {
  await converse(server, "sample", "compute 1 + 2 and compute 3 + 4 then say 40 words");
  await converse(server, "sample", "fail network");
  await post(server, "sample", delegate("use compute 6 * 7"), { agent: "lead" });
  await pending(server, "sample");
  await fork(server, "sample", "fork-of-sample");
});

claim("a search marks the words, and a filter can be cleared", server, async (visitor) => {
  await converse(server, "weaver", "Where is the weaver of Antwerp?");
  const page = await visitor.open("/console");
  await page.getByLabel("Words").fill("antwerp");
  await page.getByRole("button", { name: "Find" }).click();
  await page.waitForURL(/q=antwerp/);
  await page.locator("mark", { hasText: "Antwerp" }).first().waitFor();
  assert.equal(await page.locator("table.threads tbody tr").count(), 1);
  await page.getByLabel("Status").selectOption("closed");
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText("There is no thread with the words “antwerp” with the status “closed”.").waitFor();
  await page.getByRole("link", { name: "Clear the filter" }).click();
  await page.getByRole("main").getByRole("link", { name: "weaver", exact: true }).click();
  await page.getByRole("link", { name: "Where is the weaver of Antwerp?" }).click();
  await page.getByRole("heading", { level: 2, name: "Run of demo" }).waitFor();
});

claim("a waterfall has a bar for each of two parallel tools", server, async (visitor) => {
  const [first] = await runs("sample");
  const page = await visitor.open(first);
  assert.equal(await row(page, "compute").count(), 2);
  const wide = await page.locator("tr[data-kind=tool] rect.tool").evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width > 0));
  assert.deepEqual(wide, [true, true]);
  await row(page, "first token after").first().waitFor();
  await page.locator("#step-0 > summary").click();
  await page.locator("#step-0").getByText("Stop reason").waitFor();
  await page.getByRole("link", { name: "Event after" }).click();
  await page.waitForURL(/at=\d+#replay/);
  await page.getByRole("link", { name: /^The thread after event/ }).first().click();
  await page.getByText("This is the past.").waitFor();
});

claim("a thread is forked before and after a run", server, async (visitor) => {
  const [first] = await runs("sample");
  const page = await visitor.open(first);
  assert.equal(await page.getByRole("button", { name: /^Fork after event/ }).count(), 0, "no fork while a run works");
  await page.getByRole("link", { name: "Event before" }).click();
  await page.waitForURL(/at=/);
  await page.getByRole("button", { name: /^Fork after event/ }).click();
  await page.waitForURL(/\/chat\//);
  await page.getByText("fork of sample").waitFor();
  await visitor.open(first);
  await page.getByRole("button", { name: "Fork after the run" }).click();
  await page.waitForURL(/\/chat\//);
  await page.getByText("fork of sample").waitFor();
});

claim("a run shows the crash, the voided attempt and what was kept", server, async (visitor) => {
  await post(server, "crash", "slow 40ms compute 20 + 1 then say 100 words");
  await until("half an answer", async () => {
    const page = await fetch(`${server.base}/console/t/crash/events`).then((answer) => answer.text());
    return /text-delta/.test(page) && /step 1/.test(page);
  });
  await server.kill();
  await server.restart();
  await rest(server, "crash");
  const [path] = await runs("crash");
  const page = await visitor.open(path);
  const crash = row(page, "server crashed and restarted");
  await crash.waitFor();
  await crash.getByText(/attempt voided · kept: 1 step, 1 result · resumed at event \d+/).waitFor();
  await row(page, "attempt voided").getByText(/the process stopped · void: events \d+…\d+, \d+ chunks?/).waitFor();
  await row(page, "(again)").waitFor();
  await isAccessible(page, "a run with a crash");
  await crash.getByRole("link").click();
  await page.getByText("⚠ data-execution-resumed · another process resumes the run").waitFor();
  const target = await page.locator("tr:target").innerText();
  assert.match(target, /resumes the run/);
});

claim("a run that waits names the call, and its sub-agent", server, async (visitor) => {
  const path = (await runs("sample")).at(-1);
  const page = await visitor.open(path);
  await row(page, "waits for a sub-agent").waitFor();
  await row(page, "sub-agent delegate").getByRole("link").click();
  await page.waitForURL(/\/console\/t\//);
  await page.getByText("waits for 1 answer").waitFor();
});

claim("a log is live, folds chunks, and can be paused", server, async (visitor) => {
  await converse(server, "live", "Good morning");
  const page = await visitor.open("/console/t/live/events");
  const tail = async () => (await get(server, "/api/v1/threads/live")).seq;
  const shows = (seq) => until(`event ${seq}`, async () => (await page.locator(`#e-${seq}`).count()) === 1);
  const pause = page.getByRole("button", { name: "Pause" });
  await pause.waitFor();
  await converse(server, "live", "slow 40ms say 20 words");
  await shows(await tail());
  await page.locator("#events tr", { hasText: /×\d/ }).last().waitFor();
  const folded = await page.locator("#events tr").allInnerTexts();
  await visitor.reload();
  assert.deepEqual(await page.locator("#events tr").allInnerTexts(), folded);
  await pause.click();
  await converse(server, "live", "Are you there?");
  const missed = await tail();
  await page.waitForTimeout(300);
  assert.equal(await page.locator(`#e-${missed}`).count(), 0);
  await page.getByRole("button", { name: "Resume" }).click();
  await shows(missed);
  const ids = await page.locator("#events tr").evaluateAll((rows) => rows.map((row) => Number(row.id.slice(2))));
  assert.deepEqual(ids, [...new Set(ids)].sort((a, b) => a - b));
});

claim("a log has pages in both directions, a filter and the JSON", server, async (visitor) => {
  for (let n = 1; n <= 25; n++) await post(server, "log", `message ${n}.`);
  await rest(server, "log");
  const page = await visitor.open("/console/t/log/events?view=full");
  await page.getByRole("link", { name: "Older events" }).click();
  await page.waitForURL(/before=/);
  await page.getByRole("link", { name: "First events" }).click();
  await page.locator("#e-1").waitFor();
  await page.locator("#e-1 summary").click();
  await page.locator("#e-1 pre").getByText("thread.created").waitFor();
  await page.getByLabel("Type").selectOption("execution.created");
  await page.getByRole("button", { name: "Show" }).click();
  await page.waitForURL(/type=execution.created/);
  assert.equal(await page.locator("#events tr").count(), 25);
  await page.getByRole("link", { name: "raw" }).click();
  await page.waitForURL(/view=raw&type=execution.created/);
});

claim("a log page without a script has all of its rows", server, { javaScriptEnabled: false }, async (visitor) => {
  const page = await visitor.open("/console/t/sample/events?view=full");
  assert.ok((await page.locator("#events tr").count()) > 50);
  assert.equal(await page.getByRole("button", { name: "Pause" }).isVisible(), false);
});

for (const [name, options] of LOOKS) {
  claim(`the pages of the console are accessible, ${name}`, server, options, async (visitor) => {
    const [first, , last] = await runs("sample");
    const paths = ["/console", "/console?q=words", "/console?q=nothing-of-this", "/console/t/sample", "/console/t/fork-of-sample",
      first, last, "/console/t/sample/events", "/console/t/sample/events?view=full", "/console/t/sample/events?view=raw",
      "/console/t/sample/events?type=context.resolved&after=50"];
    for (const path of paths) {
      const page = await visitor.open(path);
      await fits(page, path);
      await page.evaluate(() => {
        for (const details of [...document.querySelectorAll("main details")].slice(0, 12)) details.open = true;
      });
      await fits(page, `${path}, unfolded`);
      await isAccessible(page, path);
    }
  });
}

claim("hostile titles, keys, tools and texts are only text in the console", server, async (visitor) => {
  const key = `hostile ${HOSTILE}`.replace("\u202E", "");
  const response = await fetch(`${server.base}/api/v1/threads`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ key, title: HOSTILE }),
  });
  assert.equal(response.status, 201);
  await converse(server, key, HOSTILE, { agent: "caller" });
  const thread = `/console/t/${encodeURIComponent(key)}`;
  const paths = ["/console", "/console?q=script", `/console?agent=${encodeURIComponent(HOSTILE)}`, thread, ...(await runs(key)),
    `${thread}/events`, `${thread}/events?view=full`, `${thread}/events?view=raw`];
  for (const path of paths) {
    const page = await visitor.open(path);
    const found = await page.evaluate(() => {
      const out = [];
      for (const element of document.querySelectorAll("body *")) {
        if (element.matches("script, img, iframe, style, link, base, object")) out.push(element.outerHTML);
        for (const { name } of element.attributes) if (name.startsWith("on") || name === "style") out.push(`${element.localName} ${name}`);
        if (element.localName === "a" && new URL(element.href).origin !== location.origin) out.push(element.href);
      }
      if (/[\u202a-\u202e]/.test(document.body.textContent)) out.push("invisible characters");
      if (window.__pwned !== undefined) out.push("a script ran");
      return out;
    });
    assert.deepEqual(found, [], path);
  }
  const [run] = await runs(key);
  const page = await visitor.open(run);
  await page.getByText(`<script>${DO}</script>`).first().waitFor();
});
